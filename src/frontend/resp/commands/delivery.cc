// Reserve, ack, nack, extend.
#include "api/syntax.h"
#include "base/text.h"
#include "core/validate.h"
#include "frontend/resp/commands/commands.h"
#include "frontend/shared/views.h"

namespace tocsin::resp {
namespace {

/// `word` as errors show it.
Error NotAToken(std::string_view word, std::span<const api::Field> fields) {
  std::string message = fmt::format("'{}' is not a delivery token that a reserve gave out", word);
  const auto options = api::RespWords(fields);
  if (!options.empty()) message += fmt::format(", nor an option; the options are {}", fmt::join(options, ", "));
  return {Code::kInvalidArgument, std::move(message), "token"};
}

/// Tokens stand first; an option begins with the first word that is none.
void Settle(Call& call, SettleKind kind) {
  static thread_local std::vector<Token> tokens;  // scratch
  tokens.clear();
  Values args = call.args.subspan(1);
  for (; !args.empty(); args = args.subspan(1)) {
    const auto token = ParseToken(args.front());
    if (!token) break;
    tokens.push_back(*token);
  }
  api::Arguments arguments;
  const auto fields = call.command.verb->fields;
  Status status = ReadWords(args, fields, arguments);
  if (!status && status.error().code == Code::kUnknownField) return call.Fail(NotAToken(status.error().field, fields));
  if (status) status = CheckTogether(fields, api::Wire::kResp, arguments);
  if (status && tokens.empty()) status = FailField(Code::kInvalidArgument, "token", "a delivery token is missing");
  if (status) status = CheckBatch(call, "tokens", tokens.size());
  const Settlement each = SettlementOf(kind, arguments);
  if (status) status = Validate(each, ServiceOf(call).limits());
  if (!status) return call.Fail(status.error());
  SettleRun& run = call.session.pipeline().Open<SettleRun>(call, tokens.size());
  run.parts.push_back({.items = tokens.size()});
  run.request.settlements.reserve(run.request.settlements.size() + tokens.size());
  for (const Token& token : tokens) run.request.settlements.emplace_back(each).token = token;
}

}  // namespace

void JobAck(Call& call) { Settle(call, SettleKind::kAck); }
void JobNack(Call& call) { Settle(call, SettleKind::kNack); }
void JobExtend(Call& call) { Settle(call, SettleKind::kExtend); }

void JobReserve(Call& call) {
  api::Arguments arguments;
  if (const Status status = ReadArguments(call.args.subspan(1), *call.command.verb, arguments); !status) {
    return call.Fail(status.error());
  }
  ReserveRequest request{.topic = std::string(call.topic()),
                         .max = static_cast<size_t>(arguments.max.value_or(1)),
                         .wait = Millis(arguments.wait_ms.value_or(0)),
                         .lease = Millis(arguments.lease_ms.value_or(0))};
  // Most often the client has gone altogether, and nobody would settle the jobs.
  if (call.session.half_closed()) return Reply(call).Array(0);
  auto deliver = [session = call.session.Share(), topic = request.topic](Answer& answer, Result<JobBatch> result) {
    session->Unpark();
    if (!result) return answer.Fail(result.error());
    Server& server = session->server();
    Status room;
    if (answer.Wanted()) room = answer.MakeRoom(shared::BytesMax(*result));
    if (!answer.Wanted() || !room) server.context().service.Release(server.loop(), topic, *result);
    if (!room) return answer.Fail(room.error());
    Writer writer = answer.writer();
    WriteDelivered(writer, *result);
    answer.Done();
  };
  const ReserveId id = ServiceOf(call).Reserve(LoopOf(call), std::move(request),
                                               call.session.pipeline().Hold(call).Then(std::move(deliver)));
  call.session.Park(id, call.topic());
}

}  // namespace tocsin::resp
