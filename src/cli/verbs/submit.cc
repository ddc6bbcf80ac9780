#include "cli/commands.h"
#include "cli/text/human_time.h"
#include "cli/verbs/verb_command.h"

namespace tocsin::cli {
namespace {

std::string DueText(const json::object& job, const Arguments& arguments) {
  if (arguments.Text("trigger") == "count") return "due when its count is reached";
  const std::string moment = ShowMoment(FromMs(IntegerOf(job, "due_ms")));
  const auto delay = arguments.Duration("in");
  return delay ? fmt::format("due {} (in {})", moment, ShowDuration(*delay)) : fmt::format("due {}", moment);
}

void Print(Context& context, const Arguments& arguments, const json::object& answer) {
  for (const json::value& value : ArrayOf(answer, "jobs")) {
    if (!value.is_object()) continue;
    const json::object& job = value.get_object();
    const std::string outcome = Printable(TextOf(job, "outcome"));
    const bool stored = outcome == "accepted" || outcome == "duplicate";
    context.out.Print("{} {}{}\n", context.out.Paint(stored ? Colour::kGreen : Colour::kYellow, outcome),
                      Printable(TextOf(job, "id")), stored ? ", " + DueText(job, arguments) : "");
  }
}

}  // namespace

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
       .print = Print});
}

}  // namespace tocsin::cli
