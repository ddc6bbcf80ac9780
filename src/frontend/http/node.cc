#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/handlers.h"

namespace tocsin::http {

void ShowHealth(Call& call) { call.answer.Send({.body = "{\"status\":\"ok\"}"}); }

void ShowMetrics(Call& call) {
  call.answer.Send({.body = call.context.metrics.RenderPrometheus(), .content_type = "text/plain; version=0.0.4"});
}

void AdvanceClock(Call& call) {
  const auto document = Document::Parse(call.parser, call.body);
  if (!document) return call.answer.Fail(document.error());
  const auto by = DecodeAdvance(**document);
  if (!by) return call.answer.Fail(by.error());
  call.context.virtual_clock->Advance(*by);
  call.context.service.ClockMoved(call.loop, [answer = std::move(call.answer), &clock = call.context.clock]() mutable {
    answer.Send({.body = fmt::format("{{\"now_ms\":{}}}", ToMs(clock.Now().utc))});
  });
}

}  // namespace tocsin::http
