#include "cli/verbs/view.h"

#include <algorithm>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/text/human.h"
#include "cli/verbs/topic_flags.h"

namespace tocsin::cli {
namespace {

constexpr int kTopicColumn = 19;

std::string MomentAndDistance(int64_t ms, Time now) {
  return fmt::format("{} ({})", ShowMoment(FromMs(ms)), ShowDistance(FromMs(ms), now));
}

/// Its name in a column of `width`, and its value; nothing if that is empty.
void Line(Output& out, int width, std::string_view name, std::string_view value) {
  if (!value.empty()) out.Print("{} {}\n", out.Paint(Colour::kDim, fmt::format("{:<{}}", name, width)), value);
}

std::string SettingText(std::string_view field, const json::value& value) {
  if (value.is_bool()) return value.get_bool() ? "yes" : "no";
  if (value.is_string()) return value.get_string().empty() ? "none" : Printable(value.get_string());
  if (!value.is_int64()) return Printable(json::serialize(value));
  if (value.get_int64() == 0 && field.starts_with("capacity_")) return "no limit";
  if (value.get_int64() == 0 && field.starts_with("alert_")) return "as the server";
  if (field.ends_with("_ms")) return ExactDuration(Millis(value.get_int64()));
  if (field.ends_with("bytes")) return ShowSize(value.get_int64());
  return std::to_string(value.get_int64());
}

/// Each setting by the name of its flag.
void PrintSettings(Output& out, const json::object& settings) {
  for (const auto& [name, value] : settings) {
    if (value.is_object()) continue;
    const std::string text = SettingText(name, value);
    Line(out, kTopicColumn, Printable(FlagNameOf(name)),
         name == "paused" && text == "yes" ? out.Paint(Colour::kYellow, text) : text);
  }
}

struct Outcome {
  std::string_view name;
  std::string_view text;
  int status;
};

constexpr Outcome kOutcomes[] = {
    {"accepted", "", kExitOk},
    {"duplicate", "", kExitOk},
    {"amended", "", kExitOk},
    {"cancelled", "it will never be delivered", kExitOk},
    {"confirmed", "the receiver has taken the probe", kExitOk},
    {"counted", "", kExitOk},
    {"dead", "it is a dead letter now", kExitOk},
    {"dropped", "the topic is removed with all its jobs", kExitOk},
    {"fired", "it is due now", kExitOk},
    {"ok", "", kExitOk},
    {"redriven", "it is due now, with all its attempts", kExitOk},
    {"removed", "the dead letter is gone", kExitOk},
    {"repeated", "this event was counted before", kExitOk},
    {"revoked", "the job is due again, and its delivery token is stale", kExitOk},

    {"conflict", "the id is stored with other content", kExitNo},
    {"finished", "it is done, cancelled or dead; nothing changed", kExitNo},
    {"in_flight", "a consumer has it; nothing changed", kExitNo},
    {"not_counted", "the job does not wait for events, or has fired already", kExitNo},
    {"refused", "the receiver does not want it; a job would become a dead letter", kExitNo},
    {"retry", "the receiver has not confirmed; a job would be tried again", kExitNo},
    {"stale", "not the delivery token of the current lease; nothing changed", kExitNo},
    {"unknown", "no such job is stored", kExitNo},

    {"over_capacity", "nothing was stored; the same call may succeed later", kExitCannotRun},
    {"overloaded", "nothing was done; the same call may succeed later", kExitCannotRun},
    {"storage_full", "nothing was stored; the same call may succeed later", kExitCannotRun},
    {"unavailable", "whether it was done is unknown; the same call may succeed later", kExitCannotRun},
};

Outcome OutcomeOf(const json::object& object) {
  const auto* const row = std::ranges::find(kOutcomes, TextOf(object, "outcome"), &Outcome::name);
  return row == std::end(kOutcomes) ? Outcome{.name = {}, .text = {}, .status = kExitNo} : *row;
}

}  // namespace

/// "worker-3, since ..., extended twice"
std::string HolderOf(const json::object& job, Time now) {
  std::string text = Printable(TextOf(job, "holder"));
  if (const int64_t ms = IntegerOf(job, "leased_ms"); ms > 0) {
    text += fmt::format("{}since {}", text.empty() ? "" : ", ", MomentAndDistance(ms, now));
  }
  const int64_t extensions = IntegerOf(job, "extensions");
  if (!text.empty() && extensions > 0) text += fmt::format(", extended {}", Counted(extensions, "time"));
  return text;
}

std::string DueOf(const json::object& job, Time now) {
  const int64_t due_ms = IntegerOf(job, "due_ms", -1);
  return due_ms < 0 ? "when its count is reached" : MomentAndDistance(due_ms, now);
}

std::string PayloadPreview(const json::object& job) {
  if (!job.contains("payload") && !job.contains("payload_base64")) return "(not for this access token)";
  const std::string bytes = PayloadOf(job);
  return IsUtf8(bytes) ? Printable(bytes) : fmt::format("({} that are no text)", ShowSize(std::ssize(bytes)));
}

void PrintJob(Output& out, const json::object& job, Time now) {
  const auto line = [&](std::string_view name, std::string_view value) { Line(out, 8, name, value); };
  line("job", Printable(TextOf(job, "id")));
  for (const std::string_view name : {"state", "token", "key"}) line(name, Printable(TextOf(job, name)));
  line("due", DueOf(job, now));
  if (job.contains("count_left")) {
    line("trigger",
         fmt::format("{}, events to come: {}", Printable(TextOf(job, "trigger")), IntegerOf(job, "count_left")));
  }
  line("attempt", fmt::format("{} of {}", IntegerOf(job, "attempt"), IntegerOf(job, "max_attempts")));
  const auto moment = [&](std::string_view name, std::string_view field) {
    if (const int64_t ms = IntegerOf(job, field); ms > 0) line(name, MomentAndDistance(ms, now));
  };
  moment("lease", "lease_deadline_ms");
  line("holder", HolderOf(job, now));
  moment("created", "created_ms");
  moment("tried", "last_attempt_ms");
  moment("died", "died_ms");
  moment("finished", "finished_ms");
  line("reason", Printable(TextOf(job, "reason")));
  const json::object& headers = ObjectOf(job, "headers");
  for (const auto& header : headers) {
    line("header", fmt::format("{}={}", Printable(header.key()), Printable(TextOf(headers, header.key()))));
  }
  line("payload", PayloadPreview(job));
  if (const std::string bytes = PayloadOf(job); !IsUtf8(bytes)) {
    std::string base64;
    AppendBase64(base64, bytes);
    line("base64", base64);
  }
}

std::string LatenessOf(const json::object& topic, std::string_view quantile) {
  const json::object& lateness = ObjectOf(topic, "lateness_ms");
  if (IntegerOf(lateness, "count") == 0) return "";
  const json::value* const value = lateness.if_contains(quantile);
  if (value == nullptr || !value->is_number()) return "";
  return fmt::format("{:g}ms", value->to_number<double>());
}

void PrintTopic(Context& context, const Arguments&, const json::object& topic) {
  Output& out = context.out;
  for (const json::object* part : {&topic, &ObjectOf(topic, "delivery"), &ObjectOf(topic, "figures")}) {
    PrintSettings(out, *part);
  }
  if (const std::string p99 = LatenessOf(topic, "p99"); !p99.empty()) {
    Line(out, kTopicColumn, "lateness",
         fmt::format("p50 {}, p99 {}, max {}", LatenessOf(topic, "p50"), p99, LatenessOf(topic, "max")));
  }
}

void PrintTopics(Context& context, const Arguments&, const json::object& answer) {
  Table table({"TOPIC", ">SCHEDULED", ">READY", ">LEASED", ">DEAD", ">BYTES", ">P99 LATE", "SINK", "PAUSED"});
  for (const json::object& topic : ObjectsOf(answer, "topics")) {
    const json::object& figures = ObjectOf(topic, "figures");
    const auto figure = [&](std::string_view name) { return std::to_string(IntegerOf(figures, name)); };
    table.Row({Printable(TextOf(topic, "topic")), figure("scheduled"), figure("ready"), figure("leased"),
               figure("dead"), ShowSize(IntegerOf(figures, "bytes")), LatenessOf(topic, "p99"),
               Printable(TextOf(ObjectOf(topic, "delivery"), "sink")), BoolOf(topic, "paused") ? "paused" : ""});
  }
  table.Print(context.out, "no topics yet: the first job submitted to a topic creates it\n");
}

Result<int> StatusOf(const json::object& object) {
  if (!object.contains("outcome")) return kExitOk;
  const Outcome outcome = OutcomeOf(object);
  if (outcome.status == kExitCannotRun) return Fail(Code::kOverloaded, "{}: {}", outcome.name, outcome.text);
  return outcome.status;
}

Result<int> StatusOf(const json::array& list) {
  int highest = kExitOk;
  for (const json::value& one : list) {
    TOCSIN_ASSIGN(const int status, one.is_object() ? StatusOf(one.get_object()) : kExitNo);
    highest = std::max(highest, status);
  }
  return highest;
}

std::string OutcomeText(const Output& out, const json::object& object) {
  const Outcome outcome = OutcomeOf(object);
  std::string text = out.Paint(outcome.status == kExitOk && outcome.name != "dead" ? Colour::kGreen : Colour::kYellow,
                               Printable(TextOf(object, "outcome")));
  if (!outcome.text.empty()) text += fmt::format(": {}", outcome.text);
  if (const int64_t due_ms = IntegerOf(object, "due_ms"); due_ms > 0) {
    text += fmt::format(", due {}", ShowMoment(FromMs(due_ms)));
  }
  return text;
}

}  // namespace tocsin::cli
