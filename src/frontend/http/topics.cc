// Topics: their settings, and what is done to all jobs of one.
#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/fields.h"
#include "frontend/http/handlers.h"

namespace tocsin::http {
namespace {

/// Refuses a body that says anything; false where it did.
bool TakesNothing(Call& call) {
  const auto document = call.OptionalBody();
  if (document == nullptr) return false;
  const Status status = DecodeNothing(*document);
  if (!status) call.answer.Fail(status.error());
  return status.has_value();
}

void Change(Call& call, ChangeTopicRequest request) {
  call.context.service.ChangeTopic(
      call.loop, std::move(request), call.answer.Then([](Answer& answer, auto result) mutable {
        if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
        answer.Send({.status = result->created ? 201 : 200, .body = EncodeTopic(result->topic)});
      }));
}

void Pause(Call& call, bool paused) {
  if (!TakesNothing(call)) return;
  Change(call, {std::move(call.params[0]), TopicChange().Set("paused", paused ? 1 : 0), IfUnknown::kRefuse});
}

/// `word`: what the number of jobs is called in the answer.
void Sweep(Call& call, SweepKind kind, std::string_view word) {
  if (!TakesNothing(call)) return;
  call.context.service.Sweep(call.loop, std::move(call.params[0]), kind,
                             call.answer.Then([word](Answer& answer, auto result) mutable {
                               if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                               answer.Send({.body = fmt::format("{{\"{}\":{}}}", word, *result)});
                             }));
}

}  // namespace

void PutTopic(Call& call) {
  const auto document = call.OptionalBody();
  if (document == nullptr) return;
  const auto change = DecodeTopicChange(*document);
  if (!change) return call.answer.Fail(change.error());
  Change(call, {std::move(call.params[0]), *change});
}

void ShowTopic(Call& call) {
  const std::string name = call.params[0];
  call.context.service.Topics(call.loop, name, call.answer.Then([name](Answer& answer, auto result) mutable {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    if (!result->topics.empty()) return answer.Send({.body = EncodeTopic(result->topics.front())});
    answer.Fail(NoSuchTopic(name).error());
  }));
}

void ListTopics(Call& call) {
  std::string prefix = call.grant != nullptr ? call.grant->prefix : std::string();
  call.context.service.Topics(call.loop, "",
                              call.answer.Then([prefix = std::move(prefix)](Answer& answer, auto result) mutable {
                                if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                                answer.Send({.body = EncodeTopics(*result, prefix)});
                              }));
}

void DropTopic(Call& call) {
  if (!TakesNothing(call)) return;
  call.context.service.DropTopic(call.loop, std::move(call.params[0]),
                                 call.answer.Then([](Answer& answer, auto result) mutable {
                                   if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                                   answer.Send({.body = "{\"outcome\":\"dropped\"}"});
                                 }));
}

void TestTopic(Call& call) {
  if (!TakesNothing(call)) return;
  call.context.service.Probe(call.loop, std::move(call.params[0]),
                             call.answer.Then([](Answer& answer, auto result) mutable {
                               if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                               answer.Send({.body = EncodeProbed(*result)});
                             }));
}

void PauseTopic(Call& call) { Pause(call, true); }
void ResumeTopic(Call& call) { Pause(call, false); }
void PurgeTopic(Call& call) { Sweep(call, SweepKind::kPurge, "purged"); }
void RedriveDead(Call& call) { Sweep(call, SweepKind::kRedrive, "redriven"); }
void PurgeDead(Call& call) { Sweep(call, SweepKind::kPurgeDead, "purged"); }

}  // namespace tocsin::http
