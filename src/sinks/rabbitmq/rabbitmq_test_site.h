// What tests of the sink against a real broker share: the broker, which they start once; a receiver, which speaks with
// it by the blocking calls of rabbitmq-c; and a site, a publisher with sinks whose loop the test's thread runs.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <amqp.h>
#include <gmock/gmock.h>

#include "net/asio_loop.h"
#include "real/rabbitmq_server.h"
#include "sinks/rabbitmq/publisher.h"

namespace tocsin::rabbitmq {

/// Longer than anything takes on a busy machine.
constexpr Millis kSoon{60'000};

/// One for all tests of the program, running and awake. kUnavailable if none can be run.
Result<real::RabbitMqServer*> SharedServer();

/// For a client of it, with short times.
Options OptionsFor(const real::RabbitMqServer& server);

/// A message as a consumer gets it.
struct Received {
  std::map<std::string, std::string> headers;
  std::string message_id;
  std::string content_type;
  int delivery_mode = 0;
  std::string body;
};

/// A connection that declares and consumes. Failures are those of the test.
class Receiver {
 public:
  explicit Receiver(const real::RabbitMqServer& server);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// Durable and empty; what it held is gone. `max_length`: more are refused (reject-publish).
  void MakeQueue(const std::string& name, int max_length = 0);
  /// A durable direct exchange that brings everything with this key to the queue.
  void MakeExchange(const std::string& name, const std::string& routing_key, const std::string& queue);
  void DeleteExchange(const std::string& name);
  /// All that is in the queue now, in its order; it is empty then.
  std::vector<Received> Take(const std::string& queue);

 private:
  void Check(std::string_view what);

  amqp_connection_state_t connection_;
};

/// A publisher and its sinks.
class Site {
 public:
  explicit Site(Options options);
  /// All sinks are closed.
  ~Site();
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  /// What became of one job; `answers` is 1 in the end.
  struct Sent {
    std::string id;
    int answers = 0;
    Delivered delivered;
  };

  class Topic {
   public:
    /// `count` jobs named <topic>-0, -1, ... in one batch, changed by `change` before they leave. What becomes of them
    /// is in sent().
    void Deliver(size_t count, const std::function<void(size_t index, JobView& job)>& change = {});
    const std::deque<Sent>& sent() const { return sent_; }
    const Delivered& last() const { return sent_.back().delivered; }
    size_t open() const { return open_; }
    size_t Count(DeliverOutcome outcome) const;
    /// Runs until all are answered; whether they were in time.
    bool Await(Millis within = kSoon);
    /// Delivers single jobs until one is confirmed.
    void AwaitHealth();
    void Close();

   private:
    friend class Site;
    Topic(Site& site, const tocsin::Topic& topic);

    Site& site_;
    const std::string name_;
    std::unique_ptr<Sink> sink_;
    std::deque<Sent> sent_;
    size_t open_ = 0;
  };

  /// With the settings of its delivery; "ready_<name>" is where jobs go unless they say otherwise.
  Topic& Open(const std::string& name, std::map<std::string, std::string, std::less<>> settings = {});
  bool RunUntil(const std::function<bool()>& holds, Millis within = kSoon);
  /// Nothing is expected in this time.
  void RunFor(Millis time) {
    RunUntil([] { return false; }, time);
  }
  net::AsioLoop& loop() { return loop_; }
  Publisher& publisher() { return *publisher_; }

 private:
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  std::unique_ptr<Publisher> publisher_;
  std::deque<std::unique_ptr<Topic>> topics_;
  uint64_t made_ = 0;
};

/// A test with a broker and a receiver; skipped if RabbitMQ is not installed.
class BrokerTest : public testing::Test {
 protected:
  void SetUp() override;
  real::RabbitMqServer* server_ = nullptr;
  std::unique_ptr<Receiver> receiver_;
};

}  // namespace tocsin::rabbitmq
