#include "frontend/http/handlers.h"

namespace tocsin::http {

Router MakeRouter(bool virtual_clock) {
  std::vector<Route> routes = {
      {Verb::post, "/v1/topics/{topic}/jobs", SubmitJobs},
      {Verb::post, "/v1/topics/{topic}/reserve", ReserveJobs},
      {Verb::post, "/v1/topics/{topic}/ack", AckJobs},
      {Verb::delete_, "/v1/topics/{topic}/jobs/{id}", CancelJob, {"key"}},
      {Verb::get, "/healthz", ShowHealth},
      {Verb::get, "/metrics", ShowMetrics},
  };
  if (virtual_clock) routes.push_back({Verb::post, "/v1/clock/advance", AdvanceClock});
  return Router(std::move(routes));
}

}  // namespace tocsin::http
