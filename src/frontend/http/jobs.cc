// Submitting, looking at and changing jobs.
#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/encode.h"
#include "frontend/http/fields.h"
#include "frontend/http/handlers.h"
#include "model/names.h"

namespace tocsin::http {
namespace {

constexpr size_t kPageDefault = 100;
constexpr size_t kPageMax = 1000;

/// 201 where anything was stored; otherwise the status of the first refusal, so that a client that looks at the status
/// alone never takes a refused job for a stored one.
int StatusOf(const std::vector<Submitted>& jobs) {
  if (std::ranges::any_of(jobs, IsStored, &Submitted::outcome)) return 201;
  return RowOf(CodeOf(jobs.front().outcome)).http;
}

/// Whom a call is about, with the body that its views may point into.
struct Subject {
  std::string id;
  std::string key;
  std::shared_ptr<Document> document;

  JobRef Ref() const { return {.id = id, .key = key}; }
};

/// Null where the request was refused: then it is answered.
std::shared_ptr<Subject> SubjectOf(Call& call) {
  auto document = call.OptionalBody();
  if (document == nullptr) return nullptr;
  return std::make_shared<Subject>(std::move(call.params[1]), std::string(call.QueryOr("key", "")),
                                   std::move(document));
}

/// The same for a call whose body says nothing.
std::shared_ptr<Subject> BareSubjectOf(Call& call) {
  auto subject = SubjectOf(call);
  if (subject == nullptr) return nullptr;
  if (const Status status = DecodeNothing(*subject->document); !status) {
    call.answer.Fail(status.error());
    return nullptr;
  }
  return subject;
}

/// `done`: what kDone is called in the answer.
void AmendOne(Call& call, std::shared_ptr<Subject> subject, Amendment amendment, std::string_view done) {
  amendment.job = subject->Ref();
  AmendRequest request{.topic = std::move(call.params[0]), .amendments = {amendment}, .bytes = std::move(subject)};
  call.context.service.Amend(call.loop, std::move(request),
                             call.answer.Then([done](Answer& answer, auto result) mutable {
                               if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                               if (const auto refusal = RefusalOf(result->front().outcome))
                                 return answer.Fail(*refusal);
                               answer.Send({.body = EncodeAmended(result->front(), done)});
                             }));
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
  call.context.service.Submit(
      call.loop, *std::move(request),
      call.answer.Then([ids = std::move(own_ids), document = std::move(document)](Answer& answer, auto result) mutable {
        if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
        answer.Send({.status = StatusOf(*result), .body = EncodeSubmitted(*result, ids)});
      }));
}

void ListJobs(Call& call) {
  ListRequest request{.topic = std::move(call.params[0]), .limit = kPageDefault};
  const auto state = DecodeState(call.QueryOr("state", "scheduled"));
  if (!state) return call.answer.Fail(state.error());
  request.state = *state;
  if (const auto text = call.QueryOr("limit", ""); !text.empty()) {
    const auto limit = DecodeLimit(text, std::min(kPageMax, call.context.service.limits().batch));
    if (!limit) return call.answer.Fail(limit.error());
    request.limit = *limit;
  }
  request.cursor = call.QueryOr("cursor", "");
  std::string reason(call.QueryOr("reason", ""));
  call.context.service.List(call.loop, std::move(request),
                            call.answer.Then([reason = std::move(reason)](Answer& answer, auto result) mutable {
                              if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
                              // Not by the store: a page may be empty, and the next one not.
                              if (!reason.empty()) KeepWithReason(result->jobs, reason);
                              answer.Send({.body = EncodePage(*result)});
                            }));
}

void ShowJob(Call& call) {
  auto subject = BareSubjectOf(call);
  if (subject == nullptr) return;
  FindRequest request{.topic = call.params[0], .jobs = {subject->Ref()}, .bytes = subject};
  call.context.service.Find(
      call.loop, std::move(request), call.answer.Then([subject](Answer& answer, auto result) mutable {
        if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
        const JobView& job = result->jobs.front();
        if (job.uid != 0) return answer.Send({.body = EncodeJob(job)});
        answer.Fail({Code::kNotFound, fmt::format("no job {} is stored", Shown(subject->id)), "id"});
      }));
}

void AmendJob(Call& call) {
  auto subject = SubjectOf(call);
  if (subject == nullptr) return;
  Amendment amendment;
  if (const Status status = DecodeAmendment(*subject->document, amendment); !status) {
    return call.answer.Fail(status.error());
  }
  AmendOne(call, std::move(subject), amendment, "amended");
}

void CancelJob(Call& call) {
  auto subject = BareSubjectOf(call);
  if (subject == nullptr) return;
  AmendOne(call, std::move(subject), {.kind = AmendKind::kCancel}, "cancelled");
}

void FireJob(Call& call) {
  auto subject = BareSubjectOf(call);
  if (subject == nullptr) return;
  AmendOne(call, std::move(subject), {.kind = AmendKind::kFire}, "fired");
}

void CountJob(Call& call) {
  auto subject = SubjectOf(call);
  if (subject == nullptr) return;
  CountEvent event;
  if (const Status status = DecodeCount(*subject->document, event); !status) return call.answer.Fail(status.error());
  event.job = subject->Ref();
  CountRequest request{.topic = std::move(call.params[0]), .events = {event}, .bytes = std::move(subject)};
  call.context.service.Count(call.loop, std::move(request), call.answer.Then([](Answer& answer, auto result) mutable {
    if (!result) return answer.Fail(OnTheWire(std::move(result).error()));
    if (result->front().outcome == CountOutcome::kOverloaded) {
      return answer.Fail({Code::kOverloaded, "the job's shard has too much to do; nothing was counted", {}});
    }
    answer.Send({.body = EncodeCounted(result->front())});
  }));
}

}  // namespace tocsin::http
