#include "frontend/http/handlers.h"

namespace tocsin::http {

Router MakeRouter(bool virtual_clock) {
  // The first that matches answers, so what is called most stands first.
  std::vector<Route> routes = {
      {Verb::post, "/v1/topics/{topic}/jobs", Access::kSubmit, SubmitJobs},
      {Verb::post, "/v1/topics/{topic}/reserve", Access::kConsume, ReserveJobs},
      {Verb::post, "/v1/topics/{topic}/ack", Access::kConsume, AckJobs},
      {Verb::post, "/v1/topics/{topic}/nack", Access::kConsume, NackJobs},
      {Verb::post, "/v1/topics/{topic}/extend", Access::kConsume, ExtendJobs},
      {Verb::delete_, "/v1/topics/{topic}/jobs/{id}", Access::kSubmit, CancelJob, {"key"}},
      {Verb::get, "/v1/topics/{topic}/jobs/{id}", Access::kSubmitOrConsume, ShowJob, {"key"}},
      {Verb::patch, "/v1/topics/{topic}/jobs/{id}", Access::kSubmit, AmendJob, {"key"}},
      {Verb::post, "/v1/topics/{topic}/jobs/{id}/fire", Access::kSubmit, FireJob, {"key"}},
      {Verb::post, "/v1/topics/{topic}/jobs/{id}/count", Access::kSubmit, CountJob, {"key"}},
      {Verb::get, "/v1/topics/{topic}/jobs", Access::kTopicAdmin, ListJobs, {"state", "limit", "cursor", "reason"}},
      {Verb::put, "/v1/topics/{topic}", Access::kTopicAdmin, PutTopic},
      {Verb::get, "/v1/topics/{topic}", Access::kTopicAdmin, ShowTopic},
      {Verb::delete_, "/v1/topics/{topic}", Access::kTopicAdmin, DropTopic},
      {Verb::get, "/v1/topics", Access::kListTopics, ListTopics},
      {Verb::post, "/v1/topics/{topic}/pause", Access::kTopicAdmin, PauseTopic},
      {Verb::post, "/v1/topics/{topic}/resume", Access::kTopicAdmin, ResumeTopic},
      {Verb::post, "/v1/topics/{topic}/test", Access::kTopicAdmin, TestTopic},
      {Verb::post, "/v1/topics/{topic}/purge", Access::kTopicAdmin, PurgeTopic},
      {Verb::post, "/v1/topics/{topic}/dead/redrive", Access::kTopicAdmin, RedriveDead},
      {Verb::post, "/v1/topics/{topic}/dead/purge", Access::kTopicAdmin, PurgeDead},
      {Verb::get, "/v1/stats", Access::kNodeAdmin, ShowStats},
      {Verb::get, "/v1/cluster", Access::kNodeAdmin, ShowCluster},
      {Verb::get, "/v1/openapi.json", Access::kOpen, ShowOpenApi},
      {Verb::get, "/healthz", Access::kOpen, ShowHealth},
      {Verb::get, "/readyz", Access::kOpen, ShowReady},
      {Verb::get, "/metrics", Access::kNodeAdmin, ShowMetrics},
  };
  if (virtual_clock) routes.push_back({Verb::post, "/v1/clock/advance", Access::kNodeAdmin, AdvanceClock});
  return Router(std::move(routes));
}

}  // namespace tocsin::http
