#include "cli/transfer/transfer.h"

#include <array>

#include "base/hash.h"

namespace tocsin::cli {
namespace {

constexpr std::array<std::string_view, 6> kKept{"id", "key", "max_attempts", "headers", "payload", "payload_base64"};
/// Fields of an export or of a listing that a submit does not take.
constexpr std::array<std::string_view, 6> kForPeople{"topic",  "state",      "attempt",
                                                     "reason", "count_left", "lease_deadline_ms"};

}  // namespace

json::object TransferLine(std::string_view topic, const json::object& shown) {
  json::object line{{"topic", topic}};
  for (const std::string_view name : kKept) {
    if (const json::value* const value = shown.if_contains(name)) line[name] = *value;
  }
  const json::value* const due = shown.if_contains("due_ms");
  if (due != nullptr && !due->is_null()) line["due_ms"] = *due;
  // A job whose count is reached is due like any other.
  if (const int64_t left = IntegerOf(shown, "count_left"); left > 0) {
    line["trigger"] = TextOf(shown, "trigger");
    line["count"] = left;
  }
  line["state"] = TextOf(shown, "state");
  return line;
}

Result<TransferJob> ParseTransferLine(std::string_view line, int64_t number, std::string_view topic) {
  boost::system::error_code problem;
  json::value value = json::parse({line.data(), line.size()}, problem);
  if (problem || !value.is_object()) return Fail(Code::kInvalidArgument, "not a JSON object");
  TransferJob parsed{.topic = std::string(topic), .job = std::move(value.as_object())};
  if (parsed.topic.empty()) parsed.topic = TextOf(parsed.job, "topic");
  if (parsed.topic.empty()) return Fail(Code::kInvalidArgument, "no topic: add the field topic, or give --topic");
  if (const std::string state = TextOf(parsed.job, "state"); state == "done" || state == "cancelled") {
    return Fail(Code::kInvalidArgument, "its state is {}: it would be delivered again; remove that field to submit it",
                state);
  }
  for (const std::string_view name : kForPeople) parsed.job.erase(name);
  if (!parsed.job.contains("id")) {
    const auto seed = static_cast<uint64_t>(number);
    parsed.job["id"] = fmt::format("line-{}-{:016x}{:016x}", number, Hash64(line, seed), Hash64(line, ~seed));
  }
  return parsed;
}

}  // namespace tocsin::cli
