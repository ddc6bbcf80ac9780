#include "cli/resp_calls.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/api.h"
#include "cli/output.h"
#include "cli/resp_fields.h"
#include "cli/resp_json.h"
#include "model/delivery.h"

namespace tocsin::cli {

using Kind = RespValue::Kind;

struct RespRow {
  std::string_view method;
  std::string_view path;  // {} stands for a name
  std::string_view command;
  std::span<const Field> fields;
  Kind kind;  // of the reply
  Result<json::object> (*read)(const RespPlan& plan, std::vector<RespValue>& replies);
};

namespace {

constexpr std::array kJobFields{
    Field{"payload", "", AddPayload},
    Field{"payload_base64", "", AddNothing},
    Field{"id", "ID", AddText},
    Field{"key", "KEY", AddText},
    Field{"delay_ms", "DELAY", AddInteger},
    Field{"due_ms", "AT", AddInteger},
    Field{"trigger", "TRIGGER", AddText},
    Field{"count", "COUNT", AddInteger},
    Field{"max_attempts", "ATTEMPTS", AddInteger},
    Field{"on_conflict", "", AddConflict},
    Field{"headers", "HEADER", AddHeaders},
};
constexpr std::array kKeyFields{Field{"key", "KEY", AddText}};
constexpr std::array kAmendFields{
    Field{"key", "KEY", AddText},
    Field{"delay_ms", "DELAY", AddInteger},
    Field{"due_ms", "AT", AddInteger},
    Field{"payload", "PAYLOAD", AddPayload},
    Field{"payload_base64", "", AddNothing},
};
constexpr std::array kCountFields{Field{"event", "", AddText}, Field{"by", "BY", AddInteger},
                                  Field{"key", "KEY", AddText}};
constexpr std::array kListFields{Field{"state", "STATE", AddText}, Field{"limit", "LIMIT", AddText},
                                 Field{"cursor", "CURSOR", AddText}, Field{"reason", "REASON", AddText}};
constexpr std::array kReserveFields{Field{"max", "MAX", AddInteger}, Field{"wait_ms", "WAIT", AddInteger},
                                    Field{"lease_ms", "LEASE", AddInteger}};
constexpr std::array kAckFields{Field{"tokens", "", AddTokens}};
constexpr std::array kNackFields{Field{"tokens", "", AddTokens}, Field{"delay_ms", "DELAY", AddInteger},
                                 Field{"reason", "REASON", AddText}, Field{"dead", "DEAD", AddSwitch}};
constexpr std::array kExtendFields{Field{"tokens", "", AddTokens}, Field{"lease_ms", "LEASE", AddInteger}};
constexpr std::array kTopicFields{
    Field{"slots", "slots", AddInteger},
    Field{"capacity_jobs", "capacity_jobs", AddInteger},
    Field{"capacity_bytes", "capacity_bytes", AddInteger},
    Field{"lease_ms", "lease_ms", AddInteger},
    Field{"max_attempts", "max_attempts", AddInteger},
    Field{"backoff_base_ms", "backoff_base_ms", AddInteger},
    Field{"backoff_max_ms", "backoff_max_ms", AddInteger},
    Field{"count_limit", "count_limit", AddInteger},
    Field{"retention_ms", "retention_ms", AddInteger},
    Field{"paused", "paused", AddBool},
    Field{"delivery", "", AddDelivery},
};
constexpr std::array kDeadFields{Field{"", "DEAD", AddWord}};
constexpr std::array kClockFields{Field{"ms", "", AddInteger}};

template <class Show>
json::array ArrayFrom(std::vector<RespValue>& items, Show show) {
  json::array array;
  array.reserve(items.size());
  for (RespValue& item : items) array.push_back(show(item));
  return array;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// "delivery.url" for what a topic's delivery says by that name or by "url"; otherwise nothing, or the topic.
std::string DeliveryFieldNamed(const std::string& word) {
  if (word.starts_with("delivery.") || word == "topic") return word;
  const auto names = DeliverySettingNames();
  const bool setting = word == "sink" || std::ranges::find(names, word) != names.end();
  return setting ? fmt::format("delivery.{}", word) : "";
}

/// What the message is about, where it says so with its first word; a reply does not name it apart.
std::string FieldNamed(const RespRow& row, const Error& error, std::string_view message) {
  if (error.code == Code::kTopicNotFound) return "topic";
  const std::string word = Lower(message.substr(0, message.find(' ')));
  for (const Field& field : row.fields) {
    if (word == field.name || word + "_ms" == field.name) return std::string(field.name);
    if (!word.empty() && word == Lower(field.word)) return std::string(field.name);
  }
  if (row.command == "TOPIC.SET") return DeliveryFieldNamed(word);
  return word == "topic" ? "topic" : word == "id" ? "id" : "";
}

Error ErrorOf(const RespRow& row, const RespValue& reply) {
  Error error = ErrorOfReply(reply.text);
  error.field = FieldNamed(row, error, std::string_view(error.message).substr(error.message.find(": ") + 2));
  if (!error.field.empty()) error.message += fmt::format(" ({})", error.field);
  return error;
}

/// What the reply of a submit says, or its error where that is an outcome: "CONFLICT in_flight: ...".
Result<json::object> SubmittedOf(const RespRow& row, const json::object& job, const RespValue& reply) {
  if (!reply.is(Kind::kError)) {
    return json::object{{"id", JsonAt(reply, 0)}, {"due_ms", JsonAt(reply, 2)}, {"outcome", JsonAt(reply, 1)}};
  }
  const std::string_view message =
      std::string_view(reply.text).substr(std::min(reply.text.find(' '), reply.text.size()));
  for (const std::string_view outcome : {"conflict", "in_flight", "over_capacity", "storage_full", "overloaded"}) {
    if (!message.starts_with(fmt::format(" {}: ", outcome))) continue;
    const json::value* const id = job.if_contains("id");
    return json::object{{"id", id == nullptr ? json::value(nullptr) : *id}, {"outcome", outcome}};
  }
  return std::unexpected(ErrorOf(row, reply));
}

bool IsAboutTheContent(Code code) { return code == Code::kInvalidArgument || code == Code::kTooLarge; }

Result<json::object> ReadSubmitted(const RespPlan& plan, std::vector<RespValue>& replies) {
  const json::array& jobs = ArrayOf(*plan.body, "jobs");
  json::array answers;
  for (size_t i = 0; i < replies.size(); ++i) {
    auto one = SubmittedOf(*plan.row, jobs.empty() ? *plan.body : jobs[i].get_object(), replies[i]);
    if (!one && (jobs.empty() || !IsAboutTheContent(one.error().code))) return one;
    answers.push_back(one ? *std::move(one) : json::object{{"outcome", one.error().message}});
  }
  return json::object{{"jobs", std::move(answers)}};
}

Result<json::object> ReadDelivered(const RespPlan&, std::vector<RespValue>& replies) {
  return json::object{{"jobs", ArrayFrom(replies[0].items, DeliveredJson)}};
}

Result<json::object> ReadSettled(const RespPlan& plan, std::vector<RespValue>& replies) {
  const json::array& tokens = ArrayOf(*plan.body, "tokens");
  json::array results;
  for (size_t i = 0; i < std::min(tokens.size(), replies[0].items.size()); ++i) {
    results.push_back({{"token", tokens[i]}, {"outcome", JsonAt(replies[0], i)}});
  }
  return json::object{{"results", std::move(results)}};
}

Result<json::object> ReadJob(const RespPlan& plan, std::vector<RespValue>& replies) {
  if (replies[0].is(Kind::kMap)) return JobJson(replies[0]);
  return Refuse(Code::kNotFound, "id", "no job {} is stored", Printable(Shown(plan.names[1])));
}

Result<json::object> ReadPage(const RespPlan&, std::vector<RespValue>& replies) {
  json::object page;
  if (replies[0].items.size() < 2) return page;
  page["jobs"] = ArrayFrom(replies[0].items[1].items, JobJson);
  if (const json::value cursor = JsonAt(replies[0], 0); cursor.is_string()) page["cursor"] = cursor;
  return page;
}

Result<json::object> ReadMap(const RespPlan&, std::vector<RespValue>& replies) { return ObjectJson(replies[0]); }

Result<json::object> ReadTopics(const RespPlan&, std::vector<RespValue>& replies) {
  return json::object{{"topics", ArrayFrom(replies[0].items, ObjectJson)}};
}

Result<json::object> ReadOutcome(const RespPlan&, std::vector<RespValue>& replies) {
  return json::object{{"outcome", ToJson(replies[0])}};
}

/// [outcome, due_ms or null]
Result<json::object> ReadAmended(const RespPlan&, std::vector<RespValue>& replies) {
  json::object answer{{"outcome", JsonAt(replies[0], 0)}};
  if (const json::value due = JsonAt(replies[0], 1); !due.is_null()) answer["due_ms"] = due;
  return answer;
}

Result<json::object> ReadCounted(const RespPlan&, std::vector<RespValue>& replies) {
  return json::object{{"outcome", JsonAt(replies[0], 0)}, {"left", JsonAt(replies[0], 1)}};
}

Result<json::object> ReadDropped(const RespPlan&, std::vector<RespValue>&) {
  return json::object{{"outcome", "dropped"}};
}

Result<json::object> ReadPurged(const RespPlan&, std::vector<RespValue>& replies) {
  return json::object{{"purged", ToJson(replies[0])}};
}

Result<json::object> ReadRedriven(const RespPlan&, std::vector<RespValue>& replies) {
  return json::object{{"redriven", ToJson(replies[0])}};
}

Result<json::object> ReadClock(const RespPlan&, std::vector<RespValue>& replies) {
  return json::object{{"now_ms", ToJson(replies[0])}};
}

/// INFO leaves the figures out for those who may not see them; HTTP refuses the call.
Result<json::object> ReadStats(const RespPlan&, std::vector<RespValue>& replies) {
  json::object stats = StatsJson(replies[0].text);
  if (!ObjectOf(stats, "totals").empty()) return stats;
  return Fail(Code::kForbidden, "{}: the figures need the scope admin for all topics (no topic prefix)",
              RowOf(Code::kForbidden).name);
}

constexpr std::array kRows{
    RespRow{"POST", "topics/{}/jobs", "JOB.SUBMIT", kJobFields, Kind::kArray, ReadSubmitted},
    RespRow{"GET", "topics/{}/jobs", "JOB.LIST", kListFields, Kind::kArray, ReadPage},
    RespRow{"GET", "topics/{}/jobs/{}", "JOB.GET", kKeyFields, Kind::kMap, ReadJob},
    RespRow{"PATCH", "topics/{}/jobs/{}", "JOB.AMEND", kAmendFields, Kind::kArray, ReadAmended},
    RespRow{"DELETE", "topics/{}/jobs/{}", "JOB.CANCEL", kKeyFields, Kind::kText, ReadOutcome},
    RespRow{"POST", "topics/{}/jobs/{}/fire", "JOB.FIRE", kKeyFields, Kind::kArray, ReadAmended},
    RespRow{"POST", "topics/{}/jobs/{}/count", "JOB.COUNT", kCountFields, Kind::kArray, ReadCounted},
    RespRow{"POST", "topics/{}/reserve", "JOB.RESERVE", kReserveFields, Kind::kArray, ReadDelivered},
    RespRow{"POST", "topics/{}/ack", "JOB.ACK", kAckFields, Kind::kArray, ReadSettled},
    RespRow{"POST", "topics/{}/nack", "JOB.NACK", kNackFields, Kind::kArray, ReadSettled},
    RespRow{"POST", "topics/{}/extend", "JOB.EXTEND", kExtendFields, Kind::kArray, ReadSettled},
    RespRow{"PUT", "topics/{}", "TOPIC.SET", kTopicFields, Kind::kMap, ReadMap},
    RespRow{"GET", "topics/{}", "TOPIC.GET", {}, Kind::kMap, ReadMap},
    RespRow{"GET", "topics", "TOPIC.LIST", {}, Kind::kArray, ReadTopics},
    RespRow{"POST", "topics/{}/test", "TOPIC.TEST", {}, Kind::kMap, ReadMap},
    RespRow{"POST", "topics/{}/pause", "TOPIC.PAUSE", {}, Kind::kMap, ReadMap},
    RespRow{"POST", "topics/{}/resume", "TOPIC.RESUME", {}, Kind::kMap, ReadMap},
    RespRow{"POST", "topics/{}/purge", "TOPIC.PURGE", {}, Kind::kInteger, ReadPurged},
    RespRow{"POST", "topics/{}/dead/purge", "TOPIC.PURGE", kDeadFields, Kind::kInteger, ReadPurged},
    RespRow{"POST", "topics/{}/dead/redrive", "JOB.REDRIVE", {}, Kind::kInteger, ReadRedriven},
    RespRow{"DELETE", "topics/{}", "TOPIC.DROP", {}, Kind::kText, ReadDropped},
    RespRow{"GET", "stats", "INFO", {}, Kind::kText, ReadStats},
    RespRow{"GET", "cluster", "NODES", {}, Kind::kMap, ReadMap},
    RespRow{"POST", "clock/advance", "CLOCK.ADVANCE", kClockFields, Kind::kInteger, ReadClock},
};

std::string_view TakeUntil(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

/// The names that stand for the {} of a pattern; nothing where the path does not match.
std::optional<std::vector<std::string>> Match(std::string_view pattern, std::string_view path) {
  std::vector<std::string> names;
  while (!pattern.empty() || !path.empty()) {
    if (pattern.empty() || path.empty()) return std::nullopt;
    const std::string_view wanted = TakeUntil(pattern, '/');
    const std::string_view part = TakeUntil(path, '/');
    if (wanted == "{}") {
      names.push_back(DecodePercent(part, false).value_or(""));
    } else if (wanted != part) {
      return std::nullopt;
    }
  }
  return names;
}

json::object ParseQuery(std::string_view text) {
  json::object query;
  while (!text.empty()) {
    std::string_view pair = TakeUntil(text, '&');
    const std::string_view name = TakeUntil(pair, '=');
    query[name] = DecodePercent(pair, true).value_or("");
  }
  return query;
}

Status CheckKnown(const RespRow& row, const json::object& body) {
  for (const auto& entry : body) {
    const std::string_view name = entry.key();
    if (std::ranges::find(row.fields, name, &Field::name) != row.fields.end()) continue;
    std::vector<std::string_view> known;
    for (const Field& field : row.fields) known.push_back(field.name);
    return Refuse(Code::kUnknownField, name, "unknown field \"{}\"{}", Printable(Shown(name)), DidYouMean(name, known));
  }
  return {};
}

Status AddCommand(RespPlan& plan, const Input& input) {
  TOCSIN_TRY(CheckKnown(*plan.row, input.body));
  Words words{std::string(plan.row->command)};
  words.insert(words.end(), plan.names.begin(), plan.names.end());
  for (const Field& field : plan.row->fields) TOCSIN_TRY(field.add(words, field, input));
  plan.request.Add(words);
  return {};
}

/// A command for each job of a batch.
Status AddBatch(RespPlan& plan, const json::array& jobs) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i].is_object()) return WrongType(fmt::format("jobs[{}]", i), "an object");
    TOCSIN_TRY(AddCommand(plan, {.body = jobs[i].get_object(), .query = {}}));
  }
  return {};
}

}  // namespace

