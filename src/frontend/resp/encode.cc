#include "frontend/resp/encode.h"

#include "frontend/shared/views.h"
#include "model/names.h"

namespace tocsin::resp {
namespace {

void WriteDue(Writer& writer, Time due) {
  if (due == kNever) return writer.Null();
  writer.Number(ToMs(due));
}

void WriteId(Writer& writer, Uid uid, std::string_view own_id) {
  own_id.empty() ? writer.Text(UidText(uid)) : writer.Text(own_id);
}

void WriteHeaders(Writer& writer, const std::vector<HeaderView>& headers) {
  writer.Object(headers.size());
  for (const HeaderView& header : headers) {
    writer.Text(header.name);
    writer.Text(header.value);
  }
}

// In the order of SubmitOutcome; empty for what is stored.
constexpr std::string_view kWhyNotStored[] = {"",
                                              "",
                                              "the id is stored with other content",
                                              "the job that has the id is being delivered",
                                              "the topic or the node holds as much as it may",
                                              "the disk is full",
                                              "the job's shard has too much to do; nothing was stored",
                                              "the store failed for this job; whether it is stored is unknown"};
static_assert(static_cast<size_t>(SubmitOutcome::kUnavailable) + 1 == std::size(kWhyNotStored));

void WriteNotStored(Writer& writer, SubmitOutcome outcome) {
  writer.Fail(
      {CodeOf(outcome), fmt::format("{}: {}", NameOf(outcome), kWhyNotStored[static_cast<size_t>(outcome)]), {}});
}

std::string_view WordOf(AmendKind kind) {
  if (kind == AmendKind::kCancel) return "cancelled";
  return kind == AmendKind::kFire ? "fired" : "amended";
}

}  // namespace

void WriteSubmitted(Writer& writer, std::span<const Submitted> jobs, std::string_view own_id, bool many) {
  if (many) {
    writer.Array(jobs.size());
    for (const Submitted& job : jobs) {
      IsStored(job.outcome) ? writer.Text(UidText(job.uid)) : WriteNotStored(writer, job.outcome);
    }
    return;
  }
  const Submitted& job = jobs.front();
  if (!IsStored(job.outcome)) return WriteNotStored(writer, job.outcome);
  writer.Array(3);
  WriteId(writer, job.uid, own_id);
  writer.Simple(NameOf(job.outcome));
  WriteDue(writer, job.due);
}

void WriteSettled(Writer& writer, std::span<const SettleOutcome> outcomes) {
  writer.Array(outcomes.size());
  for (const SettleOutcome outcome : outcomes) writer.Simple(NameOf(outcome));
}

void WriteAmended(Writer& writer, const Amended& amended, AmendKind kind) {
  if (const auto refusal = RefusalOf(amended.outcome)) return writer.Fail(*refusal);
  const std::string_view outcome = NameOf(amended.outcome, WordOf(kind));
  if (kind == AmendKind::kCancel) return writer.Simple(outcome);
  writer.Array(2);
  writer.Simple(outcome);
  const bool has_due = amended.outcome == AmendOutcome::kDone && amended.due != Time{};
  has_due ? WriteDue(writer, amended.due) : writer.Null();
}

void WriteCounted(Writer& writer, const Counted& counted) {
  if (const auto refusal = RefusalOf(counted.outcome)) return writer.Fail(*refusal);
  writer.Array(2);
  writer.Simple(NameOf(counted.outcome));
  writer.Number(counted.left);
}

bool WriteDelivered(Writer& writer, const JobBatch& batch, size_t& next) {
  if (next == 0) writer.Array(batch.jobs.size());
  for (const size_t end = shared::StepEnd(batch, next); next < end; ++next) {
    const JobView& job = batch.jobs[next];
    writer.Array(9);
    WriteId(writer, job.uid, job.own_id);
    writer.Text(TokenText(job.token));
    writer.Text(job.payload);
    writer.Number(job.attempt);
    writer.Number(job.max_attempts);
    WriteDue(writer, job.due);
    writer.Number(ToMs(job.lease_deadline));
    job.key.empty() ? writer.Null() : writer.Text(job.key);
    WriteHeaders(writer, job.headers);
  }
  return next == batch.jobs.size();
}

}  // namespace tocsin::resp
