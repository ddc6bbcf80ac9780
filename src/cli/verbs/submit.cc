#include <array>

#include "cli/text/human_time.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

Status PutHeaders(json::object& job, const Arguments& arguments) {
  json::object headers;
  for (const std::string& text : arguments.All("header")) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Fail(Code::kInvalidArgument, "--header: \"{}\" is not NAME=VALUE", text);
    }
    const std::string name = text.substr(0, equals);
    if (headers.contains(name)) return Fail(Code::kInvalidArgument, "--header: {} is given twice", name);
    headers[name] = text.substr(equals + 1);
  }
  if (!headers.empty()) job["headers"] = std::move(headers);
  return {};
}

Result<json::object> JobOf(const Arguments& arguments) {
  json::object job;
  TOCSIN_TRY(PutDue(job, arguments));
  TOCSIN_TRY(PutPayloadOf(job, arguments));
  TOCSIN_TRY(PutHeaders(job, arguments));
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTexts{
      {{"id", "id"}, {"key", "key"}, {"trigger", "trigger"}, {"on-conflict", "on_conflict"}}};
  for (const auto& [flag, field] : kTexts) {
    if (const auto text = arguments.Text(flag)) job[field] = *text;
  }
  if (const auto attempts = arguments.Number("attempts")) job["max_attempts"] = *attempts;
  if (const auto count = arguments.Number("count")) job["count"] = *count;
  return job;
}

std::string DueText(const json::object& job, const Arguments& arguments) {
  if (arguments.Text("trigger") == "count") return "due when its count is reached";
  const std::string moment = ShowMoment(FromMs(IntegerOf(job, "due_ms")));
  const auto delay = arguments.Duration("in");
  return delay ? fmt::format("due {} (in {})", moment, ShowDuration(*delay)) : fmt::format("due {}", moment);
}

/// The server itself could not take the job: the same submit may succeed later.
bool IsRefusal(std::string_view outcome) {
  return outcome == "over_capacity" || outcome == "storage_full" || outcome == "overloaded";
}

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto job = JobOf(arguments);
  if (!job) return std::unexpected(job.error());
  const auto reply = context.api.Post(TopicPath(*arguments.Text("TOPIC"), "/jobs"), *job);
  if (!reply) return std::unexpected(reply.error());
  const json::array& jobs = ArrayOf(*reply, "jobs");
  if (jobs.empty() || !jobs[0].is_object()) return Fail(Code::kInternal, "the answer has no job in it");
  const json::object& stored = jobs[0].get_object();
  const std::string outcome = Printable(TextOf(stored, "outcome"));
  const bool yes = outcome == "accepted" || outcome == "duplicate";
  if (context.out.json()) {
    context.out.Json(stored);
  } else {
    context.out.Print("{} {}{}\n", context.out.Paint(yes ? Colour::kGreen : Colour::kYellow, outcome),
                      Printable(TextOf(stored, "id")), yes ? ", " + DueText(stored, arguments) : "");
  }
  if (yes) return kExitOk;
  if (!IsRefusal(outcome)) return kExitNo;
  return Fail(Code::kOverloaded, "{}: the job was not stored; the same submit may succeed later", outcome);
}

std::vector<Flag> Flags() {
  std::vector<Flag> flags = DueFlags();
  flags.insert(
      flags.end(),
      {FileFlag(),
       {.name = "id", .value = "ID", .doc = "An own id: submitting it again with the same content stores nothing."},
       {.name = "key", .value = "KEY", .doc = "Jobs with the same key are kept in order, on one slot."},
       {.name = "header", .value = "NAME=VALUE", .doc = "A header that travels with the job.", .repeated = true},
       {.name = "attempts",
        .kind = Kind::kNumber,
        .value = "N",
        .doc = "Deliveries before it is a dead letter; the topic's unless given."},
       {.name = "trigger",
        .kind = Kind::kChoice,
        .value = "WHAT",
        .doc = "What makes it ready; count and either wait for events (tocsin count).",
        .choices = {"time", "count", "either"}},
       {.name = "count", .kind = Kind::kNumber, .value = "N", .doc = "Events to wait for; the topic's unless given."},
       {.name = "on-conflict",
        .kind = Kind::kChoice,
        .value = "WHAT",
        .doc = "Where the id is stored already with other content.",
        .choices = {"reject", "replace", "keep"}}});
  return flags;
}

}  // namespace

Command Submit() {
  return {
      .name = "submit",
      .summary = "stores a job, to be delivered when it is due",
      .details =
          "Prints the job's id and when it is due, after it is safe on disk. Without --in and --at it is due "
          "now. A topic that does not exist is created.",
      .positionals = {{"TOPIC", "Name of the topic."},
                      {.name = "PAYLOAD",
                       .doc = "What to deliver: any text; - reads it from stdin.",
                       .required = false}},
      .flags = Flags(),
      .examples = {{"submit demo hello --in 5s", "due in five seconds"},
                   {"submit orders --file order.json --id order-17 --at \"2026-12-01 09:00\"",
                    "from a file, with an own id, at a local time"},
                   {"submit demo - --in 1h < body.bin", "from stdin; bytes that are no text travel unharmed"},
                   {"submit votes poll-7 --trigger either --count 3 --in 1h", "after three events, or in an hour"}},
      .no = "the id is stored with other content (conflict) or its job is being delivered (in_flight)",
      .run = Run,
  };
}

}  // namespace tocsin::cli
