#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr std::string_view kWords[] = {"ID", "GETNAME", "SETNAME", "SETINFO", "INFO"};

void SetName(Call& call) {
  const Status named = call.session.SetName(call.args[1]);
  named ? Ok(call) : call.Fail(named.error());
}

void Info(Call& call) {
  const Session& session = call.session;
  Reply(call).Text(fmt::format("id={} addr={} name={} resp={}\n", session.id(), session.Peer(), session.name(),
                               static_cast<int>(session.protocol())));
}

void Run(Call& call) {
  const std::string word = Capitals(call.args[0].substr(0, 64));
  const size_t args = call.args.size() - 1;
  if (word == "ID" && args == 0) return Reply(call).Number(static_cast<int64_t>(call.session.id()));
  if (word == "GETNAME" && args == 0) return Reply(call).Text(call.session.name());
  if (word == "SETNAME" && args == 1) return SetName(call);
  if (word == "SETINFO" && args == 2) return Ok(call);
  if (word == "INFO" && args == 0) return Info(call);
  if (std::ranges::find(kWords, word) == std::end(kWords)) {
    return call.Fail(UnknownWord("subcommand", call.args[0], kWords).error());
  }
  call.Fail({Code::kInvalidArgument,
             fmt::format("CLIENT {} does not take {} argument{}", word, args, args == 1 ? "" : "s"),
             {}});
}

}  // namespace

const Command kClient = {
    .name = "CLIENT",
    .syntax = "ID | GETNAME | SETNAME name | SETINFO attribute value | INFO",
    .summary = "Names the connection, or shows it.",
    .args_min = 1,
    .args_max = 3,
    .run = Run,
};

}  // namespace tocsin::resp
