// `tocsin leases`, `tocsin lease revoke`, `tocsin dead redrive` and `tocsin dead remove`.
#include <algorithm>

#include "cli/text/human.h"
#include "cli/verbs/verb_command.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

constexpr int64_t kPageMax = 1000;  // the server's own limit

/// A page of a topic's leases, or of all topics'.
std::string TargetOf(const Arguments& arguments, int64_t limit, std::string_view cursor) {
  const auto topic = arguments.Text("TOPIC");
  std::string target = topic ? TopicPath(*topic, "/leases") : "/v1/leases";
  AppendQuery(target, "limit", std::to_string(limit));
  if (const auto holder = arguments.Text("holder")) AppendQuery(target, "holder", *holder);
  if (!cursor.empty()) AppendQuery(target, "cursor", cursor);
  return target;
}

std::string Distance(const json::object& lease, std::string_view field, Time now) {
  const int64_t ms = IntegerOf(lease, field);
  return ms > 0 ? ShowDistance(FromMs(ms), now) : "";
}

Result<int> RunLeases(Context& context, const Arguments& arguments) {
  int64_t left = arguments.Has("all") ? INT64_MAX : *arguments.Number("limit");
  if (left == 0) return Fail(Code::kInvalidArgument, "--limit: at least 1");
  Table table({"TOPIC", "ID", "HOLDER", "SINCE", "UNTIL", ">EXTENDED", ">ATTEMPT"});
  const Time now = context.out.json() ? Time{} : ServerNow(context);
  std::string cursor;
  do {
    TOCSIN_ASSIGN(const json::object page, context.api.Get(TargetOf(arguments, std::min(left, kPageMax), cursor)));
    cursor = TextOf(page, "cursor");
    for (const json::object& lease : ObjectsOf(page, "leases")) {
      --left;
      if (context.out.json()) {
        context.out.Json(lease);
        continue;
      }
      table.Row({Printable(TextOf(lease, "topic")), Printable(TextOf(lease, "id")), Printable(TextOf(lease, "holder")),
                 Distance(lease, "leased_ms", now), Distance(lease, "lease_deadline_ms", now),
                 std::to_string(IntegerOf(lease, "extensions")),
                 fmt::format("{}/{}", IntegerOf(lease, "attempt"), IntegerOf(lease, "max_attempts"))});
    }
  } while (!cursor.empty() && left > 0);
  if (!context.out.json()) table.Print(context.out, "nobody holds a lease\n");
  if (!cursor.empty()) PrintStderr("tocsin: there may be more: --all shows them\n");
  return kExitOk;
}

/// The usual text of an outcome, except that finished means something else here.
void PrintUnlessFinished(Context& context, const json::object& answer, std::string_view finished) {
  const std::string text = TextOf(answer, "outcome") == "finished"
                               ? context.out.Paint(Colour::kYellow, fmt::format("finished: {}", finished))
                               : OutcomeText(context.out, answer);
  context.out.Print("{}\n", text);
}

void PrintDeadOutcome(Context& context, const Arguments&, const json::object& answer) {
  PrintUnlessFinished(context, answer, "it is not a dead letter; nothing changed");
}

/// All dead letters of the topic, or the one with this id.
Result<int> RunRedrive(Context& context, const Arguments& arguments) {
  const bool one = arguments.Has("ID");
  const api::Verb& verb = VerbOf(one ? api::VerbId::kRedriveJob : api::VerbId::kRedriveDead);
  if (!one && arguments.Has("key")) {
    return Fail(Code::kInvalidArgument, "--key: it names one dead letter together with ID");
  }
  TOCSIN_ASSIGN(const Request request, RequestOf(verb, arguments));
  if (!one && !arguments.Has("yes")) {
    const std::string topic = Printable(*arguments.Text("TOPIC"));
    TOCSIN_ASSIGN(const bool sure, Confirm(fmt::format("Make all dead letters of {} due again?", topic)));
    if (!sure) return kExitNo;
  }
  TOCSIN_ASSIGN(const json::object answer, Send(context, verb, request));
  if (context.out.json()) {
    context.out.Json(answer);
  } else if (one) {
    PrintDeadOutcome(context, arguments, answer);
  } else {
    context.out.Print("{} due again, with all attempts\n",
                      Counted(IntegerOf(answer, "redriven"), "job is", "jobs are"));
  }
  return StatusOf(answer);
}

}  // namespace

Command Leases() {
  Command row =
      VerbCommand("leases", {.details = "Without TOPIC, those of all topics that the access token allows.",
                             .examples = {{"leases", "who works on what at the moment"},
                                          {"leases orders --holder worker-3:4711", "what one consumer holds"}},
                             .no = "there is no such topic",
                             .run = RunLeases});
  row.positionals = {{"TOPIC", "Name of the topic.", false}};
  row.flags = {{"limit", Kind::kNumber, "The most leases to show.", "100"},
               {"all", Kind::kSwitch, "Show all of them, however many."},
               FlagOf(VerbNamed("leases"), "holder")};
  return row;
}

Command LeaseRevoke() {
  return VerbCommand("lease revoke",
                     {.details = "The job is due again at once, and the attempt is used up. The consumer that had it "
                                 "is not told: its ack is answered with stale.",
                      .examples = {{"lease revoke orders order-17", "its worker hangs, and the lease is long"}},
                      .no = "the job is not leased, or unknown, or there is no such topic",
                      .print = [](Context& context, const Arguments&, const json::object& answer) {
                        PrintUnlessFinished(context, answer, "nobody holds it; nothing changed");
                      }});
}

Command DeadRedrive() {
  Command row = VerbCommand(
      "dead redrive", {.details = "With ID, that one alone.",
                       .flags = {{"yes", Kind::kSwitch, "Do not ask. Needed without ID if stdin is not a terminal."}},
                       .examples = {{"dead redrive orders", "after the cause of the failures is mended"},
                                    {"dead redrive orders order-17", "try one of them first"}},
                       .no = "the job is not a dead letter, or unknown, the question was answered with no, "
                             "or there is no such topic",
                       .run = RunRedrive});
  row.positionals.push_back({"ID", "The dead letter's id. All of them unless given.", false});
  row.flags.push_back(FlagOf(VerbOf(api::VerbId::kRedriveJob), "key"));
  return row;
}

Command DeadRemove() {
  return VerbCommand("dead remove", {.examples = {{"dead remove orders order-17", "it is gone for good"}},
                                     .no = "the job is not a dead letter, or unknown, or there is no such topic",
                                     .print = PrintDeadOutcome});
}

}  // namespace tocsin::cli
