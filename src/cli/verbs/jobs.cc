// `tocsin submit`, `tocsin reserve`, `tocsin list` and `tocsin dead list`.
#include <algorithm>

#include "cli/process/process.h"
#include "cli/text/human.h"
#include "cli/verbs/verb_command.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

constexpr int64_t kPageMax = 1000;  // the server's own limit

/// `state`: of the jobs, if no flag says it.
Result<int> ListJobs(Context& context, const Arguments& arguments, std::string_view state) {
  const std::string topic = *arguments.Text("TOPIC");
  TOCSIN_ASSIGN(Request request, RequestOf(VerbNamed("list"), arguments, "limit"));
  if (!state.empty()) AppendQuery(request.target, "state", state);
  int64_t left = arguments.Has("all") ? INT64_MAX : *arguments.Number("limit");
  if (left == 0) return Fail(Code::kInvalidArgument, "--limit: at least 1");
  Table table({"ID", "STATE", "DUE", ">ATTEMPT", "KEY", "REASON", "PAYLOAD"});
  const Time now = context.out.json() ? Time{} : ServerNow(context);
  std::string cursor;
  bool more = false;
  do {
    std::string target = request.target;
    AppendQuery(target, "limit", std::to_string(std::min(left, kPageMax)));
    if (!cursor.empty()) AppendQuery(target, "cursor", cursor);
    TOCSIN_ASSIGN(const json::object page, context.api.Call("GET", target, nullptr, kLongCall));
    cursor = TextOf(page, "cursor");
    more = !cursor.empty() || std::ssize(ArrayOf(page, "jobs")) > left;
    for (const json::object& job : ObjectsOf(page, "jobs")) {
      if (left-- <= 0) break;
      if (context.out.json()) {
        context.out.Json(job);
        continue;
      }
      table.Row({Printable(TextOf(job, "id")), Printable(TextOf(job, "state")), DueOf(job, now),
                 fmt::format("{}/{}", IntegerOf(job, "attempt"), IntegerOf(job, "max_attempts")),
                 Printable(TextOf(job, "key")), Printable(TextOf(job, "reason")), PayloadPreview(job)});
    }
  } while (!cursor.empty() && left > 0);
  if (!context.out.json()) {
    std::string states(state);
    if (arguments.Has("state")) states = fmt::format("{}", fmt::join(arguments.All("state"), " or "));
    table.Print(context.out, fmt::format("no {}{}jobs in {}\n", states, states.empty() ? "" : " ", Printable(topic)));
  }
  if (more) PrintStderr("tocsin: there are more: --all shows them\n");
  return kExitOk;
}

Command Row(std::string_view name, std::string_view summary) {
  Command row{.name = name,
              .summary = summary,
              .positionals = PositionalsOf(VerbNamed("list")),
              .flags = {{"limit", Kind::kNumber, "The most jobs to show.", "100"},
                        {"all", Kind::kSwitch, "Show all of them, however many."}},
              .no = "there is no such topic"};
  for (const api::Field& field : VerbNamed("list").fields) {
    const bool ours = field.name != "limit" && field.name != "cursor" && (field.name != "state" || name == "list");
    if (ours) row.flags.push_back(FlagOf(VerbNamed("list"), field.name));
  }
  return row;
}

