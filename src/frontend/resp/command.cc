#include "frontend/resp/command.h"

#include <array>
#include <unordered_map>

#include "base/nearest.h"
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr std::array kCommands{
    &kAuth,      &kClient,     &kClockAdvance, &kCommand,    &kEcho,       &kHello,       &kInfo,    &kJobAck,
    &kJobAmend,  &kJobCancel,  &kJobCount,     &kJobExtend,  &kJobFire,    &kJobGet,      &kJobList, &kJobMsubmit,
    &kJobNack,   &kJobRedrive, &kJobReserve,   &kJobSubmit,  &kPing,       &kQuit,        &kReset,   &kSelect,
    &kTopicDrop, &kTopicGet,   &kTopicList,    &kTopicPause, &kTopicPurge, &kTopicResume, &kTopicSet};

constexpr size_t kNameMax = 32;

/// Commands of Redis that people may expect here, by their purpose.
constexpr std::array<std::string_view, 8> kPubSub{"SUBSCRIBE",    "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE",
                                                  "PUNSUBSCRIBE", "PUBLISH",    "SPUBLISH",   "MONITOR"};
constexpr std::array<std::string_view, 5> kTransactions{"MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH"};
constexpr std::array<std::string_view, 5> kScripts{"EVAL", "EVALSHA", "SCRIPT", "FUNCTION", "FCALL"};

template <class Names>
bool IsOneOf(std::string_view name, const Names& names) {
  return std::ranges::any_of(names, [&](std::string_view known) { return SameWord(name, known); });
}

std::string HintFor(std::string_view name) {
  if (IsOneOf(name, kPubSub)) return ": Tocsin has no pub/sub; wait for jobs with JOB.RESERVE topic WAIT ms";
  if (IsOneOf(name, kTransactions)) {
    return ": Tocsin has no transactions; pipelined commands are done in their order, each by itself";
  }
  if (IsOneOf(name, kScripts)) return ": Tocsin has no scripts; every command is one atomic step";
  std::vector<std::string_view> names;
  for (const Command* command : kCommands) names.push_back(command->name);
  std::string hint = DidYouMean(Capitals(name.substr(0, 2 * kNameMax)), names);
  if (hint.empty()) hint = "; this is Tocsin, a delay queue that speaks the protocol of Redis: see COMMAND LIST";
  return hint;
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
