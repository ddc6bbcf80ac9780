#include "frontend/resp/command.h"

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>

#include "base/result.h"
#include "base/text.h"
#include "frontend/resp/commands/commands.h"
#include "frontend/shared/handlers.h"

namespace tocsin::resp {
namespace {

using api::VerbId;
using auth::Access;

/// Commands that no other door has.
constexpr Command kOwnCommands[] = {
    {.name = "AUTH",
     .syntax = "[user] token",
     .summary = "Logs in with a token (tocsin token create makes one); the user's name does not matter.",
     .args_min = 1,
     .args_max = 2,
     .access = Access::kOpen,
     .run = Auth},
    {.name = "CLIENT",
     .syntax = "ID | GETNAME | SETNAME name | SETINFO attribute value | INFO",
     .summary = "Names the connection, or shows it.",
     .args_min = 1,
     .args_max = 3,
     .run = Client},
    {.name = "COMMAND",
     .syntax = "[COUNT | LIST | INFO name ... | DOCS name ...]",
     .summary = "Lists and describes the commands.",
     .args_max = 64,
     .run = DescribeCommands},
    {.name = "ECHO",
     .syntax = "text",
     .summary = "Answers the text: redis-cli --pipe ends with it.",
     .args_min = 1,
     .args_max = 1,
     .run = Echo},
    {.name = "HELLO",
     .syntax = "[2|3 [AUTH user token] [SETNAME name]]",
     .summary = "Chooses the protocol, and says what this server is.",
     .args_max = 6,
     .access = Access::kOpen,
     .run = Hello},
    {.name = "INFO",
     .syntax = "[server|totals|lateness|conservation ...]",
     .summary = "Shows the server and, to those who may see all topics, its figures.",
     .args_max = 8,
     .holds = true,
     .run = Info},
    {.name = "JOB.MSUBMIT",
     .syntax = "topic DELAY ms | AT ms payload [payload ...]",
     .summary = "Stores many jobs that are due at the same time.",
     .args_min = 4,
     .args_max = kAnyNumber,
     .access = Access::kSubmit,
     .writes = true,
     .run = JobMsubmit},
    {.name = "PING", .syntax = "[text]", .summary = "Answers PONG, or the text.", .args_max = 1, .run = Ping},
    {.name = "QUIT",
     .summary = "Closes the connection after the replies to all commands before it.",
     .access = Access::kOpen,
     .run = Quit},
    {.name = "RESET",
     .summary = "Makes the connection as it was at first: RESP2, no name, not logged in.",
     .access = Access::kOpen,
     .run = Reset},
    {.name = "SELECT",
     .syntax = "0",
     .summary = "For clients that insist: there is one database.",
     .args_min = 1,
     .args_max = 1,
     .run = Select},
};

/// Verbs whose commands are gathered into batches, or that wait for jobs. Shared handlers serve the others.
constexpr std::pair<VerbId, Status (*)(Call&)> kOwnHandlers[] = {
    {VerbId::kSubmitJobs, JobSubmit}, {VerbId::kReserveJobs, JobReserve}, {VerbId::kAckJobs, JobAck},
    {VerbId::kNackJobs, JobNack},     {VerbId::kExtendJobs, JobExtend},   {VerbId::kCancelJob, JobCancel},
    {VerbId::kAmendJob, JobAmend},    {VerbId::kFireJob, JobFire},        {VerbId::kCountJob, JobCount},
};

Command FromVerb(const api::Verb& verb) {
  static std::deque<std::string> kept;  // views of its texts stay good while it grows
  const api::Syntax syntax = SyntaxOf(verb);
  const auto* const own = std::ranges::find(kOwnHandlers, verb.id, &std::pair<VerbId, Status (*)(Call&)>::first);
  const bool is_own = own != std::end(kOwnHandlers);
  TOCSIN_CHECK(is_own || shared::HandlerOf(verb.id) != nullptr);
  return {.name = verb.command,
          .syntax = kept.emplace_back(syntax.text),
          .summary = kept.emplace_back(fmt::format("{}.", verb.summary)),
          .args_min = syntax.args_min,
          .args_max = syntax.args_max,
          .access = verb.access,
          .holds = !is_own || verb.id == VerbId::kReserveJobs,
          .waits = verb.needs_virtual_clock,  // a submit on its way to another shard would see the new time
          .writes = verb.Changes(),
          .run = is_own ? own->second : RunShared,
          .verb = &verb};
}

constexpr size_t kNameMax = 32;

/// Commands of Redis that people may expect here, by their purpose.
constexpr std::array<std::string_view, 7> kPubSub{"SUBSCRIBE",    "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE",
                                                  "PUNSUBSCRIBE", "PUBLISH",    "SPUBLISH"};
constexpr std::array<std::string_view, 5> kTransactions{"MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"};
constexpr std::array<std::string_view, 5> kScripts{"EVAL", "EVALSHA", "SCRIPT", "FUNCTION", "FCALL"};

/// Other names that people may try, and ours.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kOtherNames{{{"JOB.DEL", "JOB.CANCEL"},
                                                                                    {"JOB.DELETE", "JOB.CANCEL"},
                                                                                    {"TOPIC.CREATE", "TOPIC.SET"},
                                                                                    {"TOPIC.DEL", "TOPIC.DROP"},
                                                                                    {"TOPIC.DELETE", "TOPIC.DROP"}}};

