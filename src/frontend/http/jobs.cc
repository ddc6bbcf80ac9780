#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/fields.h"
#include "frontend/http/handlers.h"

namespace tocsin::http {
namespace {

/// 201 where anything was stored; otherwise the status of the first refusal, so that a client that looks at the status
/// alone never takes a refused job for a stored one.
int StatusOf(const std::vector<Submitted>& jobs) {
  if (std::ranges::any_of(jobs, IsStored, &Submitted::outcome)) return 201;
  return RowOf(CodeOf(jobs.front().outcome)).http;
}

/// A reserve whose client went away just before the jobs came: they are due again at once.
void Release(const Context& context, net::AsioLoop& loop, std::string topic, const JobBatch& batch) {
  if (batch.jobs.empty()) return;
  SettleRequest request{.topic = std::move(topic)};
  for (const JobView& job : batch.jobs) {
    request.settlements.push_back({.token = job.token, .kind = SettleKind::kRelease});
  }
  context.service.Settle(loop, std::move(request), [](const auto&) {});
}

}  // namespace

void SubmitJobs(Call& call) {
  auto document = Document::Parse(call.parser, call.body);
  if (!document) return call.answer.Fail(document.error());
  auto request = DecodeSubmit(std::move(call.params[0]), *document, call.context.service.limits().batch);
  if (!request) return call.answer.Fail(request.error());

  std::vector<std::string_view> own_ids;
  own_ids.reserve(request->jobs.size());
  for (const NewJob& job : request->jobs) own_ids.push_back(job.id);
  call.context.service.Submit(call.loop, *std::move(request),
                              [answer = std::move(call.answer), ids = std::move(own_ids),
                               document = *std::move(document)](auto result) mutable {
                                if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                                answer.Send({.status = StatusOf(*result), .body = EncodeSubmitted(*result, ids)});
                              });
}

void ReserveJobs(Call& call) {
  const auto document = Document::Parse(call.parser, call.body.empty() ? "{}" : call.body);
  if (!document) return call.answer.Fail(document.error());
  auto request = DecodeReserve(call.params[0], **document, call.context.service.limits());
  if (!request) return call.answer.Fail(request.error());

  const auto id = call.context.service.Reserve(call.loop, *std::move(request),
                                               [answer = std::move(call.answer), topic = call.params[0],
                                                &context = call.context, &loop = call.loop](auto result) mutable {
                                                 if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                                                 if (!answer.Wanted())
                                                   return Release(context, loop, std::move(topic), *result);
                                                 answer.Send({.body = EncodeDelivered(*result)});
                                               });
  call.Park(id);
}

void AckJobs(Call& call) {
  const auto document = Document::Parse(call.parser, call.body);
  if (!document) return call.answer.Fail(document.error());
  auto request = DecodeAck(std::move(call.params[0]), **document, call.context.service.limits().batch);
  if (!request) return call.answer.Fail(request.error());

  std::vector<Token> tokens;
  tokens.reserve(request->settlements.size());
  for (const Settlement& settlement : request->settlements) tokens.push_back(settlement.token);
  call.context.service.Settle(call.loop, *std::move(request),
                              [answer = std::move(call.answer), tokens = std::move(tokens)](auto result) mutable {
                                if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                                answer.Send({.body = EncodeSettled(tokens, *result)});
                              });
}

void CancelJob(Call& call) {
  struct Names {
    std::string id;
    std::string key;
  };
  const auto names =
      std::make_shared<Names>(std::move(call.params[1]), call.query.empty() ? "" : call.query.front().second);
  AmendRequest request{.topic = std::move(call.params[0]), .bytes = names};
  request.amendments.push_back({.job = {.id = names->id, .key = names->key}, .kind = AmendKind::kCancel});
  call.context.service.Amend(call.loop, std::move(request), [answer = std::move(call.answer)](auto result) mutable {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    if (result->front().outcome == AmendOutcome::kOverloaded) {
      return answer.Fail(Error{Code::kOverloaded, "the job's shard has too much to do; nothing was done", {}});
    }
    answer.Send({.body = EncodeCancelled(result->front().outcome)});
  });
}

}  // namespace tocsin::http
