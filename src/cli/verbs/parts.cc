#include "cli/verbs/parts.h"

#include <algorithm>

#include "cli/text/human_time.h"

namespace tocsin::cli {

Flag KeyFlag() {
  return {.name = "key",
          .value = "KEY",
          .doc = "The key that the job was submitted with, where it has its own id and a key."};
}

Flag YesFlag() {
  return {.name = "yes", .kind = Kind::kSwitch, .doc = "Do not ask. Needed where nobody can be asked."};
}

std::vector<Flag> DueFlags() {
  return {{.name = "in", .kind = Kind::kDuration, .value = "DURATION", .doc = "Due this long from now: 30m."},
          {.name = "at",
           .kind = Kind::kMoment,
           .value = "MOMENT",
           .doc = "Due at this moment: 2026-12-01T09:00+08:00, or \"2026-12-01 09:00\" in local time."}};
}

Flag FileFlag() { return {.name = "file", .value = "FILE", .doc = "Take the payload from this file; - is stdin."}; }

std::string JobPathOf(const Arguments& arguments, std::string_view rest) {
  return JobPath(*arguments.Text("TOPIC"), *arguments.Text("ID"), arguments.Text("key").value_or(""), rest);
}

Status PutDue(json::object& body, const Arguments& arguments) {
  const auto delay = arguments.Duration("in");
  const auto due = arguments.Moment("at");
  if (delay && due) return Fail(Code::kInvalidArgument, "--in and --at contradict each other: give one of them");
  if (delay) body["delay_ms"] = delay->count();
  if (due) body["due_ms"] = ToMs(*due);
  return {};
}

Status PutPayloadOf(json::object& body, const Arguments& arguments) {
  const auto text = arguments.Text("PAYLOAD");
  auto file = arguments.Text("file");
  if (text && file) return Fail(Code::kInvalidArgument, "PAYLOAD and --file contradict each other: give one of them");
  if (text == "-") file = "-";
  if (file) {
    const auto bytes = ReadAll(*file);
    if (!bytes) return std::unexpected(bytes.error());
    PutPayload(body, *bytes);
  } else if (text) {
    PutPayload(body, *text);
  }
  return {};
}

int PrintOutcome(Context& context, const json::object& answer, std::span<const Outcome> outcomes) {
  const std::string name = TextOf(answer, "outcome");
  const auto row = std::ranges::find(outcomes, name, &Outcome::name);
  const bool yes = row != outcomes.end() && row->yes;
  if (context.out.json()) {
    context.out.Json(answer);
  } else {
    std::string text = context.out.Paint(yes ? Colour::kGreen : Colour::kYellow, Printable(name));
    if (row != outcomes.end() && !row->text.empty()) text += fmt::format(": {}", row->text);
    if (const int64_t due_ms = IntegerOf(answer, "due_ms"); due_ms > 0) {
      text += fmt::format(", due {}", ShowMoment(FromMs(due_ms)));
    }
    context.out.Print("{}\n", text);
  }
  return yes ? kExitOk : kExitNo;
}

}  // namespace tocsin::cli
