// `tocsin operate`: counts first, asks, begins the operation on the server, and shows how far it is until it is over.
#include <charconv>

#include <poll.h>

#include "cli/text/human.h"
#include "cli/transfer/transfer.h"
#include "cli/verbs/verb_command.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

constexpr Millis kPollEvery{200};

std::string JobsText(int64_t jobs) { return fmt::format("{} {}", Grouped(jobs), jobs == 1 ? "job" : "jobs"); }

void PrintDryRun(Context& context, const json::object& report) {
  Output& out = context.out;
  out.Print("{} of {} match\n", JobsText(IntegerOf(report, "matched")), Grouped(IntegerOf(report, "of")));
  const Time now = ServerNow(context);
  Table table({"ID", "STATE", "DUE", ">ATTEMPT", "KEY", "REASON", "PAYLOAD"});
  for (const json::object& job : ObjectsOf(report, "samples")) {
    table.Row({Printable(TextOf(job, "id")), Printable(TextOf(job, "state")), DueOf(job, now),
               fmt::format("{}/{}", IntegerOf(job, "attempt"), IntegerOf(job, "max_attempts")),
               Printable(TextOf(job, "key")), Printable(TextOf(job, "reason")), PayloadPreview(job)});
  }
  if (!table.empty()) table.Print(out);
}

/// "cancelled: 45,000" on a line for each outcome.
void PrintOutcomes(Context& context, const json::object& report) {
  const json::object& outcomes = ObjectOf(report, "outcomes");
  if (outcomes.empty()) context.out.Print("no job matched\n");
  for (const auto& [outcome, jobs] : outcomes) {
    context.out.Print("{}: {}\n", Printable(outcome), Grouped(jobs.to_number<int64_t>()));
  }
}

std::string OperationPath(const Arguments& arguments, const json::object& report) {
  return TopicPath(*arguments.Text("TOPIC"), fmt::format("/operations/{}", TextOf(report, "id")));
}

/// Until it is over.
Result<json::object> Follow(Context& context, const Arguments& arguments, json::object report) {
  const std::string path = OperationPath(arguments, report);
  Progress progress(context.clock, "looked at");
  while (TextOf(report, "state") == "running") {
    const auto looked = static_cast<double>(IntegerOf(report, "looked"));
    const auto all = static_cast<double>(std::max<int64_t>(IntegerOf(report, "of"), 1));
    progress.Show(IntegerOf(report, "looked"), looked / all);
    ::poll(nullptr, 0, static_cast<int>(kPollEvery.count()));
    TOCSIN_ASSIGN(report, context.api.Get(path));
  }
  return report;
}

Result<int> RunOperate(Context& context, const Arguments& arguments) {
  const api::Verb& verb = VerbNamed("operate");
  TOCSIN_ASSIGN(Request request, RequestOf(verb, arguments));
  const bool dry = arguments.Has("dry-run");
  if (dry || !arguments.Has("yes")) {
    request.body["dry_run"] = true;
    TOCSIN_ASSIGN(const json::object count, Send(context, verb, request, kLongCall));
    if (dry) {
      context.out.json() ? context.out.Json(count) : PrintDryRun(context, count);
      return kExitOk;
    }
    const std::string question =
        fmt::format("{} {} of {}?", Printable(*arguments.Text("ACTION")), JobsText(IntegerOf(count, "matched")),
                    Printable(*arguments.Text("TOPIC")));
    TOCSIN_ASSIGN(const bool sure, Confirm(question));
    if (!sure) return kExitNo;
    request.body.erase("dry_run");
    // What the person agreed to; jobs that match meanwhile are others.
    if (!arguments.Has("matched-max")) request.body["matched_max"] = IntegerOf(count, "matched");
  }
  TOCSIN_ASSIGN(json::object report, Send(context, verb, request));
  if (!arguments.Has("no-wait")) {
    TOCSIN_ASSIGN(report, Follow(context, arguments, std::move(report)));
  }
  if (context.out.json()) {
    context.out.Json(report);
  } else if (arguments.Has("no-wait")) {
    context.out.Print("operation {} runs: tocsin operation get {} {}\n", TextOf(report, "id"),
                      Printable(*arguments.Text("TOPIC")), TextOf(report, "id"));
  } else {
    PrintOutcomes(context, report);
  }
  const std::string state = TextOf(report, "state");
  if (state == "failed") return Fail(Code::kUnavailable, "the operation failed: {}", TextOf(report, "error"));
  return state == "stopped" ? kExitNo : kExitOk;
}

