#include "sinks/webhook/batch.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "sinks/webhook/outcome_list.h"

namespace tocsin::webhook {
namespace {

constexpr size_t kReasonBytesMax = 200;

/// `text` is valid UTF-8.
void AppendString(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      out += {'\\', 'u', '0', '0', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendText(std::string& out, std::string_view name, std::string_view text) {
  fmt::format_to(std::back_inserter(out), ",\"{}\":", name);
  AppendString(out, text);
}

void AppendHeaders(std::string& out, const JobView& job) {
  if (job.headers.empty()) return;
  out += ",\"headers\":{";
  for (const HeaderView& header : job.headers) {
    if (&header != &job.headers.front()) out += ',';
    AppendString(out, header.name);
    out += ':';
    AppendString(out, header.value);
  }
  out += '}';
}

/// As base64 if it is not UTF-8, or if escapes would make it longer than base64.
void AppendPayload(std::string& out, std::string_view payload) {
  constexpr size_t kSlack = 64;
  const size_t begin = out.size();
  if (IsUtf8(payload)) {
    AppendText(out, "payload", payload);
    if (out.size() - begin <= kSlack + payload.size() / 3 * 4) return;
    out.resize(begin);
  }
  out += ",\"payload_base64\":\"";
  AppendBase64(out, payload);
  out += '"';
}

void AppendJob(std::string& out, std::string_view topic, const JobView& job) {
  out += "{\"id\":";
  AppendString(out, job.Id());
  AppendText(out, "topic", topic);
  fmt::format_to(std::back_inserter(out), ",\"attempt\":{}", job.attempt);
  if (job.due != kNever) fmt::format_to(std::back_inserter(out), ",\"due_ms\":{}", ToMs(job.due));
  AppendText(out, "token", TokenText(job.token));
  if (!job.key.empty()) AppendText(out, "key", job.key);
  AppendHeaders(out, job);
  AppendPayload(out, job.payload);
  out += '}';
}

/// The reason that a receiver gives, for people: one line, not too long.
std::string ReasonText(std::string_view text) {
  std::string reason(text.substr(0, kReasonBytesMax));
  while (!IsUtf8(reason)) reason.pop_back();  // JSON is UTF-8, so only its last character can be cut
  std::ranges::replace_if(reason, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return reason;
}

Delivered DeliveredOf(const ListedOutcome& listed) {
  const std::string given = ReasonText(listed.reason);
  const auto reason = [&](std::string_view otherwise) {
    return given.empty() ? std::string(otherwise) : fmt::format("the receiver says: {}", given);
  };
  if (listed.outcome == "ok") return {};
  if (listed.outcome == "refuse") {
    Delivered refused = Refuse(reason("the receiver refused it for good"));
    refused.quotes = !given.empty();
    return refused;
  }
  if (listed.outcome != "retry") return Retry("the receiver's outcome for the job is not ok, retry or refuse");
  Delivered retry = Retry(reason("the receiver asked for another try"));
  retry.quotes = !given.empty();
  if (listed.delay_ms.value_or(-1) >= 0) retry.delay = std::min(Millis(*listed.delay_ms), kRetryDelayMax);
  return retry;
}

/// The jobs of a batch, and which of them have got an outcome.
class PendingJobs {
 public:
  explicit PendingJobs(std::span<const JobView* const> jobs) : jobs_(jobs), answered_(jobs.size()) {
    for (size_t i = 0; i < jobs.size(); ++i) by_id_.emplace(jobs[i]->Id(), i);
  }

  /// The job that an entry means: by its delivery token if it names one, else the first with its id.
  std::optional<size_t> Take(const ListedOutcome& entry) {
    const std::optional<size_t> found = entry.token.empty() ? OfId(entry.id) : OfToken(entry.token);
    if (found) answered_[*found] = true;
    return found;
  }

 private:
  std::optional<size_t> OfId(std::string_view id) {
    auto at = by_id_.lower_bound(id);
    // Erased, so that a long list that repeats an id does not pass them again and again.
    while (at != by_id_.end() && at->first == id && answered_[at->second]) at = by_id_.erase(at);
    return at != by_id_.end() && at->first == id ? std::optional(at->second) : std::nullopt;
  }
  std::optional<size_t> OfToken(std::string_view token) {
    for (size_t i = by_token_.size(); i < jobs_.size(); ++i) by_token_.emplace(TokenText(jobs_[i]->token), i);
    const auto at = by_token_.find(token);
    if (at == by_token_.end() || answered_[at->second]) return std::nullopt;
    return at->second;
  }

  const std::span<const JobView* const> jobs_;
  std::vector<bool> answered_;
  std::multimap<std::string, size_t, std::less<>> by_id_;
  std::map<std::string, size_t, std::less<>> by_token_;  // filled when an entry first names a delivery token
};

}  // namespace

void AppendBatch(std::string& out, std::string_view topic, std::span<const JobView* const> jobs) {
  out += "{\"jobs\":[";
  for (const JobView* job : jobs) {
    if (job != jobs.front()) out += ',';
    AppendJob(out, topic, *job);
  }
  out += "]}";
}

size_t BatchBytes(const JobView& job) {
  constexpr size_t kNames = 160;
  size_t bytes = kNames + job.own_id.size() + job.key.size() + job.payload.size() / 3 * 4;
  for (const HeaderView& header : job.headers) bytes += header.name.size() + header.value.size();
  return bytes;
}

size_t OutcomesBytesMax(size_t jobs) {
  constexpr size_t kAround = 4 << 10;
  constexpr size_t kEach = 2 << 10;
  return std::min(kAround + kEach * jobs, kBatchBytesMax);
}

std::vector<Delivered> ReadOutcomes(std::string_view body, std::span<const JobView* const> jobs) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) return std::vector<Delivered>(jobs.size());
  std::vector<Delivered> outcomes(jobs.size(), Retry("the receiver's list of outcomes lacks the job"));
  PendingJobs pending(jobs);
  const bool is_list = ReadOutcomeList(body, [&](const ListedOutcome& entry) {
    if (const auto at = pending.Take(entry)) outcomes[*at] = DeliveredOf(entry);
  });
  if (is_list) return outcomes;
  return std::vector<Delivered>(jobs.size(),
                                Retry("the receiver answered 2xx with a body that is not a list of outcomes"));
}

}  // namespace tocsin::webhook
