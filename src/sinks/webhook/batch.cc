#include "sinks/webhook/batch.h"

#include <algorithm>
#include <map>
#include <optional>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/text.h"

namespace tocsin::webhook {
namespace {

namespace json = boost::json;

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

std::string_view TextOf(const json::object& entry, std::string_view name) {
  const json::value* value = entry.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_string()) return {};
  return {value->get_string().data(), value->get_string().size()};
}

Delivered OutcomeOf(const json::object& entry) {
  const std::string_view outcome = TextOf(entry, "outcome");
  const std::string given = ReasonText(TextOf(entry, "reason"));
  const auto reason = [&](std::string_view otherwise) {
    return given.empty() ? std::string(otherwise) : fmt::format("the receiver says: {}", given);
  };
  if (outcome == "ok") return {};
  if (outcome == "refuse") {
    return Refuse(reason("the receiver refused it for good"));
  }
  if (outcome != "retry") return Retry("the receiver's outcome for the job is not ok, retry or refuse");
  Delivered retry = Retry(reason("the receiver asked for another try"));
  const json::value* delay = entry.if_contains("delay_ms");
  if (delay == nullptr) return retry;
  boost::system::error_code bad;
  const auto delay_ms = delay->to_number<int64_t>(bad);
  if (!bad && delay_ms >= 0) retry.delay = std::min(Millis(delay_ms), kRetryDelayMax);
  return retry;
}

/// The jobs of a batch, and which of them have got an outcome.
class PendingJobs {
 public:
  explicit PendingJobs(std::span<const JobView* const> jobs) : jobs_(jobs), answered_(jobs.size()) {
    for (size_t i = 0; i < jobs.size(); ++i) by_id_.emplace(jobs[i]->Id(), i);
  }

  /// The job that an entry means: by its delivery token if it names one, else the first with its id.
  std::optional<size_t> Take(const json::object& entry) {
    const std::string_view token = TextOf(entry, "token");
    const std::optional<size_t> found = token.empty() ? OfId(TextOf(entry, "id")) : OfToken(token);
    if (found) answered_[*found] = true;
    return found;
  }

 private:
  std::optional<size_t> OfId(std::string_view id) const {
    for (auto at = by_id_.lower_bound(id); at != by_id_.end() && at->first == id; ++at) {
      if (!answered_[at->second]) return at->second;
    }
    return std::nullopt;
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

/// Null if the body is something else.
const json::array* FindList(const json::value& body) {
  if (!body.is_object()) return nullptr;
  const json::value* list = body.get_object().if_contains("outcomes");
  return list != nullptr && list->is_array() ? &list->get_array() : nullptr;
}

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
  boost::system::error_code bad;
  const json::value parsed = json::parse({body.data(), body.size()}, bad);
  const json::array* list = bad ? nullptr : FindList(parsed);
  if (list == nullptr) {
    return std::vector<Delivered>(jobs.size(),
                                  Retry("the receiver answered 2xx with a body that is not a list of outcomes"));
  }
  std::vector<Delivered> outcomes(jobs.size(), Retry("the receiver's list of outcomes lacks the job"));
  PendingJobs pending(jobs);
  for (const json::value& entry : *list) {
    if (!entry.is_object()) continue;
    if (const auto at = pending.Take(entry.get_object())) outcomes[*at] = OutcomeOf(entry.get_object());
  }
  return outcomes;
}

}  // namespace tocsin::webhook
