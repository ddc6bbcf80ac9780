#include "frontend/http/encode.h"

#include "frontend/http/text.h"
#include "model/names.h"

namespace tocsin::http {
namespace {

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

/// ,"name":value
void AppendField(std::string& out, std::string_view name, int64_t value) {
  out += ",\"";
  out += name;
  out += "\":";
  AppendInteger(out, value);
}

void AppendField(std::string& out, std::string_view name, std::string_view value) {
  out += ",\"";
  out += name;
  out += "\":";
  AppendString(out, value);
}

/// As text where that is shorter: control characters are six bytes each when they are escaped.
void AppendPayload(std::string& out, std::string_view payload) {
  const size_t begin = out.size();
  if (IsUtf8(payload)) {
    AppendField(out, "payload", payload);
    const size_t escaped = out.size() - begin;
    if (escaped <= 64 + payload.size() / 3 * 4) return;
    out.resize(begin);
  }
  out += ",\"payload_base64\":\"";
  AppendBase64(out, payload);
  out += '"';
}

void AppendId(std::string& out, const JobView& job) {
  out += "{\"id\":";
  AppendString(out, job.own_id.empty() ? UidText(job.uid) : job.own_id);
}

/// What every job is shown with, to the end.
void AppendContent(std::string& out, const JobView& job) {
  AppendField(out, "attempt", job.attempt);
  AppendField(out, "max_attempts", job.max_attempts);
  AppendDue(out, job.due);
  if (job.state == State::kLeased) AppendField(out, "lease_deadline_ms", ToMs(job.lease_deadline));
  if (!job.key.empty()) AppendField(out, "key", job.key);
  if (!job.headers.empty()) AppendHeaders(out, job.headers);
  AppendPayload(out, job.payload);
  out += '}';
}

void AppendDelivered(std::string& out, const JobView& job) {
  AppendId(out, job);
  out += ",\"token\":\"";
  out += TokenText(job.token);
  out += '"';
  AppendContent(out, job);
}

void AppendShown(std::string& out, const JobView& job) {
  AppendId(out, job);
  AppendField(out, "state", kStateNames[static_cast<size_t>(job.state)]);
  AppendField(out, "trigger", kTriggerNames[static_cast<size_t>(job.trigger)]);
  if (job.trigger != Trigger::kTime) AppendField(out, "count_left", job.count_left);
  // A reason may end within a character: it is cut to its limit.
  if (!job.reason.empty()) AppendField(out, "reason", IsUtf8(job.reason) ? job.reason : "not valid UTF-8");
  AppendContent(out, job);
}

// Of an answer with one element for each job or token: around them, and each with its longest outcome.
constexpr size_t kFrameBytes = 16;
constexpr size_t kSubmittedBytes = 80;  // with a server's id
constexpr size_t kSettledBytes = 64;

std::string StartJobs(const JobBatch& batch) {
  size_t payload_bytes = 0;
  for (const JobView& job : batch.jobs) payload_bytes += job.payload.size();
  std::string out;
  out.reserve(64 + batch.jobs.size() * 192 + payload_bytes);
  out += "{\"jobs\":[";
  return out;
}

}  // namespace

std::string EncodeSubmitted(std::span<const Submitted> jobs, std::span<const std::string_view> own_ids) {
  std::string out;
  out.reserve(kFrameBytes + jobs.size() * kSubmittedBytes);
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

size_t SubmittedBytesMax(std::span<const std::string_view> own_ids) {
  size_t bytes = kFrameBytes;
  // Names have no control characters, so that an escape is two bytes.
  for (const std::string_view id : own_ids) bytes += kSubmittedBytes + 2 * id.size();
  return bytes;
}

std::string EncodeDelivered(const JobBatch& batch) {
  std::string out = StartJobs(batch);
  for (const JobView& job : batch.jobs) {
    if (out.back() != '[') out += ',';
    AppendDelivered(out, job);
  }
  out += "]}";
  return out;
}

std::string EncodeJob(const JobView& job) {
  std::string out;
  AppendShown(out, job);
  return out;
}

std::string EncodePage(const Page& page) {
  std::string out = StartJobs(page.jobs);
  for (const JobView& job : page.jobs.jobs) {
    if (out.back() != '[') out += ',';
    AppendShown(out, job);
  }
  out += ']';
  if (!page.cursor.empty()) AppendField(out, "cursor", page.cursor);
  out += '}';
  return out;
}

std::string EncodeSettled(std::span<const Token> tokens, std::span<const SettleOutcome> outcomes) {
  std::string out;
  out.reserve(SettledBytesMax(tokens.size()));
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

size_t SettledBytesMax(size_t tokens) { return kFrameBytes + tokens * kSettledBytes; }

std::string EncodeAmended(const Amended& amended, std::string_view done) {
  std::string out = fmt::format("{{\"outcome\":\"{}\"", NameOf(amended.outcome, done));
  if (amended.outcome == AmendOutcome::kDone && amended.due != Time{}) AppendDue(out, amended.due);
  out += '}';
  return out;
}

std::string EncodeCounted(const Counted& counted) {
  return fmt::format("{{\"outcome\":\"{}\",\"left\":{}}}", NameOf(counted.outcome), counted.left);
}

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

}  // namespace tocsin::http
