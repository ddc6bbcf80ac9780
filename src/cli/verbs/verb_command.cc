#include "cli/verbs/verb_command.h"

#include "cli/commands.h"
#include "cli/verbs/outcome.h"
#include "cli/verbs/request.h"

namespace tocsin::cli {
namespace {

/// `text` with its {NAME}s filled in.
std::string Filled(std::string_view text, const Arguments& arguments, const json::object& answer) {
  std::string filled;
  for (size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{')) {
    const size_t close = text.find('}');
    const std::string_view name = text.substr(open + 1, close - open - 1);
    filled += text.substr(0, open);
    filled += arguments.Has(name) ? Printable(*arguments.Text(name)) : std::to_string(IntegerOf(answer, name));
    text.remove_prefix(close + 1);
  }
  return filled += text;
}

std::string ValueText(const json::value& value) {
  return Printable(value.is_string() ? std::string(value.get_string()) : json::serialize(value));
}

void PrintForPeople(Context& context, const VerbExtras& extras, const Arguments& arguments,
                    const json::object& answer) {
  Output& out = context.out;
  if (extras.print != nullptr) return extras.print(context, arguments, answer);
  for (const json::value& result : ArrayOf(answer, extras.list)) {
    if (!result.is_object()) continue;
    out.Print("{} {}\n", Printable(TextOf(result.get_object(), "token")), OutcomeText(out, result.get_object()));
  }
  if (!extras.list.empty()) return;
  if (answer.contains("outcome")) out.Print("{}\n", OutcomeText(out, answer));
  if (!extras.done.empty()) {
    if (StatusOf(answer).value_or(kExitNo) == kExitOk) out.Print("{}\n", Filled(extras.done, arguments, answer));
    return;
  }
  for (const auto& [name, value] : answer) {
    if (name != "outcome" && name != "due_ms") out.Print("{}: {}\n", Printable(name), ValueText(value));
  }
}

Result<int> Run(const api::Verb& verb, const VerbExtras& extras, Context& context, const Arguments& arguments) {
  if (!extras.question.empty()) {
    const std::string topic = Printable(*arguments.Text("TOPIC"));
    const auto sure = Confirm(arguments.Has("yes"), fmt::format(fmt::runtime(extras.question), topic));
    if (!sure) return std::unexpected(sure.error());
    if (!*sure) return kExitNo;
  }
  const auto request = RequestOf(verb, arguments);
  if (!request) return std::unexpected(request.error());
  const auto answer = Send(context, verb, *request);
  if (!answer) return std::unexpected(answer.error());
  if (!context.out.json()) {
    PrintForPeople(context, extras, arguments, *answer);
  } else if (extras.list.empty()) {
    context.out.Json(*answer);
  } else {
    for (const json::value& one : ArrayOf(*answer, extras.list)) context.out.Json(one);
  }
  return extras.list.empty() ? StatusOf(*answer) : StatusOf(ArrayOf(*answer, extras.list));
}

}  // namespace

Command VerbCommand(std::string_view name, VerbExtras extras) {
  const api::Verb& verb = VerbNamed(name);
  std::string summary(verb.summary);
  summary[0] = static_cast<char>(std::tolower(summary[0]));
  Command command{.name = verb.cli,
                  .summary = Keep(std::move(summary)),
                  .details = extras.details,
                  .positionals = PositionalsOf(verb),
                  .flags = FlagsOf(verb),
                  .examples = extras.examples,
                  .no = extras.no};
  command.flags.insert(command.flags.end(), extras.flags.begin(), extras.flags.end());
  if (command.examples.empty()) {
    command.examples = {
        {Keep(fmt::format("{}{}{}", name, verb.HasTopic() ? " orders" : "", verb.HasId() ? " order-17" : "")),
         command.summary}};
  }
  if (!extras.question.empty()) {
    command.flags.push_back(
        {.name = "yes", .kind = Kind::kSwitch, .doc = "Do not ask. Needed if stdin is not a terminal."});
  }
  if (extras.run != nullptr) {
    command.run = extras.run;
  } else {
    command.run = [&verb, extras = std::move(extras)](Context& context, const Arguments& arguments) {
      return Run(verb, extras, context, arguments);
    };
  }
  return command;
}

}  // namespace tocsin::cli
