// `tocsin list` and `tocsin dead list`.
#include "cli/commands.h"
#include "cli/text/stderr.h"
#include "cli/verbs/job_view.h"
#include "cli/verbs/request.h"

namespace tocsin::cli {
namespace {

constexpr int64_t kPageMax = 1000;  // the server's own limit

void AddRow(Table& table, const json::object& job, Time now) {
  table.Row({Printable(TextOf(job, "id")), DueOf(job, now),
             fmt::format("{}/{}", IntegerOf(job, "attempt"), IntegerOf(job, "max_attempts")),
             Printable(TextOf(job, "key")), Printable(TextOf(job, "reason")), PayloadPreview(job)});
}

Result<int> ListJobs(Context& context, const Arguments& arguments, const std::string& state) {
  const std::string topic = *arguments.Text("TOPIC");
  const std::string reason = arguments.Text("reason").value_or("");
  int64_t left = arguments.Has("all") ? INT64_MAX : *arguments.Number("limit");
  if (left == 0) return Fail(Code::kInvalidArgument, "--limit: at least 1");
  Table table({"ID", "DUE", ">ATTEMPT", "KEY", "REASON", "PAYLOAD"});
  const Time now = context.out.json() ? Time{} : ServerNow(context);
  std::string cursor;
  bool more = false;
  do {
    // A page may hold few jobs with this reason, or none, so ask for the largest pages.
    const int64_t limit = reason.empty() ? std::min(left, kPageMax) : kPageMax;
    const auto page = context.api.Get(ListTarget(topic, state, limit, cursor, reason));
    if (!page) return std::unexpected(page.error());
    const json::array& jobs = ArrayOf(*page, "jobs");
    cursor = TextOf(*page, "cursor");
    more = !cursor.empty() || std::ssize(jobs) > left;
    for (const json::value& job : jobs) {
      if (!job.is_object() || left-- <= 0) continue;
      if (context.out.json()) {
        context.out.Json(job);
      } else {
        AddRow(table, job.get_object(), now);
      }
    }
  } while (!cursor.empty() && left > 0);
  if (!table.empty()) {
    table.Print(context.out);
  } else if (!context.out.json()) {
    context.out.Print("no {} jobs in {}\n", state, Printable(topic));
  }
  if (more) PrintStderr("tocsin: there are more: --all shows them\n");
  return kExitOk;
}

Command Row(std::string_view name, std::string_view summary) {
  const api::Verb& verb = VerbNamed("list");
  return {.name = name,
          .summary = summary,
          .positionals = PositionalsOf(verb),
          .flags = {{.name = "limit", .kind = Kind::kNumber, .fallback = "100", .doc = "The most jobs to show."},
                    {.name = "all", .kind = Kind::kSwitch, .doc = "Show all of them, however many."},
                    {.name = "reason", .doc = "Only jobs whose reason contains this text."}},
          .no = "there is no such topic"};
}

}  // namespace

Command List() {
  Command row = Row("list", "shows the jobs of a topic");
  row.flags.insert(row.flags.begin(), FlagOf(VerbNamed("list"), "state"));
  row.examples = {{"list orders", "what is still to come"},
                  {"list orders --state leased --all --json", "what consumers have at the moment, for a script"}};
  row.run = [](Context& context, const Arguments& arguments) {
    return ListJobs(context, arguments, arguments.Text("state").value_or("scheduled"));
  };
  return row;
}

Command DeadList() {
  Command row = Row("dead list", "shows the dead letters of a topic, and why they died");
  row.examples = {{"dead list orders", "jobs whose attempts are used up"},
                  {"dead list orders --reason 410 --all", "jobs to which the receiver of a webhook answered 410 Gone"}};
  row.run = [](Context& context, const Arguments& arguments) { return ListJobs(context, arguments, "dead"); };
  return row;
}

}  // namespace tocsin::cli
