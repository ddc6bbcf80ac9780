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
#include "net/socket_test_site.h"
#include "spi/contract/memory_store.h"

namespace tocsin::http {

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
  Worker scraper_{"scraper"};
  MemoryStore store_;
  Service service_{{{.loop = &loop_, .store = &store_}}, clock_, metrics_};
  net::Budget budget_{kBudget, metrics_};
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
      RouteOf(api::VerbId::kReserveJobs),
      RouteOf(api::VerbId::kAckJobs),
      RouteOf(api::VerbId::kShowMetrics),
  }};
  std::unique_ptr<Server> server_ =
      std::make_unique<Server>(Context{service_, clock_, nullptr, metrics_, scraper_}, router_, budget_, loop_,
                               Options{.body_bytes_max = 16 << 20});
};

}  // namespace tocsin::http