template <class Names>
bool IsOneOf(std::string_view name, const Names& names) {
  return std::ranges::any_of(names, [&](std::string_view known) { return SameWord(name, known); });
}

/// The command that the user probably meant by `name`, in capitals; empty if none is near. A short word is near to
/// many, so only few letters may differ.
std::string_view Meant(std::string_view name) {
  for (const std::string_view prefix : {"JOB.", "TOPIC.", "LEASE.", "DEAD."}) {
    if (const Command* const command = FindCommand(std::string(prefix).append(name))) return command->name;
  }
  const auto other = std::ranges::find(kOtherNames, name, [](const auto& names) { return names.first; });
  if (other != kOtherNames.end()) return other->second;
  const auto nearest = std::ranges::min_element(
      Commands(), {}, [&](const Command& command) { return EditDistance(name, command.name); });
  const size_t most = name.size() < 6 ? 1 : 2;
  return EditDistance(name, nearest->name) <= most ? nearest->name : std::string_view();
}

std::string HintFor(std::string_view name) {
  if (IsOneOf(name, kPubSub)) return ": Tocsin has no pub/sub; wait for jobs with JOB.RESERVE topic WAIT ms";
  if (IsOneOf(name, kTransactions)) {
    return ": Tocsin has no transactions; pipelined commands are done in their order, each by itself";
  }
  if (IsOneOf(name, kScripts)) return ": Tocsin has no scripts; every command is one atomic step";
  if (SameWord(name, "MONITOR")) return ": commands are not shown to others; see INFO, TOPIC.GET and the metrics";
  const std::string_view meant = Meant(Capitals(name.substr(0, kNameMax)));
  if (!meant.empty()) return fmt::format("; did you mean \"{}\"?", meant);
  return "; this is Tocsin, a delay queue that speaks the protocol of Redis: see COMMAND LIST";
}

}  // namespace

std::span<const Command> Commands() {
  static const std::vector<Command> table = [] {
    std::vector<Command> commands(std::begin(kOwnCommands), std::end(kOwnCommands));
    for (const api::Verb& verb : api::Verbs()) {
      if (!verb.command.empty()) commands.push_back(FromVerb(verb));
    }
    std::ranges::sort(commands, {}, &Command::name);
    return commands;
  }();
  return table;
}

const Command* FindCommand(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Command*> commands;
    for (const Command& command : Commands()) commands.emplace(command.name, &command);
    return commands;
  }();
  if (name.size() > kNameMax) return nullptr;
  const auto found = by_name.find(Capitals(name));
  return found == by_name.end() ? nullptr : found->second;
}

Error UnknownCommand(std::string_view name) {
  return {Code::kUnknownCommand, fmt::format("unknown command '{}'{}", Shown(name), HintFor(name)), {}};
}

}  // namespace tocsin::resp
