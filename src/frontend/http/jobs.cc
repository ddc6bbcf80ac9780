// Submitting and changing jobs.
#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/fields.h"
#include "frontend/http/handlers.h"
#include "model/names.h"

namespace tocsin::http {
namespace {

/// 201 if anything was stored; otherwise the status of the first refusal, so that a client that looks at the status
/// alone never takes a refused job for a stored one.
int StatusOf(const std::vector<Submitted>& jobs) {
  if (std::ranges::any_of(jobs, IsStored, &Submitted::outcome)) return 201;
  return RowOf(CodeOf(jobs.front().outcome)).http;
}

/// `done`: what kDone is called in the answer.
void AmendOne(Call& call, Decoded decoded, const Amendment& amendment, std::string_view done) {
  AmendRequest request{.topic = std::move(decoded.topic), .amendments = {amendment}, .bytes = std::move(decoded.bytes)};
  auto send = [done](Answer& answer, auto result) {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    if (const auto refusal = RefusalOf(result->front().outcome)) return answer.Fail(*refusal);
    answer.Send({.body = EncodeAmended(result->front(), done)});
  };
  call.context.service.Amend(call.loop, std::move(request), call.answer.Then(std::move(send)));
}

void AmendAs(Call& call, AmendKind kind, std::string_view done) {
  auto decoded = call.Decode();
  if (!decoded) return;
  const Amendment amendment{.job = JobOf(decoded->arguments), .kind = kind};
  AmendOne(call, *std::move(decoded), amendment, done);
}

}  // namespace

void SubmitJobs(Call& call) {
  auto document = call.Body();
  if (document == nullptr) return;
  auto request = DecodeSubmit(std::move(call.params[0]), document, call.context.service.limits().batch);
  if (!request) return call.answer.Fail(request.error());

  std::vector<std::string_view> own_ids;
  own_ids.reserve(request->jobs.size());
  for (const NewJob& job : request->jobs) own_ids.push_back(job.id);
  // Now, while nothing is done yet: an answer that finds no room later would hide what is stored.
  if (const Status room = call.answer.MakeRoom(SubmittedBytesMax(own_ids)); !room) {
    return call.answer.Fail(room.error());
  }
  auto send = [ids = std::move(own_ids), document = std::move(document)](Answer& answer, auto result) {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    answer.Send({.status = StatusOf(*result), .body = EncodeSubmitted(*result, ids)});
  };
  call.context.service.Submit(call.loop, *std::move(request), call.answer.Then(std::move(send)));
}

void AmendJob(Call& call) {
  auto decoded = call.Decode();
  if (!decoded) return;
  const auto amendment = AmendmentOf(api::Wire::kJson, decoded->arguments);
  if (!amendment) return call.answer.Fail(amendment.error());
  AmendOne(call, *std::move(decoded), *amendment, "amended");
}

void CancelJob(Call& call) { AmendAs(call, AmendKind::kCancel, "cancelled"); }

void FireJob(Call& call) { AmendAs(call, AmendKind::kFire, "fired"); }

void CountJob(Call& call) {
  auto decoded = call.Decode();
  if (!decoded) return;
  CountRequest request{
      .topic = std::move(decoded->topic), .events = {EventOf(decoded->arguments)}, .bytes = std::move(decoded->bytes)};
  auto send = [](Answer& answer, auto result) {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    if (result->front().outcome == CountOutcome::kOverloaded) {
      return answer.Fail({Code::kOverloaded, "the job's shard has too much to do; nothing was counted", {}});
    }
    answer.Send({.body = EncodeCounted(result->front())});
  };
  call.context.service.Count(call.loop, std::move(request), call.answer.Then(std::move(send)));
}

}  // namespace tocsin::http
