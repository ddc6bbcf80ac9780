#include "cli/verbs/list.h"

#include "base/text.h"
#include "cli/text/human_time.h"
#include "cli/text/stderr.h"
#include "cli/verbs/job_view.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

constexpr int64_t kPageMax = 1000;  // the server's own limit

struct Page {
  json::array jobs;
  std::string cursor;  // empty: the end
};

struct Asked {
  std::string topic;
  std::string state;
  std::string reason;  // has this within; empty: any
};

Result<Page> Fetch(Context& context, const Asked& asked, int64_t limit, std::string_view cursor) {
  std::string target = TopicPath(asked.topic, fmt::format("/jobs?state={}&limit={}", asked.state, limit));
  const auto add = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    target += name;
    AppendPercent(target, value);
  };
  add("&cursor=", cursor);
  add("&reason=", asked.reason);
  auto reply = context.api.Get(target);
  if (!reply) return std::unexpected(std::move(reply).error());
  return Page{ArrayOf(*reply, "jobs"), TextOf(*reply, "cursor")};
}

void AddRow(Table& table, const json::object& job, Time now) {
  table.Row({Printable(TextOf(job, "id")), DueOf(job, now),
             fmt::format("{}/{}", IntegerOf(job, "attempt"), IntegerOf(job, "max_attempts")),
             Printable(TextOf(job, "key")), Printable(TextOf(job, "reason")), PayloadPreview(job)});
}

Result<int> Run(Context& context, const Arguments& arguments) {
  return ListJobs(context, arguments, *arguments.Text("state"));
}

}  // namespace

std::vector<Flag> PageFlags() {
  return {{.name = "limit", .kind = Kind::kNumber, .value = "N", .fallback = "100", .doc = "How many to show at most."},
          {.name = "all", .kind = Kind::kSwitch, .doc = "Show all of them, however many."}};
}

Result<int> ListJobs(Context& context, const Arguments& arguments, const std::string& state) {
  const Asked asked{*arguments.Text("TOPIC"), state, arguments.Text("reason").value_or("")};
  int64_t left = arguments.Has("all") ? INT64_MAX : *arguments.Number("limit");
  if (left == 0) return Fail(Code::kInvalidArgument, "--limit: at least 1");
  Table table({"ID", "DUE", ">ATTEMPT", "KEY", "REASON", "PAYLOAD"});
  const Time now = context.out.json() ? Time{} : ServerNow(context);
  std::string cursor;
  bool more = false;
  do {
    // Of those with a reason a page may hold few or none: they are looked for in the largest pages.
    auto page = Fetch(context, asked, asked.reason.empty() ? std::min(left, kPageMax) : kPageMax, cursor);
    if (!page) return std::unexpected(std::move(page).error());
    more = !page->cursor.empty() || std::ssize(page->jobs) > left;
    for (const json::value& job : page->jobs) {
      if (!job.is_object() || left-- <= 0) continue;
      if (context.out.json()) {
        context.out.Json(job);
      } else {
        AddRow(table, job.get_object(), now);
      }
    }
    cursor = std::move(page->cursor);
  } while (!cursor.empty() && left > 0);
  if (!context.out.json() && !table.empty()) table.Print(context.out);
  if (!context.out.json() && table.empty()) context.out.Print("no {} jobs in {}\n", state, Printable(asked.topic));
  if (more) PrintStderr("tocsin: there are more: --all shows them\n");
  return kExitOk;
}

Command List() {
  std::vector<Flag> flags{{.name = "state",
                           .kind = Kind::kChoice,
                           .value = "STATE",
                           .fallback = "scheduled",
                           .doc = "Which jobs.",
                           .choices = {"scheduled", "leased", "dead", "done", "cancelled"}}};
  for (Flag& flag : PageFlags()) flags.push_back(std::move(flag));
  return {
      .name = "list",
      .summary = "shows the jobs of a topic",
      .positionals = {kTopic},
      .flags = std::move(flags),
      .examples = {{"list orders", "what is still to come"},
                   {"list orders --state leased --all --json", "what consumers have at the moment, for a script"}},
      .no = "there is no such topic",
      .run = Run,
  };
}

}  // namespace tocsin::cli
