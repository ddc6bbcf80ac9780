// What a connection says of itself: PING, ECHO, SELECT, QUIT, RESET.
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr size_t kTextMax = 64 << 10;  // as long as an inline command can be

void Echo(Call& call) {
  const size_t size = call.args[0].size();
  if (size <= kTextMax) return Reply(call).Text(call.args[0]);
  call.Fail({Code::kTooLarge, fmt::format("the text has {} bytes: the most is {}", size, kTextMax), "text"});
}

void Ping(Call& call) { call.args.empty() ? Reply(call).Simple("PONG") : Echo(call); }

void Select(Call& call) {
  if (call.args[0] == "0") return Ok(call);
  call.Fail({Code::kInvalidArgument, "there is one database, 0; topics keep jobs apart", "index"});
}

void Quit(Call& call) {
  Ok(call);
  call.session.CloseWhenAnswered();
}

void Reset(Call& call) {
  call.session.Reset();
  Reply(call).Simple("RESET");
}

}  // namespace

const Command kPing = {
    .name = "PING",
    .syntax = "[text]",
    .summary = "Answers PONG, or the text.",
    .args_max = 1,
    .run = Ping,
};

const Command kEcho = {
    .name = "ECHO",
    .syntax = "text",
    .summary = "Answers the text: redis-cli --pipe ends with it.",
    .args_min = 1,
    .args_max = 1,
    .run = Echo,
};

const Command kSelect = {
    .name = "SELECT",
    .syntax = "0",
    .summary = "For clients that insist: there is one database.",
    .args_min = 1,
    .args_max = 1,
    .run = Select,
};

const Command kQuit = {
    .name = "QUIT",
    .syntax = "",
    .summary = "Closes the connection after the replies to all commands before it.",
    .access = auth::Access::kOpen,
    .run = Quit,
};

const Command kReset = {
    .name = "RESET",
    .syntax = "",
    .summary = "Makes the connection as it was at first: RESP2, no name, not logged in.",
    .access = auth::Access::kOpen,
    .run = Reset,
};

}  // namespace tocsin::resp
