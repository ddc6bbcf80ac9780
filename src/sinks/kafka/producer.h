// Producer: a client of librdkafka, replaced by a new one if it fails for good, and the thread "tocsin-kafka" that
// polls it and hands its reports to the sinks.
//
// Owned by Factory and by the sinks that have its time-out. Threads: the constructor, Stop and the
// destructor on one at a time; Hold, client and WakeAt on any; the rest on the polling thread.
//
// Invariants:
//  - Every message that a client took is reported to its channel, exactly once, also if the client is replaced or
//  stopped.
//  - Only the polling thread replaces the client, and only while nobody holds it.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sinks/kafka/channel.h"
#include "sinks/kafka/client.h"

namespace tocsin::kafka {

class Producer {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static Result<std::shared_ptr<Producer>> Make(Options options, Millis timeout, const Clock& clock);
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  Millis timeout() const { return timeout_; }
  TimePoint Now() const { return clock_.IoNow(); }

  /// The client is not replaced while the lock is held: hold it briefly.
  std::shared_lock<std::shared_mutex> Hold() { return std::shared_lock(gate_); }
  Client& client() { return *client_; }

  /// Wakes the channel at that time or a little later, unless the producer stops before.
  void WakeAt(TimePoint when, std::weak_ptr<Channel> channel);

  /// Everything under way is reported as failed, and the thread ends soon.
  void Stop();
  bool stopped() const { return stopped_; }

 private:
  struct WakeUp {
    TimePoint when;
    std::weak_ptr<Channel> channel;
  };
  /// A report of a message whose batch was not taken, until the round shows whether it was alone in it.
  struct Suspect {
    Channel* channel;
    size_t at;  // in its round
    rd_kafka_resp_err_t error;
    std::pair<rd_kafka_topic_t*, int32_t> partition;
    bool keyless;
    size_t bytes;
  };

  Producer(Options options, Millis timeout, const Clock& clock)
      : options_(std::move(options)), timeout_(timeout), clock_(clock) {}

  // For the client.
  friend class Client;
  /// `message` is what Send was given.
  void OnReport(Message& message, const rd_kafka_message_t& report);
  void OnClientError(std::string_view what);

  void Work();
  void Round(Client& client, Millis wait);
  void JudgeSuspects();
  /// Runs the wake-ups that are due. Returns the time to the next one, at most kPollMax.
  Millis RunWakeUps();
  void ReplaceFailed();
  /// Returns the client that was used.
  std::unique_ptr<Client> ReplaceBy(std::unique_ptr<Client> next);
  void Drain(Client& client);
  std::string_view LastError() const;

  const Options options_;
  const Millis timeout_;
  const Clock& clock_;

  std::shared_mutex gate_;  // guards client_ against being replaced
  std::unique_ptr<Client> client_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> stopped_ = false;

  std::mutex mutex_;  // guards wake_ups_
  std::vector<WakeUp> wake_ups_;

  // Used by the polling thread only.
  std::vector<std::shared_ptr<Channel>> reported_;  // in this round
  std::vector<Suspect> suspects_;                   // in this round
  std::string last_error_;
  TimePoint last_error_at_{};
  TimePoint client_made_at_{};

  std::thread thread_;  // last: it uses the rest
};

}  // namespace tocsin::kafka
