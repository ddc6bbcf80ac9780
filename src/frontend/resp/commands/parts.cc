#include "core/validate.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

Status OneOfBoth(const When& when) {
  if (!when.delay || !when.due) return {};
  return FailField(Code::kInvalidArgument, "AT", "DELAY and AT contradict each other: give one of them");
}

}  // namespace

Status TakeDelay(When& when, std::string_view word, Values values) {
  TOCSIN_TRY(Put(when.delay, Number(word, values[0], 0, kDelayMax.count())));
  return OneOfBoth(when);
}

Status TakeAt(When& when, std::string_view word, Values values) {
  const auto ms = Number(word, values[0], 0, std::numeric_limits<int64_t>::max() / 1'000'000);
  if (!ms) return std::unexpected(ms.error());
  when.due = FromMs(*ms);
  return OneOfBoth(when);
}

Status CheckBatch(const Call& call, std::string_view what, size_t items) {
  const size_t most = call.session.server().context().service.limits().batch;
  if (items <= most) return {};
  return FailField(Code::kInvalidArgument, std::string(what), "{} {} in one command: the most is {}", items, what,
                   most);
}

void Amend(Call& call, Amendment amendment) {
  const Server& server = call.session.server();
  const Status valid = Validate(amendment, server.context().service.limits(), server.context().clock.Now());
  if (!valid) return call.Fail(valid.error());
  call.session.pipeline().Open<AmendRun>(call, 1).request.amendments.push_back(amendment);
}

void Sweep(Call& call, SweepKind kind) {
  ServiceOf(call).Sweep(LoopOf(call), std::string(call.topic()), kind,
                        call.session.pipeline().Hold(call).Then([](Answer& answer, Result<size_t> result) mutable {
                          if (!result) return answer.Fail(result.error());
                          answer.writer().Integer(static_cast<int64_t>(*result));
                          answer.Done();
                        }));
}

void ChangeTopic(Call& call, ChangeTopicRequest request) {
  ServiceOf(call).ChangeTopic(
      LoopOf(call), std::move(request),
      call.session.pipeline().Hold(call).Then([](Answer& answer, Result<ChangedTopic> result) mutable {
        if (!result) return answer.Fail(result.error());
        Writer writer = answer.writer();
        WriteTopic(writer, result->topic);
        answer.Done();
      }));
}

}  // namespace tocsin::resp
