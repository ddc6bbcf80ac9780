// AUTH and HELLO: who calls, and in which protocol.
#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void LogIn(Call& call) {
  const Status known = call.session.LogIn(call.args.back());
  known ? Ok(call) : call.Fail(known.error());
}

struct Draft {
  std::optional<std::string_view> token;
  std::optional<std::string_view> name;
};

constexpr Option<Draft> kOptions[] = {
    {"AUTH", 2,
     [](Draft& d, std::string_view, Values v) -> Status {
       d.token = v[1];
       return {};
     }},
    {"SETNAME", 1,
     [](Draft& d, std::string_view, Values v) -> Status {
       d.name = v[0];
       return {};
     }},
};

void Greet(Call& call) {
  Session& session = call.session;
  Writer writer = Reply(call);
  writer.Map(7);
  writer.Bulk("server");
  writer.Bulk("tocsin");
  writer.Bulk("version");
  writer.Bulk(session.server().context().node.version);
  writer.Bulk("proto");
  writer.Integer(static_cast<int64_t>(session.protocol()));
  writer.Bulk("id");
  writer.Integer(static_cast<int64_t>(session.id()));
  writer.Bulk("mode");
  writer.Bulk("standalone");
  writer.Bulk("role");
  writer.Bulk("master");
  writer.Bulk("modules");
  writer.Array(0);
}

void Hello(Call& call) {
  Session& session = call.session;
  auto protocol = static_cast<int64_t>(session.protocol());
  Draft draft;
  if (!call.args.empty()) {
    const auto asked = Number("protover", call.args[0], 2, 3);
    if (!asked) return call.Fail(asked.error());
    protocol = *asked;
    if (const Status status = ReadOptions(draft, call.args.subspan(1), kOptions); !status) {
      return call.Fail(status.error());
    }
  }
  if (draft.token) {
    if (const Status known = session.LogIn(*draft.token); !known) return call.Fail(known.error());
  }
  if (session.server().tokens() != nullptr && session.grant() == nullptr) {
    return call.Fail({Code::kUnauthenticated,
                      "this server needs a token: HELLO 3 AUTH default TOKEN (tocsin token create makes one)",
                      {}});
  }
  if (draft.name) {
    if (const Status named = session.SetName(*draft.name); !named) return call.Fail(named.error());
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
