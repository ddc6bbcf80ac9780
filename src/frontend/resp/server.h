// Server: the RESP front end of one shard, with the sessions that live on the shard's loop.
//
// Made before the loop runs and destroyed after it has stopped; everything in between happens on the loop's thread.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "auth/token_set.h"
#include "core/node_info.h"
#include "core/service.h"
#include "frontend/resp/chunk.h"
#include "frontend/resp/command.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "net/budget.h"
#include "net/listener.h"

namespace tocsin::resp {

class Session;

struct Options {
  size_t frame_bytes_max = 16 << 20;
};

/// What the commands work with; owned by the composition root.
struct Context {
  Service& service;
  const Clock& clock;
  VirtualClock* virtual_clock;  // null with the real clock
  metrics::Registry& metrics;
  NodeInfo node;
  std::shared_ptr<std::atomic<uint64_t>> connection_ids = std::make_shared<std::atomic<uint64_t>>(0);
};

/// What a connection over the limit is told.
std::string RefusalText(size_t connections_max);

class Server {
 public:
  Server(const Context& context, net::Budget& budget, net::AsioLoop& loop, Options options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void Accept(net::Socket socket, net::ConnectionPass pass);
  /// Who may call from now on; null: everybody.
  void Admit(std::shared_ptr<const auth::TokenSet> tokens);
  /// Closes what is idle and lets what is under way be answered; `done` runs when no session is left.
  void Drain(Task done);
  /// Times out what is late. The server does it every second by itself.
  void Expire();

  // For sessions and commands.
  const Context& context() const { return context_; }
  const Options& options() const { return options_; }
  net::Budget& budget() { return budget_; }
  net::AsioLoop& loop() { return loop_; }
  ChunkPool& chunks() { return chunks_; }
  const std::shared_ptr<const auth::TokenSet>& tokens() const { return tokens_; }
  bool draining() const { return draining_; }
  /// What a command is told that finds no room in the budget.
  Error NoRoom() const;
  /// Has the session's Turn called, with those of all others that wake meanwhile: replies of one commit leave together.
  void Wake(Session& session);
  void Remove(Session& session);
  void Record(const Command& command, size_t times, std::chrono::nanoseconds took);
  void CountErrors(Code code, size_t times) { errors_[static_cast<size_t>(code)]->Add(times); }
  metrics::Counter& exceptions() { return *exceptions_; }
  void CountParked(int by) { parked_->Add(by); }
  /// Over all shards, as the metrics have them.
  size_t parked() const { return static_cast<size_t>(parked_->Value()); }
  uint64_t CommandsAnswered() const;
  void CountDropped() { dropped_->Add(); }

 private:
  void Tick();
  void Turn();
  void TellIfDrained();

  const Context context_;
  net::Budget& budget_;
  net::AsioLoop& loop_;
  const Options options_;
  ChunkPool chunks_;
  boost::asio::steady_timer tick_;
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions_;
  std::vector<std::shared_ptr<Session>> woken_;
  std::vector<std::shared_ptr<Session>> turning_;

  std::unordered_map<const Command*, std::shared_ptr<metrics::Histogram>> seconds_;
  std::vector<std::shared_ptr<metrics::Counter>> errors_;  // by code
  std::shared_ptr<metrics::Gauge> connections_;
  std::shared_ptr<metrics::Gauge> parked_;
  std::shared_ptr<metrics::Counter> dropped_;
  std::shared_ptr<metrics::Counter> exceptions_;
  bool draining_ = false;
  Task drained_;
  std::shared_ptr<const auth::TokenSet> tokens_;
};

}  // namespace tocsin::resp
