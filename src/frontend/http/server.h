// Server: the HTTP front end of one shard, with the sessions that live on the shard's loop.
//
// Made before the loop runs and destroyed after it has stopped; everything in between happens on the loop's thread.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "frontend/http/call.h"
#include "frontend/http/gzip.h"
#include "frontend/http/header_check.h"
#include "frontend/http/router.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "net/budget.h"
#include "net/listener.h"

namespace tocsin::http {

class Session;

struct Options {
  size_t body_bytes_max = 16 << 20;
  Pages pages = Pages::kOfThisMachine;  // without tokens; with them a page can do nothing that its reader did not allow
};

/// What a connection over the limit is told.
std::string RefusalText(size_t connections_max);

class Server {
 public:
  Server(const Context& context, const Router& router, net::Budget& budget, net::AsioLoop& loop, Options options);
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

  // For sessions.
  const Context& context() const { return context_; }
  const Router& router() const { return router_; }
  const Options& options() const { return options_; }
  net::Budget& budget() { return budget_; }
  Gzip& gzip() { return gzip_; }
  Pages pages() const { return tokens_ == nullptr ? options_.pages : Pages::kOfTheirHost; }
  /// What a request is told whose body or answer finds no room in the budget.
  Error NoRoom() const;
  net::AsioLoop& loop() { return loop_; }
  const std::shared_ptr<const auth::TokenSet>& tokens() const { return tokens_; }
  bool draining() const { return drained_ != nullptr; }
  void Remove(Session& session);
  metrics::Counter& exceptions() { return *exceptions_; }
  void CountParked(int by) { parked_->Add(by); }
  /// `route`: its place in the router's table, or the table's size for requests that no route took.
  void Record(size_t route, int status, std::chrono::nanoseconds took);

 private:
  struct RouteFigures {
    std::array<std::shared_ptr<metrics::Counter>, 6> by_class;  // 2 for 2xx, and so on
    std::shared_ptr<metrics::Histogram> seconds;
  };

  void Tick();
  void TellIfDrained();

  const Context context_;
  const Router& router_;
  net::Budget& budget_;
  net::AsioLoop& loop_;
  const Options options_;
  Gzip gzip_;
  boost::asio::steady_timer tick_;
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions_;
  std::vector<RouteFigures> figures_;
  std::shared_ptr<metrics::Gauge> connections_;
  std::shared_ptr<metrics::Gauge> parked_;
  std::shared_ptr<metrics::Counter> exceptions_;
  Task drained_;
  std::shared_ptr<const auth::TokenSet> tokens_;
};

}  // namespace tocsin::http
