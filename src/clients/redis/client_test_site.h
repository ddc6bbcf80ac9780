// ClientSite: what tests of the client against real servers share. The client runs on a thread of its own, so that it
// works on while the test's thread starts, stops and asks servers.
#pragma once

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

#include "clients/redis/client.h"
#include "real/redis_servers.h"

namespace tocsin::redis {

/// How tests see an answer.
inline std::string Shown(ReplyView view) {
  switch (view.kind()) {
    case Kind::kNil:
      return "nil";
    case Kind::kInteger:
      return std::to_string(view.integer());
    case Kind::kText:
      return std::string(view.text());
    case Kind::kError:
      return fmt::format("!{}", view.text());
    case Kind::kArray:
      break;
  }
  std::string all = "[";
  for (size_t i = 0; i < view.size(); ++i) all += (i == 0 ? "" : " ") + Shown(view[i]);
  return all + "]";
}

inline std::string Shown(const Result<Reply>& reply) {
  return reply ? Shown(reply->root()) : fmt::format("{}: {}", RowOf(reply.error().code).name, reply.error().message);
}

inline Options At(Mode mode, const std::vector<uint16_t>& ports) {
  Options options;
  options.mode = mode;
  for (const uint16_t port : ports) options.endpoints.push_back({"127.0.0.1", port});
  if (mode == Mode::kSentinel) options.master = real::RedisSentinels::kMasterName;
  return options;
}

inline Command Make(std::string_view name, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return Command(name);
  Command command(name, arguments.front());
  for (size_t i = 1; i < arguments.size(); ++i) command.Add(arguments[i]);
  return command;
}

class ClientSite {
 public:
  explicit ClientSite(const Options& options) : thread_([this] { io_.run(); }) {
    Run([&] {
      auto made = Client::Make(io_, options, metrics_);
      ASSERT_TRUE(made) << made.error().message;
      client_ = std::move(*made);
      client_->OnUp([this] { ++ups_; });
    });
  }
  ~ClientSite() {
    Run([&] { client_.reset(); });
    work_.reset();
    thread_.join();
  }
  ClientSite(const ClientSite&) = delete;
  ClientSite& operator=(const ClientSite&) = delete;

  /// On the client's thread; returns when it is done.
  template <class F>
  void Run(F task) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Waits for the answer.
  Result<Reply> Call(Command command) {
    std::promise<Result<Reply>> answer;
    Run([&] { client_->Call(std::move(command), [&](Result<Reply> reply) { answer.set_value(std::move(reply)); }); });
    return answer.get_future().get();
  }
  std::string Ask(std::string_view name, const std::vector<std::string>& arguments = {}) {
    return Shown(Call(Make(name, arguments)));
  }

  std::vector<ServerHealth> Health() {
    std::vector<ServerHealth> health;
    Run([&] { health = client_->Health(); });
    return health;
  }
  /// Until the client has been told that a server is there more often than `before`.
  bool WaitForUp(int before) {
    return real::WaitFor(Millis(20'000), [&] { return ups_ > before; });
  }
  int ups() const { return ups_; }

  Client& client() { return *client_; }
  boost::asio::io_context& io() { return io_; }
  uint64_t Count(std::string_view name, const metrics::Labels& labels = {}) {
    return metrics_.GetCounter(name, "", labels)->Value();
  }
  metrics::Registry& metrics() { return metrics_; }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  metrics::Registry metrics_;
  std::unique_ptr<Client> client_;
  std::atomic<int> ups_ = 0;
  std::thread thread_;
};

/// Calls INCR of many keys without a pause, as many at a time as `width`, and keeps count of what it was told.
class Incrementing {
 public:
  Incrementing(ClientSite& site, std::vector<std::string> keys, int width) : site_(site), keys_(std::move(keys)) {
    told_.resize(keys_.size());
    unknown_.resize(keys_.size());
    site_.Run([&] {
      for (int i = 0; i < width; ++i) Next();
    });
  }
  ~Incrementing() { Stop(); }

  /// Returns when all that was called is answered.
  void Stop() {
    stopping_ = true;
    real::WaitFor(Millis(60'000), [&] { return open_ == 0; });
  }
  int answered() const { return answered_; }
  bool WaitForMore(int more) {
    const int before = answered_;
    return real::WaitFor(Millis(30'000), [&] { return answered_ >= before + more; });
  }
  const std::vector<std::string>& keys() const { return keys_; }
  // After Stop. Of each key: how often the answer was a number, and how often the outcome is unknown.
  const std::vector<int64_t>& told() const { return told_; }
  const std::vector<int64_t>& unknown() const { return unknown_; }
  std::vector<std::string> strange;  // answers that are neither, nor "not sent"

 private:
  void Next() {
    const size_t key = next_++ % keys_.size();
    ++open_;
    site_.client().Call(Command("INCR", keys_[key]), [this, key](const Result<Reply>& reply) {
      Take(key, reply);
      ++answered_;
      if (!stopping_) Next();
      --open_;
    });
  }
  void Take(size_t key, const Result<Reply>& reply) {
    if (reply && reply->kind() == Kind::kInteger) {
      ++told_[key];
    } else if (!reply && reply.error().message.starts_with("not sent")) {
      return;
    } else if (!reply && reply.error().code == Code::kUnavailable) {
      ++unknown_[key];
    } else {
      strange.push_back(Shown(reply));
    }
  }

  ClientSite& site_;
  const std::vector<std::string> keys_;
  size_t next_ = 0;
  std::atomic<int> open_ = 0;
  std::atomic<int> answered_ = 0;
  std::atomic<bool> stopping_ = false;
  std::vector<int64_t> told_;
  std::vector<int64_t> unknown_;
};

/// Counts the messages of a channel.
class Listening {
 public:
  enum class Reach : uint8_t { kAll, kShard };

  /// `publish`: the command that messages are sent with.
  Listening(ClientSite& site, const std::string& channel, Reach reach = Reach::kAll,
            std::string_view publish = "PUBLISH")
      : site_(site), channel_(channel), publish_(publish) {
    site.Run([&] {
      auto hear = [heard = heard_](std::string_view, std::string_view) { ++*heard; };
      reach == Reach::kAll ? site.client().Subscribe(channel, hear) : site.client().SubscribeShard(channel, hear);
    });
  }
  /// Publishes until it is heard: a subscription that is being made again misses what is published meanwhile.
  bool Hears() {
    const int before = *heard_;
    return real::WaitFor(Millis(20'000), [&] {
      (void)site_.Call(Make(publish_, {channel_, "x"}));
      return *heard_ > before;
    });
  }
  int heard() const { return *heard_; }

 private:
  ClientSite& site_;
  const std::string channel_;
  const std::string publish_;
  // Shared, since the client has no way to end a subscription before its own end.
  std::shared_ptr<std::atomic<int>> heard_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace tocsin::redis
