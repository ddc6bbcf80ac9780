#include "cli/commands.h"

#include "cli/verbs/verbs.h"

namespace tocsin::cli {

std::span<const Group> Groups() {
  static const std::vector<Group> groups{
      {"Jobs", {Submit(), Get(), List(), Amend(), Fire(), Count(), Cancel()}},
      {"Delivery", {WorkerRow(), Reserve(), Ack(), Nack(), Extend()}},
      {"Topics",
       {Topics(), TopicGet(), TopicSet(), TopicTest(), TopicPause(), TopicResume(), TopicPurge(), TopicDrop()}},
      {"Dead letters", {DeadList(), DeadRedrive(), DeadPurge()}},
      {"Server", {Stats(), Cluster(), Watch(), ClockAdvance()}},
      {"Transfer", {Export(), Import()}},
      {"Tokens", {TokenCreate(), TokenList(), TokenRevoke()}},
      {"Offline", {Demo(), JournalVerify(), JournalRepair(), Docs()}},
  };
  return groups;
}

std::span<const Flag> GlobalFlags() {
  static const std::vector<Flag> flags{
      {.name = "server",
       .value = "URL",
       .fallback = "http://127.0.0.1:7420",
       .doc = "Where the server is: http://HOST:PORT.",
       .variable = "TOCSIN_SERVER"},
      {.name = "token-file",
       .value = "FILE",
       .doc = "File that holds the access token, for a server that needs one. TOCSIN_TOKEN may hold the access token "
              "itself. The flag wins over TOCSIN_TOKEN_FILE, and that over TOCSIN_TOKEN.",
       .variable = "TOCSIN_TOKEN_FILE"},
      {.name = "timeout",
       .kind = Kind::kDuration,
       .value = "DURATION",
       .fallback = "30s",
       .doc = "How long the server may take to answer; what --wait says comes on top."},
      {.name = "json", .kind = Kind::kSwitch, .doc = "Print JSON as the server sends it, one object a line."},
  };
  return flags;
}

}  // namespace tocsin::cli
