// AUTH and HELLO: who calls, and in which protocol.
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void LogIn(Call& call) {
  const Status known = call.session.LogIn(call.args.back());
  known ? Ok(call) : call.Fail(known.error());
}

/// What follows the version of the protocol.
struct Greeting {
  std::optional<std::string_view> token;
  std::optional<std::string_view> name;
};

Result<Greeting> ReadGreeting(Values args) {
  Greeting greeting;
  while (!args.empty()) {
    const bool auth = SameWord(args[0], "AUTH");
    const size_t values = auth ? 2 : 1;
    auto& to = auth ? greeting.token : greeting.name;
    if (!auth && !SameWord(args[0], "SETNAME")) {
      constexpr std::string_view kKnown[] = {"AUTH", "SETNAME"};
      return UnknownWord("option", args[0], kKnown);
    }
    if (to) return GivenTwice(Capitals(args[0]));
    if (args.size() <= values) return MissingValue(Capitals(args[0]), values, args.size() - 1);
    to = args[values];
    args = args.subspan(1 + values);
  }
  return greeting;
}

void Greet(Call& call) {
  Session& session = call.session;
  Writer writer = Reply(call);
  writer.Object(7);
  writer.Member("server", std::string_view("tocsin"));
  writer.Member("version", std::string_view(session.server().context().node.version));
  writer.Member("proto", static_cast<int64_t>(session.protocol()));
  writer.Member("id", static_cast<int64_t>(session.id()));
  writer.Member("mode", std::string_view("standalone"));
  writer.Member("role", std::string_view("master"));
  writer.Text("modules");
  writer.Array(0);
}

void Hello(Call& call) {
  Session& session = call.session;
  auto protocol = static_cast<int64_t>(session.protocol());
  Greeting greeting;
  if (!call.args.empty()) {
    const auto asked = ReadNumber("protover", call.args[0], 2, 3);
    if (!asked) return call.Fail(asked.error());
    protocol = *asked;
    const auto read = ReadGreeting(call.args.subspan(1));
    if (!read) return call.Fail(read.error());
    greeting = *read;
  }
  if (greeting.token) {
    if (const Status known = session.LogIn(*greeting.token); !known) return call.Fail(known.error());
  }
  if (session.server().tokens() != nullptr && session.grant() == nullptr) {
    return call.Fail({Code::kUnauthenticated,
                      "this server needs a token: HELLO 3 AUTH default TOKEN (tocsin token create makes one)",
                      {}});
  }
  if (greeting.name) {
    if (const Status named = session.SetName(*greeting.name); !named) return call.Fail(named.error());
  }
  session.pipeline().Flush();
  session.SetProtocol(static_cast<Protocol>(protocol));
  Greet(call);
}

}  // namespace

const Command kAuth = {
    .name = "AUTH",
    .syntax = "[user] token",
    .summary = "Logs in with a token (tocsin token create makes one); the user's name does not matter.",
    .args_min = 1,
    .args_max = 2,
    .access = auth::Access::kOpen,
    .run = LogIn,
};

const Command kHello = {
    .name = "HELLO",
    .syntax = "[2|3 [AUTH user token] [SETNAME name]]",
    .summary = "Chooses the protocol, and says what this server is.",
    .args_max = 6,
    .access = auth::Access::kOpen,
    .run = Hello,
};

}  // namespace tocsin::resp
