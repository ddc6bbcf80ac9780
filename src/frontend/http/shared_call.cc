// Calls whose handlers are the same on every door.
#include "frontend/http/call.h"
#include "frontend/http/decode.h"
#include "frontend/http/fields.h"
#include "frontend/http/handlers.h"
#include "frontend/http/json_writer.h"
#include "frontend/shared/handlers.h"

namespace tocsin::http {
namespace {

class JsonReply final : public shared::Reply {
 public:
  explicit JsonReply(Answer answer) : answer_(std::move(answer)) {}

  std::shared_ptr<net::Connection> connection() const override { return answer_.connection(); }
  Status MakeRoom(size_t bytes) override { return answer_.MakeRoom(bytes); }
  void Fail(const Error& error) override { answer_.Fail(OnTheWire(error)); }
  void Missing(const Error& error) override { Fail(error); }
  void Done(std::string_view outcome) override {
    BeginSingle("outcome").Text(outcome);
    Send(false);
  }
  shared::ValueWriter& Begin() override { return out_; }
  shared::ValueWriter& BeginSingle(std::string_view name) override {
    out_.Object(1);
    out_.Name(name);
    open_ = true;
    return out_;
  }
  shared::ValueWriter& BeginPage(std::string_view cursor, size_t jobs) override {
    BeginSingle("jobs").Array(jobs);
    is_page_ = true;
    cursor_ = cursor;
    return out_;
  }
  void Send(bool created) override {
    if (is_page_) out_.EndArray();
    if (!cursor_.empty()) out_.Member("cursor", std::string_view(cursor_));
    if (open_) out_.EndObject();
    answer_.Send({.status = created ? 201 : 200, .body = out_.Take()});
  }

 private:
  Answer answer_;
  JsonWriter out_;
  bool open_ = false;  // an object is to be closed
  bool is_page_ = false;
  std::string cursor_;
};

}  // namespace

void RunShared(Call& call) {
  const Context& context = call.context;
  shared::Call shared{.service = context.service,
                      .loop = call.loop,
                      .clock = context.clock,
                      .virtual_clock = context.virtual_clock,
                      .node = context.node,
                      .prefix = call.grant != nullptr ? call.grant->prefix : std::string()};
  if (call.verb->takes_settings) {
    const auto document = call.OptionalBody();
    if (document == nullptr) return;
    auto change = DecodeTopicChange(*document);
    if (!change) return call.answer.Fail(change.error());
    shared.change = *std::move(change);
    shared.topic = std::move(call.params[0]);
  } else {
    auto decoded = call.Decode();
    if (!decoded) return;
    shared.arguments = std::move(decoded->arguments);
    shared.topic = std::move(decoded->topic);
    shared.bytes = std::move(decoded->bytes);
  }
  shared.reply = std::make_unique<JsonReply>(std::move(call.answer));
  shared::HandlerOf(call.verb->id)(std::move(shared));
}

}  // namespace tocsin::http