constexpr Millis kWaitMax{50'000};  // of one call: the server ends a longer one

/// Asks again until a job is due or --wait is over: a wait may be longer than one call can be.
Result<json::object> Take(Context& context, const Arguments& arguments) {
  const auto end = context.clock.IoNow() + arguments.Duration("wait").value_or(Millis(0));
  const api::Verb& verb = VerbNamed("reserve");
  TOCSIN_ASSIGN(Request request, RequestOf(verb, arguments));
  if (!request.body.contains("consumer")) request.body["consumer"] = ConsumerName();
  while (true) {
    const auto left = std::chrono::ceil<Millis>(end - context.clock.IoNow());
    const Millis wait = std::clamp(left, Millis(0), kWaitMax);
    request.body["wait_ms"] = wait.count();
    auto answer = Send(context, verb, request, context.api.limit() + wait);
    if (!answer || !ArrayOf(*answer, "jobs").empty() || left <= kWaitMax) return answer;
  }
}

Result<int> RunReserve(Context& context, const Arguments& arguments) {
  TOCSIN_ASSIGN(const json::object taken, Take(context, arguments));
  if (ArrayOf(taken, "jobs").empty()) {
    if (!context.out.json()) PrintStderr("tocsin: nothing is due\n");
    return kExitNo;
  }
  const Time now = context.out.json() ? Time{} : ServerNow(context);
  json::array tokens;
  for (const json::object& job : ObjectsOf(taken, "jobs")) {
    if (context.out.json()) {
      context.out.Json(job);
    } else {
      if (!tokens.empty()) context.out.Write("\n");
      PrintJob(context.out, job, now);
    }
    tokens.emplace_back(TextOf(job, "token"));
  }
  if (!arguments.Has("ack")) return kExitOk;
  TOCSIN_TRY(context.out.Flush());  // never acknowledge a job that could not be shown
  const Request ack{TopicPath(*arguments.Text("TOPIC"), "/ack"), {{"tokens", std::move(tokens)}}};
  TOCSIN_ASSIGN(const json::object answer, Send(context, VerbNamed("ack"), ack));
  return StatusOf(ArrayOf(answer, "results"));
}

std::string DueText(const json::object& job, const Arguments& arguments) {
  if (arguments.Text("trigger") == "count") return "due when its count is reached";
  const auto delay = arguments.Duration("in");
  return fmt::format("due {}{}", ShowMoment(FromMs(IntegerOf(job, "due_ms"))),
                     delay ? fmt::format(" (in {})", ShowDuration(*delay)) : "");
}

void PrintSubmitted(Context& context, const Arguments& arguments, const json::object& answer) {
  for (const json::object& job : ObjectsOf(answer, "jobs")) {
    const std::string outcome = Printable(TextOf(job, "outcome"));
    const bool stored = outcome == "accepted" || outcome == "duplicate";
    context.out.Print("{} {}{}\n", context.out.Paint(stored ? Colour::kGreen : Colour::kYellow, outcome),
                      Printable(TextOf(job, "id")), stored ? ", " + DueText(job, arguments) : "");
    if (outcome == "conflict") {
      PrintStderr(
          "tocsin: the id is stored with other content: --on-conflict replace stores this job instead of that "
          "one, --on-conflict keep leaves that one\n");
    }
  }
}

}  // namespace

Command List() {
  Command row = Row("list", "shows the jobs of a topic");
  row.examples = {{"list orders --sort due", "what comes first"},
                  {"list orders --header customer=ann", "the jobs of one customer"},
                  {"list orders --state leased --all --json", "what consumers have at the moment, for a script"}};
  row.run = [](Context& context, const Arguments& arguments) { return ListJobs(context, arguments, ""); };
  return row;
}

Command DeadList() {
  Command row = Row("dead list", "shows the dead letters of a topic, and why they died");
  row.examples = {{"dead list orders", "jobs whose attempts are used up"},
                  {"dead list orders --reason 410 --all", "jobs to which the receiver of a webhook answered 410 Gone"}};
  row.run = [](Context& context, const Arguments& arguments) { return ListJobs(context, arguments, "dead"); };
  return row;
}

Command Reserve() {
  return VerbCommand(
      "reserve",
      {.details = "A job that is not acknowledged before its lease ends is delivered again. Without --consumer "
                  "the holder of the leases is this host and process id.",
       .flags = {{"ack", Kind::kSwitch, "Acknowledge at once, after printing."}},
       .examples = {{"reserve demo --wait 10s", "the next job, if one is due within ten seconds"},
                    {"reserve demo --max 100 --ack --json", "up to a hundred, a line each, and done with"}},
       .no = "nothing was due, the topic pushes its jobs, or there is no such topic",
       .run = RunReserve});
}

Command Submit() {
  return VerbCommand(
      "submit",
      {.details = "Prints the job's id and when it is due, after the job is safe on disk. Without --in and --at it is "
                  "due now. A topic that does not exist is created.",
       .examples = {{"submit demo hello --in 5s", "due in five seconds"},
                    {"submit orders --file order.json --id order-17 --at \"2026-12-01 09:00\"",
                     "from a file, with your own id, at a local time"},
                    {"submit demo - --in 1h < body.bin", "from stdin; any bytes can be a payload"},
                    {"submit votes poll-7 --trigger either --count 3 --in 1h", "after three events, or in an hour"}},
       .no = "the id is stored with other content (conflict) or its job is being delivered (in_flight)",
       .list = "jobs",
       .print = PrintSubmitted});
}

}  // namespace tocsin::cli
