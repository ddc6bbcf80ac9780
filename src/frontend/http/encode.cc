#include "frontend/http/encode.h"

#include "frontend/http/text.h"

namespace tocsin::http {
namespace {

std::string_view NameOf(SubmitOutcome outcome) {
  switch (outcome) {
    case SubmitOutcome::kAccepted:
      return "accepted";
    case SubmitOutcome::kDuplicate:
      return "duplicate";
    case SubmitOutcome::kConflict:
      return "conflict";
    case SubmitOutcome::kInFlight:
      return "in_flight";
    case SubmitOutcome::kOverCapacity:
      return "over_capacity";
    case SubmitOutcome::kStorageFull:
      return "storage_full";
    case SubmitOutcome::kOverloaded:
      return "overloaded";
  }
  return "unknown";
}

std::string_view NameOf(AmendOutcome outcome) {
  switch (outcome) {
    case AmendOutcome::kDone:
      return "cancelled";
    case AmendOutcome::kInFlight:
      return "in_flight";
    case AmendOutcome::kFinished:
      return "finished";
    case AmendOutcome::kOverCapacity:
      return "over_capacity";
    case AmendOutcome::kStorageFull:
      return "storage_full";
    case AmendOutcome::kOverloaded:
      return "overloaded";
    case AmendOutcome::kUnknown:
      break;
  }
  return "unknown";
}

std::string_view NameOf(SettleOutcome outcome) {
  switch (outcome) {
    case SettleOutcome::kOk:
      return "ok";
    case SettleOutcome::kDead:
      return "dead";
    case SettleOutcome::kOverloaded:
      return "overloaded";
    case SettleOutcome::kStale:
      break;
  }
  return "stale";
}

/// A job that waits for a count alone has no due time.
void AppendDue(std::string& out, Time due) {
  out += ",\"due_ms\":";
  if (due == kNever) {
    out += "null";
  } else {
    AppendInteger(out, ToMs(due));
  }
}

void AppendHeaders(std::string& out, const std::vector<HeaderView>& headers) {
  out += ",\"headers\":{";
  for (const HeaderView& header : headers) {
    if (out.back() != '{') out += ',';
    AppendString(out, header.name);
    out += ':';
    AppendString(out, header.value);
  }
  out += '}';
}

void AppendJob(std::string& out, const JobView& job) {
  out += "{\"id\":";
  AppendString(out, job.own_id.empty() ? UidText(job.uid) : job.own_id);
  out += ",\"token\":\"";
  out += TokenText(job.token);
  out += "\",\"attempt\":";
  AppendInteger(out, job.attempt);
  AppendDue(out, job.due);
  if (!job.key.empty()) {
    out += ",\"key\":";
    AppendString(out, job.key);
  }
  if (!job.headers.empty()) AppendHeaders(out, job.headers);
  if (IsUtf8(job.payload)) {
    out += ",\"payload\":";
    AppendString(out, job.payload);
  } else {
    out += ",\"payload_base64\":\"";
    AppendBase64(out, job.payload);
    out += '"';
  }
  out += '}';
}

}  // namespace

std::string EncodeSubmitted(std::span<const Submitted> jobs, std::span<const std::string_view> own_ids) {
  std::string out;
  out.reserve(16 + jobs.size() * 80);
  out += "{\"jobs\":[";
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"id\":";
    if (!own_ids[i].empty()) {
      AppendString(out, own_ids[i]);
    } else if (jobs[i].uid != 0) {
      AppendString(out, UidText(jobs[i].uid));
    } else {
      out += "null";
    }
    if (IsStored(jobs[i].outcome)) AppendDue(out, jobs[i].due);
    out += ",\"outcome\":\"";
    out += NameOf(jobs[i].outcome);
    out += "\"}";
  }
  out += "]}";
  return out;
}

std::string EncodeDelivered(const JobBatch& batch) {
  size_t payload_bytes = 0;
  for (const JobView& job : batch.jobs) payload_bytes += job.payload.size();
  std::string out;
  out.reserve(16 + batch.jobs.size() * 128 + payload_bytes);
  out += "{\"jobs\":[";
  for (const JobView& job : batch.jobs) {
    if (out.back() != '[') out += ',';
    AppendJob(out, job);
  }
  out += "]}";
  return out;
}

std::string EncodeSettled(std::span<const Token> tokens, std::span<const SettleOutcome> outcomes) {
  std::string out;
  out.reserve(16 + tokens.size() * 64);
  out += "{\"results\":[";
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"token\":\"";
    out += TokenText(tokens[i]);
    out += "\",\"outcome\":\"";
    out += NameOf(outcomes[i]);
    out += "\"}";
  }
  out += "]}";
  return out;
}

std::string EncodeCancelled(AmendOutcome outcome) { return fmt::format("{{\"outcome\":\"{}\"}}", NameOf(outcome)); }

std::string EncodeError(const Error& error) {
  std::string out = "{\"error\":{\"code\":\"";
  out += RowOf(error.code).name;
  out += "\",\"message\":";
  AppendString(out, IsUtf8(error.message) ? std::string_view(error.message) : "the request is not valid UTF-8");
  if (!error.field.empty() && IsUtf8(error.field)) {
    out += ",\"field\":";
    AppendString(out, error.field);
  }
  out += "}}";
  return out;
}

bool IsStored(SubmitOutcome outcome) {
  return outcome == SubmitOutcome::kAccepted || outcome == SubmitOutcome::kDuplicate;
}

Code CodeOf(SubmitOutcome outcome) {
  switch (outcome) {
    case SubmitOutcome::kConflict:
    case SubmitOutcome::kInFlight:
      return Code::kConflict;
    case SubmitOutcome::kOverCapacity:
      return Code::kOverCapacity;
    case SubmitOutcome::kStorageFull:
      return Code::kStorageFull;
    case SubmitOutcome::kOverloaded:
      return Code::kOverloaded;
    case SubmitOutcome::kAccepted:
    case SubmitOutcome::kDuplicate:
      break;
  }
  return Code::kInternal;
}

}  // namespace tocsin::http
