// TestSite: an HTTP server on one loop, with real sockets and a few routes that do what a test wants.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "auth/test_tokens.h"
#include "core/service.h"
#include "frontend/http/router.h"
#include "frontend/http/server.h"
#include "frontend/http/session.h"
#include "frontend/shared/handlers.h"
#include "net/socket_test_site.h"
#include "spi/contract/memory_store.h"

namespace tocsin::http {

/// A reply to a list of topics that throws when it is told of the first one.
class ThrowingReply final : public shared::Reply {
 public:
  explicit ThrowingReply(Answer answer) : answer_(std::move(answer)) {}

  std::shared_ptr<net::Connection> connection() const override { return answer_.connection(); }
  JobRoom& room() override { throw std::logic_error("not reached"); }
  Status MakeRoom(size_t) override { return {}; }
  Status MakeRoomForWhole(size_t) override {
    if (std::exchange(told_, true)) throw std::bad_alloc();
    return {};
  }
  void Fail(const Error& error) override { answer_.Fail(error); }
  void Missing(const Error& error) override { answer_.Fail(error); }
  void Done(std::string_view) override {}
  void Became(std::string_view) override {}
  shared::ValueWriter& Begin() override { throw std::logic_error("not reached"); }
  shared::ValueWriter& BeginSingle(std::string_view) override { throw std::logic_error("not reached"); }
  shared::ValueWriter& BeginPage(std::string_view, std::string_view, size_t) override {
    throw std::logic_error("not reached");
  }
  void Send(bool) override {}

 private:
  Answer answer_;
  bool told_ = false;
};

class TestSite : public net::SocketTest {
 protected:
  static constexpr size_t kBudget = 4 << 20;

  TestSite() { service_.Start(); }
  ~TestSite() override {
    held.clear();
    later.clear();
  }

  void Accept(net::Socket socket) override { server_->Accept(std::move(socket), nullptr); }
  void Expire() override { server_->Expire(); }

  /// From now on calls need this token, which may do everything.
  std::string AdmitOneToken() {
    auto [token, tokens] = auth::OneToken();
    server_->Admit(std::move(tokens));
    return token;
  }
  double Metric(std::string_view name) {
    const std::string text = metrics_.RenderPrometheus();
    const size_t at = text.find(fmt::format("\n{} ", name));
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  static inline std::vector<Answer> held;   // of requests to /hold
  static inline std::vector<Task> later;    // the callbacks of requests to /throw_later
  static inline size_t large_bytes = 1024;  // of the answer to /large

  metrics::Registry metrics_;
  net::Budget budget_{kBudget, metrics_};
  Worker scraper_{"scraper"};
  MemoryStore store_;
  Service service_{{{.loop = &loop_, .store = &store_}}, clock_, metrics_};
  Router router_{{
      {.method = Verb::get, .pattern = "/small", .handler = [](Call& call) { call.answer.Send({.body = "small"}); }},
      {.method = Verb::get,
       .pattern = "/large",
       .handler = [](Call& call) { call.answer.Send({.body = std::string(large_bytes, 'x')}); }},
      {.method = Verb::get,
       .pattern = "/{n}/number",
       .handler = [](Call& call) { call.answer.Send({.body = call.params[0]}); }},
      {.method = Verb::post, .pattern = "/hold", .handler = [](Call& call) { held.push_back(std::move(call.answer)); }},
      {.method = Verb::get, .pattern = "/throw", .handler = [](Call&) { throw std::runtime_error("thrown"); }},
      {.method = Verb::get,
       .pattern = "/throw_later",
       .handler =
           [](Call& call) { later.push_back(net::GuardedAnswer(std::move(call.answer), [](Answer&) { throw 1; })); }},
      {.method = Verb::get,
       .pattern = "/throw_within",
       .handler =
           [](Call& call) {
             net::GuardedAnswer(std::move(call.answer), [](Answer& answer) {
               answer.Send({.body = "not sent"});
               throw std::runtime_error("thrown");
             })();
           }},
      {.method = Verb::post,
       .pattern = "/length",
       .handler = [](Call& call) { call.answer.Send({.body = fmt::format("length {}", call.body.size())}); }},
      {.method = Verb::post,
       .pattern = "/reserve",
       .handler =
           [](Call& call) {
             call.session.Park(call.context.service.Reserve(call.loop, {.topic = "t", .wait = Millis(60'000)},
                                                            [answer = std::move(call.answer)](const auto&) mutable {
                                                              if (answer.Wanted()) answer.Send({.body = "reserved"});
                                                            }));
           }},
      RouteOf(api::VerbId::kSubmitJobs),
      RouteOf(api::VerbId::kListJobs),
      RouteOf(api::VerbId::kShowJob),
      RouteOf(api::VerbId::kReserveJobs),
      RouteOf(api::VerbId::kAckJobs),
      RouteOf(api::VerbId::kShowMetrics),
      RouteOf(api::VerbId::kListTopics),
      {.method = Verb::get,
       .pattern = "/throw_topic",
       .handler =
           [](Call& call) {
             shared::Call shared{.service = call.context.service,
                                 .loop = call.loop,
                                 .clock = call.context.clock,
                                 .virtual_clock = nullptr,
                                 .node = call.context.node,
                                 .reply = std::make_unique<ThrowingReply>(std::move(call.answer))};
             shared::HandlerOf(api::VerbId::kListTopics)(std::move(shared));
           }},
      {.method = Verb::get,
       .pattern = "/throw_piece",
       .handler =
           [](Call& call) {
             const auto more = [](TakePiece take) {
               take({.failure = std::make_exception_ptr(std::runtime_error("thrown"))});
             };
             call.answer.Send({.body = "first", .more = more});
           }},
  }};
  std::unique_ptr<Server> server_ =
      std::make_unique<Server>(Context{service_, clock_, nullptr, metrics_, scraper_}, router_, budget_, loop_,
                               Options{.body_bytes_max = 16 << 20});
};

}  // namespace tocsin::http
