// Server: the RESP door of one shard, with the sessions that live on the shard's loop.
//
// Sessions are served in turns: kTurnTime each, and kSliceTime for all of them together. Then the loop does other
// things first, such as making jobs ready that are due. Sessions whose last turn was short come first: a client that
// sends one command is not held up by those that send thousands, or ask for megabytes. At least one of the others is
// served in each slice, so that they go on, too.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "auth/token_set.h"
#include "core/cluster.h"
#include "core/service.h"
#include "frontend/resp/chunk.h"
#include "frontend/resp/command.h"
#include "metrics/registry.h"
#include "net/connection.h"

namespace tocsin::resp {

class Session;

struct Options {
  size_t frame_bytes_max = 16 << 20;
};

/// The times of all commands, over all shards. A command's series is made when it is first answered: most commands are
/// never sent, and a wall of zeros helps nobody. Thread-safe.
class CommandTimes {
 public:
  void Record(metrics::Registry& metrics, const Command& command, size_t times, std::chrono::nanoseconds took) {
    std::atomic<metrics::Histogram*>& histogram = histograms_[IndexOf(command)];
    metrics::Histogram* known = histogram.load(std::memory_order_acquire);
    if (known == nullptr) known = Make(metrics, command);
    known->Record(took, times);
  }
  /// How many commands were answered.
  uint64_t Count() const;

 private:
  static size_t IndexOf(const Command& command) { return static_cast<size_t>(&command - Commands().data()); }
  metrics::Histogram* Make(metrics::Registry& metrics, const Command& command);

  std::vector<std::atomic<metrics::Histogram*>> histograms_{Commands().size()};
  std::mutex mutex_;                                       // guards made_
  std::vector<std::shared_ptr<metrics::Histogram>> made_;  // what histograms_ points to
};

/// What the commands need from the rest of the program; owned by the composition root.
struct Context {
  Service& service;
  const Clock& clock;
  VirtualClock* virtual_clock;  // null with the real clock
  metrics::Registry& metrics;
  NodeInfo node;
  std::shared_ptr<std::atomic<uint64_t>> connection_ids = std::make_shared<std::atomic<uint64_t>>(0);
  std::shared_ptr<CommandTimes> times = std::make_shared<CommandTimes>();
};

/// The reply to a connection over the limit.
std::string RefusalText(size_t connections_max);

class Server final : public net::Door {
 public:
  Server(const Context& context, net::Budget& budget, net::AsioLoop& loop, Options options);
  ~Server() override { CloseAll(); }

  /// Who may call from now on; null: everybody.
  void Admit(std::shared_ptr<const auth::TokenSet> tokens);

  // For sessions and commands.
  const Context& context() const { return context_; }
  const Options& options() const { return options_; }
  ChunkPool& chunks() { return chunks_; }
  const std::shared_ptr<const auth::TokenSet>& tokens() const { return tokens_; }
  /// Calls the session's Turn soon, together with all others that wake until then: replies of one commit leave
  /// together.
  void Wake(Session& session);
  /// Calls it at once if there is time left in this slice.
  void Serve(Session& session);
  /// Whether the session that is being served has used up its time.
  bool TurnIsOver() { return loop().clock().IoNow() >= turn_end_; }
  void Record(const Command& command, size_t times, std::chrono::nanoseconds took) {
    context_.times->Record(context_.metrics, command, times, took);
  }
  void CountErrors(Code code, size_t times);
  /// Over all shards.
  uint64_t CommandsAnswered() const { return context_.times->Count(); }
  void CountDropped() { dropped_->Add(); }

 private:
  std::shared_ptr<net::Connection> Make(net::Socket socket, net::ConnectionPass pass) override;
  std::string PlainAnswer() const override { return "-ERR this port speaks TLS: use rediss:// or redis-cli --tls\r\n"; }
  void Turn();
  void Run(Session& session);
  void Queue(Session& session);

  const Context context_;
  const Options options_;
  ChunkPool chunks_;
  std::deque<std::shared_ptr<Session>> light_;  // that have been woken
  std::deque<std::shared_ptr<Session>> heavy_;  // the same: their last turn was long, or they have had none
  const Session* served_ = nullptr;
  bool turn_posted_ = false;
  std::chrono::steady_clock::duration spent_{};  // on sessions, since the last Turn began
  std::chrono::steady_clock::time_point turn_end_{};

  std::vector<std::shared_ptr<metrics::Counter>> errors_{ErrorTable().size()};  // by code; null until there is one
  std::shared_ptr<metrics::Counter> dropped_;
  std::shared_ptr<const auth::TokenSet> tokens_;
};

}  // namespace tocsin::resp