Result<RespPlan> PlanCall(std::string_view method, std::string_view target, const json::object& body) {
  std::string_view query = target;
  std::string_view path = TakeUntil(query, '?');
  constexpr std::string_view kRoot = "/v1/";
  if (path.starts_with(kRoot)) path.remove_prefix(kRoot.size());
  for (const RespRow& row : kRows) {
    auto names = row.method == method ? Match(row.path, path) : std::nullopt;
    if (!names) continue;
    RespPlan plan{.row = &row, .names = *std::move(names), .body = &body, .request = {}, .reads = method == "GET"};
    const json::array& jobs = ArrayOf(body, "jobs");
    TOCSIN_TRY(jobs.empty() ? AddCommand(plan, {.body = body, .query = ParseQuery(query)}) : AddBatch(plan, jobs));
    return plan;
  }
  return Fail(Code::kInternal, "no command for {} {}", method, target);
}

Result<json::object> AnswerOf(const RespPlan& plan, std::vector<RespValue> replies) {
  const bool submit = plan.row->read == ReadSubmitted;  // its errors may be outcomes
  for (const RespValue& reply : replies) {
    if (reply.is(Kind::kError) && submit) continue;
    if (reply.is(Kind::kError)) return std::unexpected(ErrorOf(*plan.row, reply));
    if (!reply.is(plan.row->kind) && !reply.is(Kind::kNull)) {
      return Fail(Code::kInternal, "the server answered {} with something else than it should", plan.row->command);
    }
  }
  return plan.row->read(plan, replies);
}

}  // namespace tocsin::cli
