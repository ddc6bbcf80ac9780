// The node itself: health, figures, metrics, and the description of the API.
#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/fields.h"
#include "frontend/http/gzip.h"
#include "frontend/http/handlers.h"
#include "frontend/http/openapi.h"
#include "frontend/http/session.h"

namespace tocsin::http {

void ShowHealth(Call& call) { call.answer.Send({.body = "{\"status\":\"ok\"}"}); }

void ShowReady(Call& call) {
  if (const Status ready = call.context.service.Ready(); !ready) return call.answer.Fail(ready.error());
  call.answer.Send({.body = "{\"status\":\"ready\"}"});
}

void ShowMetrics(Call& call) {
  const auto response = std::make_shared<Response>();
  response->content_type = "text/plain; version=0.0.4";
  call.context.scraper.Scrape(
      call.loop,
      [response, pack = call.session.TakesGzip()](std::string text) {
        response->body = std::move(text);
        response->gzipped = pack && PackAll(response->body);
      },
      [response, answer = std::move(call.answer)](const Status& status) mutable {
        if (!status) return answer.Fail(status.error());
        answer.Send(std::move(*response));
      });
}

void ShowOpenApi(Call& call) { call.answer.Send({.body = OpenApiDocument()}); }

void ShowStats(Call& call) {
  const Context& context = call.context;
  auto send = [&context](Answer& answer, Result<Report> result) {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    const auto uptime = context.clock.IoNow() - context.node.started;
    answer.Send({.body = EncodeStats({.version = context.node.version,
                                      .now_ms = ToMs(context.clock.Now().utc),
                                      .uptime_ms = std::chrono::duration_cast<Millis>(uptime).count(),
                                      .shards = context.node.shards,
                                      .connections = context.node.connections->load(std::memory_order_relaxed)},
                                     *result)});
  };
  context.service.Topics(call.loop, "", call.answer.Then(std::move(send)));
}

}  // namespace tocsin::http
