#include "frontend/resp/command.h"

#include <array>
#include <unordered_map>

#include "base/nearest.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr std::array kCommands{&kAuth,        &kClient,    &kClockAdvance, &kCommand,    &kEcho,       &kHello,
                               &kInfo,        &kJobAck,    &kJobAmend,     &kJobCancel,  &kJobCount,   &kJobExtend,
                               &kJobFire,     &kJobGet,    &kJobList,      &kJobMsubmit, &kJobNack,    &kJobRedrive,
                               &kJobReserve,  &kJobSubmit, &kNodes,        &kPing,       &kQuit,       &kReset,
                               &kSelect,      &kTopicDrop, &kTopicGet,     &kTopicList,  &kTopicPause, &kTopicPurge,
                               &kTopicResume, &kTopicSet,  &kTopicTest};

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

/// The command that somebody meant who wrote `name`, in capitals; empty where none is near. A short word is near to
/// many, so that few letters may differ.
std::string_view Meant(std::string_view name) {
  for (const std::string_view prefix : {"JOB.", "TOPIC."}) {
    if (const Command* const command = FindCommand(std::string(prefix).append(name))) return command->name;
  }
  const auto other = std::ranges::find(kOtherNames, name, [](const auto& names) { return names.first; });
  if (other != kOtherNames.end()) return other->second;
  const auto nearest = std::ranges::min_element(
      kCommands, {}, [&](const Command* command) { return EditDistance(name, command->name); });
  const size_t most = name.size() < 6 ? 1 : 2;
  return EditDistance(name, (*nearest)->name) <= most ? (*nearest)->name : std::string_view();
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

void Call::Fail(const Error& error) {
  session.server().CountErrors(error.code, 1);
  Reply(*this).Fail(error);
}

std::span<const Command* const> Commands() { return kCommands; }

const Command* FindCommand(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const Command*> commands;
    for (const Command* command : kCommands) commands.emplace(command->name, command);
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
