// Commands whose handlers are the same on every door.
#include "frontend/resp/commands/commands.h"
#include "frontend/shared/handlers.h"

namespace tocsin::resp {
namespace {

class RespReply final : public shared::Reply {
 public:
  explicit RespReply(Answer answer) : answer_(std::move(answer)), out_(answer_.writer()) {}

  std::shared_ptr<net::Connection> connection() const override { return answer_.connection(); }
  Status MakeRoom(size_t bytes) override { return answer_.MakeRoom(bytes); }
  void Fail(const Error& error) override { answer_.Fail(error); }
  void Missing(const Error& /*error*/) override {
    out_.Null();
    answer_.Done();
  }
  void Done(std::string_view /*outcome*/) override {
    out_.Simple("OK");
    answer_.Done();
  }
  shared::ValueWriter& Begin() override { return out_; }
  shared::ValueWriter& BeginSingle(std::string_view /*name*/) override { return out_; }
  shared::ValueWriter& BeginPage(std::string_view cursor, size_t jobs) override {
    out_.Array(2);
    cursor.empty() ? out_.Null() : out_.Text(cursor);
    out_.Array(jobs);
    return out_;
  }
  void Send(bool /*created*/) override { answer_.Done(); }

 private:
  Answer answer_;
  Writer out_;
};

}  // namespace

void RunShared(Call& call) {
  const Context& context = call.session.server().context();
  const api::Verb& verb = *call.command.verb;
  const auth::Grant* const grant = call.session.grant();
  shared::Call shared{.service = context.service,
                      .loop = LoopOf(call),
                      .clock = context.clock,
                      .virtual_clock = context.virtual_clock,
                      .node = context.node,
                      .prefix = grant != nullptr ? grant->prefix : std::string(),
                      .bytes = call.session.bytes()};
  if (verb.HasTopic()) shared.topic = call.topic();
  const Values rest = call.args.subspan(verb.HasTopic() ? 1 : 0);
  if (verb.takes_settings) {
    auto change = ReadSettings(rest);
    if (!change) return call.Fail(change.error());
    shared.change = *std::move(change);
  } else if (const Status status = ReadArguments(rest, verb, shared.arguments); !status) {
    return call.Fail(status.error());
  }
  shared.reply = std::make_unique<RespReply>(call.session.pipeline().Hold(call));
  shared::HandlerOf(verb.id)(std::move(shared));
}

}  // namespace tocsin::resp
