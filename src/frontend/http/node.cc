// The node itself: health, figures, the cluster, the clock, and the description of the API.
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
      call.answer.Then([response](Answer& answer, const Status& status) mutable {
        if (!status) return answer.Fail(status.error());
        answer.Send(std::move(*response));
      }));
}

void ShowOpenApi(Call& call) { call.answer.Send({.body = std::string(OpenApiDocument())}); }

void ShowStats(Call& call) {
  const Context& context = call.context;
  const auto uptime = context.clock.IoNow() - context.node.started;
  const NodeFacts facts{.version = context.node.version,
                        .now_ms = ToMs(context.clock.Now().utc),
                        .uptime_ms = std::chrono::duration_cast<Millis>(uptime).count(),
                        .shards = context.node.shards,
                        .connections = context.node.connections->load(std::memory_order_relaxed)};
  context.service.Topics(call.loop, "", call.answer.Then([facts](Answer& answer, auto result) mutable {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    answer.Send({.body = EncodeStats(facts, *result)});
  }));
}

void ShowCluster(Call& call) {
  call.context.node.cluster->Describe(call.loop, call.answer.Then([](Answer& answer, auto result) mutable {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    answer.Send({.body = EncodeCluster(*result)});
  }));
}

void AdvanceClock(Call& call) {
  const auto document = call.Body();
  if (document == nullptr) return;
  const auto by = DecodeAdvance(*document);
  if (!by) return call.answer.Fail(by.error());
  call.context.virtual_clock->Advance(*by);
  call.context.service.ClockMoved(call.loop, call.answer.Then([&clock = call.context.clock](Answer& answer) mutable {
    answer.Send({.body = fmt::format("{{\"now_ms\":{}}}", ToMs(clock.Now().utc))});
  }));
}

}  // namespace tocsin::http
