// What a client asks about the server: INFO, and COMMAND, by which redis-cli and others know the commands.
#include <fstream>

#include <unistd.h>

#include "core/figures.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

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
  writer.Member("summary", command.summary);
  writer.Member("since", version);
  writer.Member("group", std::string_view("module"));
  if (command.syntax.empty()) return;
  writer.Text("arguments");
  writer.Array(1);
  writer.Object(3);
  writer.Member("name", command.syntax);
  writer.Member("type", std::string_view("string"));
  writer.Member("display_text", command.syntax);
}

/// The commands named, or all if none is.
std::vector<const Command*> Chosen(Values names) {
  std::vector<const Command*> chosen;
  for (const std::string_view name : names) chosen.push_back(FindCommand(name));
  if (!names.empty()) return chosen;
  for (const Command& command : Commands()) chosen.push_back(&command);
  return chosen;
}

/// The resident memory of this process; 0 if the system does not tell.
size_t ResidentBytes() {
  size_t pages = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

/// Redis's words beside our own: some clients look at them before they say anything else, and redis-cli --stat shows
/// them.
std::string ServerText(const Server& server) {
  const Context& context = server.context();
  const auto uptime = std::chrono::duration_cast<Millis>(context.clock.IoNow() - context.node.started).count();
  const size_t connections = context.node.connections->load(std::memory_order_relaxed);
  return fmt::format(
      "# server\r\ntocsin_version:{}\r\nredis_mode:standalone\r\nrole:master\r\nloading:0\r\nnow_ms:{}\r\n"
      "uptime_ms:{}\r\nuptime_in_seconds:{}\r\nshards:{}\r\nconnections:{}\r\nconnected_clients:{}\r\n"
      "blocked_clients:{}\r\nused_memory:{}\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n",
      context.node.version, ToMs(context.clock.Now().utc), uptime, uptime / 1000, context.node.shards, connections,
      connections, server.parked(), ResidentBytes(), context.connection_ids->load(std::memory_order_relaxed),
      server.CommandsAnswered());
}

void AddTopics(std::string& text, const Totals& totals, bool totals_wanted, bool lateness_wanted,
               bool conservation_wanted) {
  const auto out = std::back_inserter(text);
  const auto begin = [&] { text += text.empty() ? "" : "\r\n"; };  // an empty line between two sections
  if (totals_wanted) {
    begin();
    fmt::format_to(out, "# totals\r\ntopics:{}\r\n", totals.topics);
    for (const FigureColumn& column : kFigureColumns) {
      fmt::format_to(out, "totals_{}:{}\r\n", column.name, totals.figures.*column.value);
    }
  }
  if (lateness_wanted) {
    begin();
    const Lateness& lateness = totals.lateness;
    fmt::format_to(out,
                   "# lateness\r\nlateness_ms_count:{}\r\nlateness_ms_p50:{:.3f}\r\nlateness_ms_p99:{:.3f}\r\n"
                   "lateness_ms_p999:{:.3f}\r\nlateness_ms_max:{:.3f}\r\n",
                   lateness.count, lateness.p50 * 1e3, lateness.p99 * 1e3, lateness.p999 * 1e3, lateness.max * 1e3);
  }
  if (conservation_wanted) {
    begin();
    const uint64_t in = totals.figures.recovered + totals.figures.accepted;
    const int64_t difference = ConservationDifference(totals.figures);
    fmt::format_to(out, "# conservation\r\nconservation_in:{}\r\nconservation_out:{}\r\nconservation_difference:{}\r\n",
                   in, static_cast<int64_t>(in) - difference, difference);
  }
}

bool Wants(const Call& call, std::string_view section) {
  if (call.args.empty()) return true;
  return std::ranges::any_of(call.args, [&](std::string_view word) {
    return SameWord(word, section) || SameWord(word, "all") || SameWord(word, "everything") ||
           SameWord(word, "default");
  });
}

}  // namespace

Status DescribeCommands(Call& call) {
  constexpr std::string_view kWords[] = {"COUNT", "LIST", "INFO", "DOCS"};
  const std::string word = call.args.empty() ? "INFO" : Capitals(call.args[0].substr(0, 64));
  if (std::ranges::find(kWords, word) == std::end(kWords)) return UnknownWord("subcommand", call.args[0], kWords);
  auto chosen = Chosen(call.args.empty() ? Values() : call.args.subspan(1));
  Writer writer = Reply(call);
  if (word == "COUNT") {
    writer.Number(static_cast<int64_t>(Commands().size()));
  } else if (word == "LIST") {
    writer.Array(Commands().size());
    for (const Command& command : Commands()) writer.Text(Small(command.name));
  } else if (word == "INFO") {
    writer.Array(chosen.size());
    for (const Command* command : chosen) command == nullptr ? writer.Null() : WriteInfo(writer, *command);
  } else {
    std::erase(chosen, nullptr);
    writer.Object(chosen.size());
    for (const Command* command : chosen) WriteDocs(writer, *command, call.session.server().context().node.version);
  }
  return {};
}

Status Info(Call& call) {
  Server& server = call.session.server();
  std::string text = Wants(call, "server") ? ServerText(server) : "";
  const bool totals = Wants(call, "totals");
  const bool lateness = Wants(call, "lateness");
  const bool conservation = Wants(call, "conservation");
  // What all topics hold is for those who may see all topics.
  const auth::Grant* const grant = call.session.grant();
  const bool sees_all = server.tokens() == nullptr || (grant != nullptr && grant->AllowsAll(auth::Scope::kObserve));
  if (!sees_all || !(totals || lateness || conservation)) {
    Reply(call).Text(text);
    return {};
  }
  auto add = [text = std::move(text), totals, lateness, conservation](Answer& answer, const Totals& all) mutable {
    AddTopics(text, all, totals, lateness, conservation);
    answer.writer().Text(text);
  };
  server.context().service.Total(server.loop(), call.session.pipeline().Hold(call).Then(std::move(add)));
  return {};
}

}  // namespace tocsin::resp
