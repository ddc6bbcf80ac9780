// Reserve, ack, nack, extend.
#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/fields.h"
#include "frontend/http/handlers.h"

namespace tocsin::http {
namespace {

void Settle(Call& call, SettleKind kind) {
  auto document = call.Body();
  if (document == nullptr) return;
  auto request = DecodeSettle(*call.verb, kind, std::move(call.params[0]), std::move(document),
                              call.context.service.limits().batch);
  if (!request) return call.answer.Fail(request.error());

  std::vector<Token> tokens;
  tokens.reserve(request->settlements.size());
  for (const Settlement& settlement : request->settlements) tokens.push_back(settlement.token);
  if (const Status room = call.answer.MakeRoom(SettledBytesMax(tokens.size())); !room) {
    return call.answer.Fail(room.error());
  }
  auto send = [tokens = std::move(tokens)](Answer& answer, auto result) {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    answer.Send({.body = EncodeSettled(tokens, *result)});
  };
  call.context.service.Settle(call.loop, *std::move(request), call.answer.Then(std::move(send)));
}

}  // namespace

void ReserveJobs(Call& call) {
  const auto decoded = call.Decode();
  if (!decoded) return;
  ReserveRequest request{.topic = decoded->topic,
                         .max = static_cast<size_t>(decoded->arguments.max.value_or(1)),
                         .wait = Millis(decoded->arguments.wait_ms.value_or(0)),
                         .lease = Millis(decoded->arguments.lease_ms.value_or(0))};
  auto deliver = [topic = decoded->topic, &context = call.context, &loop = call.loop](Answer& answer, auto result) {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    if (!answer.Wanted()) return context.service.Release(loop, topic, *result);
    std::string body = EncodeDelivered(*result);
    if (const Status room = answer.MakeRoom(body.size()); !room) {
      context.service.Release(loop, topic, *result);
      return answer.Fail(room.error());
    }
    answer.Send({.body = std::move(body)});
  };
  const auto id = call.context.service.Reserve(call.loop, std::move(request), call.answer.Then(std::move(deliver)));
  call.Park(id);
}

void AckJobs(Call& call) { Settle(call, SettleKind::kAck); }
void NackJobs(Call& call) { Settle(call, SettleKind::kNack); }
void ExtendJobs(Call& call) { Settle(call, SettleKind::kExtend); }

}  // namespace tocsin::http
