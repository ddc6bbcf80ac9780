// COMMAND: what redis-cli and other clients ask to know this server's commands.
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr std::string_view kWords[] = {"COUNT", "LIST", "INFO", "DOCS"};

std::string Small(std::string_view name) {
  std::string small(name);
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return small;
}

/// name, arity, flags, first key, last key, step, categories, tips, key specifications, subcommands
void WriteInfo(Writer& writer, const Command& command) {
  const auto least = static_cast<int64_t>(command.args_min) + 1;
  writer.Array(10);
  writer.Text(Small(command.name));
  writer.Number(command.args_min == command.args_max ? least : -least);
  writer.Array(command.holds ? 2 : 1);
  writer.Simple(command.writes ? "write" : "readonly");
  if (command.holds) writer.Simple("blocking");
  for (int i = 0; i < 3; ++i) writer.Number(0);
  for (int i = 0; i < 4; ++i) writer.Array(0);
}

/// The syntax as one argument: redis-cli shows it after the name that is being typed.
void WriteDocs(Writer& writer, const Command& command, std::string_view version) {
  writer.Text(Small(command.name));
  writer.Object(command.syntax.empty() ? 3 : 4);
  writer.Text("summary");
  writer.Text(command.summary);
  writer.Text("since");
  writer.Text(version);
  writer.Text("group");
  writer.Text("module");
  if (command.syntax.empty()) return;
  writer.Text("arguments");
  writer.Array(1);
  writer.Object(3);
  writer.Text("name");
  writer.Text(command.syntax);
  writer.Text("type");
  writer.Text("string");
  writer.Text("display_text");
  writer.Text(command.syntax);
}

/// The commands named, or all if none is.
std::vector<const Command*> Chosen(Values names) {
  std::vector<const Command*> chosen;
  for (const std::string_view name : names) chosen.push_back(FindCommand(name));
  if (names.empty()) chosen.assign(Commands().begin(), Commands().end());
  return chosen;
}

void Run(Call& call) {
  const std::string word = call.args.empty() ? "INFO" : Capitals(call.args[0].substr(0, 64));
  const Values names = call.args.empty() ? Values() : call.args.subspan(1);
  if (std::ranges::find(kWords, word) == std::end(kWords)) {
    return call.Fail(UnknownWord("subcommand", call.args[0], kWords).error());
  }
  Writer writer = Reply(call);
  if (word == "COUNT") return writer.Number(static_cast<int64_t>(Commands().size()));
  if (word == "LIST") {
    writer.Array(Commands().size());
    for (const Command* command : Commands()) writer.Text(Small(command->name));
    return;
  }
  auto chosen = Chosen(names);
  if (word == "INFO") {
    writer.Array(chosen.size());
    for (const Command* command : chosen) command == nullptr ? writer.Null() : WriteInfo(writer, *command);
    return;
  }
  std::erase(chosen, nullptr);
  writer.Object(chosen.size());
  for (const Command* command : chosen) {
    WriteDocs(writer, *command, call.session.server().context().node.version);
  }
}

}  // namespace

const Command kCommand = {
    .name = "COMMAND",
    .syntax = "[COUNT | LIST | INFO name ... | DOCS name ...]",
    .summary = "Lists and describes the commands.",
    .args_max = 64,
    .run = Run,
};

}  // namespace tocsin::resp
