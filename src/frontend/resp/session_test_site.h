// TestSite: a RESP server on one loop, with real sockets and a store whose calls are counted and whose answers come
// through the loop, later than the call.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "auth/test_tokens.h"
#include "core/service.h"
#include "core/test_node.h"
#include "frontend/resp/server.h"
#include "frontend/resp/test_replies.h"
#include "net/socket_test_site.h"
#include "spi/contract/memory_store.h"

namespace tocsin::resp {

/// A command as clients send it.
inline std::string CommandText(const std::vector<std::string>& args) {
  std::string text = fmt::format("*{}\r\n", args.size());
  for (const std::string& arg : args) text += fmt::format("${}\r\n{}\r\n", arg.size(), arg);
  return text;
}

/// Makes NODES throw.
class ThrowingCluster final : public Cluster {
 public:
  void Describe(Loop&, Done<ClusterReport>) override { throw std::runtime_error("thrown"); }
};

class TestSite : public net::SocketTest {
 protected:
  static constexpr size_t kBudget = 4 << 20;

  TestSite() {
    service_.Start();
    Settle();
  }
  ~TestSite() override {
    held_submits_.clear();
    bool stopped = false;
    loop_.Post([&] { service_.Stop(loop_, [&] { stopped = true; }); });
    if (!stopping_) RunWhile([&] { return !stopped; });
  }

  void Accept(net::Socket socket) override { server_->Accept(std::move(socket), nullptr); }
  void Expire() override { server_->Expire(); }

  /// Replies that have come as a whole; what is left of them stays.
  static std::vector<Reply> TakeReplies(Client& client) {
    while (client.Take()) {
    }
    std::vector<Reply> replies;
    size_t at = 0;
    while (at < client.got.size()) {
      auto [form, size, reply] = ReadReply(std::string_view(client.got).substr(at));
      EXPECT_NE(form, Form::kBad) << client.got.substr(at, 100);
      if (form != Form::kWhole) break;
      replies.push_back(std::move(reply));
      at += size;
    }
    client.got.erase(0, at);
    return replies;
  }
  std::vector<Reply> Read(Client& client, size_t count) {
    std::vector<Reply> replies;
    RunWhile([&] {
      for (Reply& reply : TakeReplies(client)) replies.push_back(std::move(reply));
      return replies.size() < count && !client.closed;
    });
    EXPECT_EQ(replies.size(), count);
    replies.resize(count);
    return replies;
  }
  std::vector<Reply> Ask(Client& client, std::string_view commands, size_t count) {
    Send(client, commands);
    return Read(client, count);
  }
  Reply Ask(Client& client, const std::vector<std::string>& command) {
    return std::move(Ask(client, CommandText(command), 1).front());
  }
  /// Whether the server has said anything by now.
  bool IsSilent(Client& client) {
    Settle();
    client.Take();
    return client.got.empty() && !client.closed;
  }

  std::string AdmitOneToken(std::string prefix = "") {
    auto [token, tokens] = auth::OneToken(std::move(prefix));
    server_->Admit(std::move(tokens));
    return token;
  }
  double Metric(std::string_view name) {
    const std::string text = metrics_.RenderPrometheus();
    const size_t at = text.find(fmt::format("\n{} ", name));
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }
  TopicFigures Figures(std::string_view topic) {
    for (TopicFigures& figures : memory_.Topics()) {
      if (figures.topic.name == topic) return std::move(figures);
    }
    return {};
  }
  /// From now on submits are done, but answered only by AnswerSubmits.
  void HoldSubmits() { store_.held_submits = &held_submits_; }
  void AnswerSubmits() {
    store_.held_submits = nullptr;
    loop_.Post([this] {
      for (Task& answer : std::exchange(held_submits_, {})) answer();
    });
    Settle();
  }

  metrics::Registry metrics_;
  MemoryStore memory_{&loop_};
  FaultyStore store_{memory_};
  std::vector<Task> held_submits_;
  Service service_{{{.loop = &loop_, .store = &store_}}, clock_, metrics_};
  net::Budget budget_{kBudget, metrics_};
  std::unique_ptr<Server> server_ =
      std::make_unique<Server>(Context{service_,
                                       clock_,
                                       nullptr,
                                       metrics_,
                                       {"test", 1, clock_.IoNow(), std::make_shared<const std::atomic<size_t>>(0),
                                        std::make_shared<ThrowingCluster>()}},
                               budget_, loop_, Options{});
  bool stopping_ = false;  // the test has told the service to stop
};

}  // namespace tocsin::resp
