// For tests of the Redis store: a real Redis, and nodes on it whose thread is the test's and whose clock it moves.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "clients/redis/client.h"
#include "metrics/registry.h"
#include "storage/redis/store.h"

namespace tocsin::redis {

/// Of a slot of the topic "orders", if there are as many groups as usual.
inline SlotKeys KeysOfOrders(uint32_t slot) {
  static const GroupTags tags("tocsin", {});
  return tags.KeysOf("orders", slot);
}

/// Counts what is under way, so that a test knows when everything has been answered. A test may have a server fail or
/// hang for some commands.
class CountingClient final : public Client {
 public:
  explicit CountingClient(std::unique_ptr<Client> client) : client_(std::move(client)) {}

  std::function<bool(const Command&)> fails;
  std::function<bool(const Command&)> hangs;
  /// What hung is sent.
  void GoOn() {
    hangs = nullptr;
    for (auto& [command, answer] : std::exchange(held_, {})) Call(std::move(command), std::move(answer));
  }
  size_t held() const { return held_.size(); }
  size_t pending() const { return *pending_; }
  size_t calls() const { return calls_; }
  size_t ups() const { return ups_; }
  void Close() override { client_->Close(); }
  void Call(Command command, Answer answer) override {
    if (hangs && hangs(command)) return held_.emplace_back(std::move(command), std::move(answer)), void();
    ++*pending_;
    ++calls_;
    const bool fail = fails && fails(command);
    if (fail) command = Command("PING");
    client_->Call(std::move(command),
                  [pending = pending_, fail, answer = std::move(answer)](Result<Reply> reply) mutable {
                    if (fail) reply = Fail(Code::kUnavailable, "made to fail");
                    answer(std::move(reply));
                    --*pending;
                  });
  }
  void CallEach(const Command& command,
                std::move_only_function<void(Result<std::vector<std::pair<Endpoint, Reply>>>)> answer) override {
    ++*pending_;
    client_->CallEach(command, [pending = pending_, answer = std::move(answer)](auto replies) mutable {
      answer(std::move(replies));
      --*pending;
    });
  }
  void Subscribe(std::string channel, Message message) override {
    client_->Subscribe(std::move(channel), std::move(message));
  }
  void SubscribeShard(std::string channel, Message message) override {
    client_->SubscribeShard(std::move(channel), std::move(message));
  }
  bool HasShards() const override { return client_->HasShards(); }
  void Unsubscribe(std::string_view channel) override { client_->Unsubscribe(channel); }
  void OnUp(std::move_only_function<void()> up) override {
    ++ups_;
    client_->OnUp(std::move(up));
  }
  std::vector<ServerHealth> Health() const override { return client_->Health(); }

 private:
  std::unique_ptr<Client> client_;
  std::vector<std::pair<Command, Answer>> held_;
  std::shared_ptr<size_t> pending_ = std::make_shared<size_t>(0);
  size_t calls_ = 0;
  size_t ups_ = 0;  // handlers
};

/// One node: its client and the store of its only shard.
class TestNode {
 public:
  TestNode(boost::asio::io_context& io, const Options& options, const Clock& clock, metrics::Registry& metrics,
           StoreOptions store_options)
      : io_(io) {
    auto client = Client::Make(io, options, metrics);
    TOCSIN_CHECK(client);
    client_ = std::make_unique<CountingClient>(*std::move(client));
    store_ = std::make_unique<RedisStore>(*client_, clock, std::move(store_options));
    Status opened = Fail(Code::kInternal, "not opened");
    store_->Open([&](Result<void> result) { opened = std::move(result); });
    Pump();
    if (!opened) LogError("{}", opened.error().message);
    TOCSIN_CHECK(opened);
  }
  ~TestNode() { client_->Close(); }
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;

  /// Until every call has its answer.
  void Pump() {
    while (client_->pending() > 0) TOCSIN_CHECK(io_.run_one() > 0);
  }
  void OwnAll() {
    std::vector<uint32_t> all;
    for (const GroupState& group : store_->Groups()) all.push_back(group.group);
    store_->OwnGroups(all);
    Pump();
  }
  RedisStore& store() { return *store_; }
  CountingClient& client() { return *client_; }

 private:
  boost::asio::io_context& io_;
  std::unique_ptr<CountingClient> client_;
  std::unique_ptr<RedisStore> store_;
};

}  // namespace tocsin::redis