void PrintOperations(Context& context, const Arguments& /*arguments*/, const json::object& answer) {
  Table table({"ID", "ACTION", "STATE", ">LOOKED", ">MATCHED", "OUTCOMES", "STARTED"});
  for (const json::object& each : ObjectsOf(answer, "operations")) {
    std::string outcomes;
    for (const auto& [outcome, jobs] : ObjectOf(each, "outcomes")) {
      outcomes +=
          fmt::format("{}{}: {}", outcomes.empty() ? "" : ", ", Printable(outcome), Grouped(jobs.to_number<int64_t>()));
    }
    table.Row({Printable(TextOf(each, "id")), Printable(TextOf(each, "action")), Printable(TextOf(each, "state")),
               Grouped(IntegerOf(each, "looked")), Grouped(IntegerOf(each, "matched")), outcomes,
               ShowMoment(FromMs(IntegerOf(each, "started_ms")))});
  }
  table.Print(context.out, "no operations\n");
}

/// A minute comes as a number of milliseconds.
std::string GroupText(const Arguments& arguments, const std::string& value) {
  int64_t ms = 0;
  const bool is_time = arguments.Text("by") == "minute" &&
                       std::from_chars(value.data(), value.data() + value.size(), ms).ec == std::errc();
  return is_time ? ShowMoment(FromMs(ms)) : Printable(value);
}

void PrintTally(Context& context, const Arguments& arguments, const json::object& answer) {
  context.out.Print("{} match\n", JobsText(IntegerOf(answer, "total")));
  Table table({">COUNT", "VALUE"});
  for (const json::object& group : ObjectsOf(answer, "groups")) {
    table.Row({Grouped(IntegerOf(group, "count")), GroupText(arguments, TextOf(group, "value"))});
  }
  if (const int64_t others = IntegerOf(answer, "others"); others > 0) table.Row({Grouped(others), "(others)"});
  if (!table.empty()) table.Print(context.out);
}

}  // namespace

Command Operate() {
  return VerbCommand(
      "operate",
      {.details = "Counts first, shows what it is about to do, and asks. It changes no more jobs than the question "
                  "named. Then "
                  "it waits until the operation is over. The operation goes on if you interrupt the command.",
       .flags = {{"yes", Kind::kSwitch, "Do not ask. Needed if stdin is not a terminal."},
                 {"no-wait", Kind::kSwitch, "Do not wait until it is over."}},
       .examples =
           {{"operate orders redrive --reason timeout --rate 500", "one kind of dead letters, 500 a second"},
            {"operate orders cancel --header customer=ann --dry-run", "how many jobs that would be"},
            {"operate orders reschedule --due-from \"2026-12-01 09:00\" --due-to \"2026-12-01 09:10\" --shift 1h",
             "ten minutes, an hour later"}},
       .no = "the question was answered with no, somebody stopped the operation, or there is no such topic",
       .run = RunOperate});
}

Command Operations() {
  return VerbCommand("operations", {.examples = {{"operations orders", "what runs, and what became of the last ones"}},
                                    .no = "there is no such topic",
                                    .list = "operations",
                                    .print = PrintOperations});
}

Command ShowOperation() {
  return VerbCommand("operation get",
                     {.examples = {{"operation get orders k3f7p-12", "how far it is, and what became of the jobs"}},
                      .no = "there is no such operation or topic",
                      .print = [](Context& context, const Arguments&, const json::object& report) {
                        context.out.Print("{}: looked at {} of {}\n", Printable(TextOf(report, "state")),
                                          Grouped(IntegerOf(report, "looked")), Grouped(IntegerOf(report, "of")));
                        PrintOutcomes(context, report);
                      }});
}

Command TallyJobs() {
  return VerbCommand("tally", {.examples = {{"tally orders --state dead --by reason", "what the dead letters died of"},
                                            {"tally orders --due-to \"2026-12-01 09:00\" --by minute",
                                             "how many are due in each minute until then"}},
                               .no = "there is no such topic",
                               .print = PrintTally});
}

}  // namespace tocsin::cli
