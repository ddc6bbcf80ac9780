// What a connection says of itself: who calls, in which protocol, and what else Redis's clients say first.
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

constexpr size_t kTextMax = 64 << 10;  // as long as an inline command can be

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

}  // namespace

Status Auth(Call& call) {
  TOCSIN_TRY(call.session.LogIn(call.args.back()));
  return Ok(call);
}

Status Hello(Call& call) {
  Session& session = call.session;
  auto protocol = static_cast<int64_t>(session.protocol());
  Greeting greeting;
  if (!call.args.empty()) {
    TOCSIN_ASSIGN(protocol, api::ReadNumber("protover", call.args[0], 2, 3));
    TOCSIN_ASSIGN(greeting, ReadGreeting(call.args.subspan(1)));
  }
  if (greeting.token) TOCSIN_TRY(session.LogIn(*greeting.token));
  if (session.server().tokens() != nullptr && session.grant() == nullptr) {
    return Fail(Code::kUnauthenticated,
                "this server needs a token: HELLO 3 AUTH default TOKEN (tocsin token create makes one)");
  }
  if (greeting.name) TOCSIN_TRY(session.SetName(*greeting.name));
  session.pipeline().Flush();
  session.SetProtocol(static_cast<Protocol>(protocol));
  Greet(call);
  return {};
}

Status Client(Call& call) {
  constexpr std::string_view kWords[] = {"ID", "GETNAME", "SETNAME", "SETINFO", "INFO"};
  Session& session = call.session;
  const std::string word = Capitals(call.args[0].substr(0, 64));
  const size_t args = call.args.size() - 1;
  if (word == "ID" && args == 0) {
    Reply(call).Number(static_cast<int64_t>(session.id()));
  } else if (word == "GETNAME" && args == 0) {
    Reply(call).Text(session.name());
  } else if (word == "SETNAME" && args == 1) {
    TOCSIN_TRY(session.SetName(call.args[1]));
    return Ok(call);
  } else if (word == "SETINFO" && args == 2) {
    return Ok(call);
  } else if (word == "INFO" && args == 0) {
    Reply(call).Text(fmt::format("id={} addr={} name={} resp={}\n", session.id(), session.Peer(), session.name(),
                                 static_cast<int>(session.protocol())));
  } else if (std::ranges::find(kWords, word) == std::end(kWords)) {
    return UnknownWord("subcommand", call.args[0], kWords);
  } else {
    return Fail(Code::kInvalidArgument, "CLIENT {} does not take {} argument{}", word, args, args == 1 ? "" : "s");
  }
  return {};
}

Status Echo(Call& call) {
  const size_t size = call.args[0].size();
  if (size > kTextMax) {
    return FailField(Code::kTooLarge, "text", "the text has {} bytes: the most is {}", size, kTextMax);
  }
  Reply(call).Text(call.args[0]);
  return {};
}

Status Ping(Call& call) { return call.args.empty() ? Ok(call, "PONG") : Echo(call); }

Status Select(Call& call) {
  if (call.args[0] == "0") return Ok(call);
  return FailField(Code::kInvalidArgument, "index", "there is one database, 0; topics keep jobs apart");
}

Status Quit(Call& call) {
  call.session.CloseWhenAnswered();
  return Ok(call);
}

Status Reset(Call& call) {
  call.session.Reset();
  return Ok(call, "RESET");
}

}  // namespace tocsin::resp
