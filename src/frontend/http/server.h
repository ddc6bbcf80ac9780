// Server: the HTTP door of one shard, with the sessions that live on the shard's loop.
//
// All requests together get half a millisecond (kSliceTime). Then the loop does other things first, such as making jobs
// ready that are due, and requests that have arrived meanwhile are served in their order.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/worker.h"
#include "core/cluster.h"
#include "core/service.h"
#include "frontend/http/decode.h"
#include "frontend/http/gzip.h"
#include "frontend/http/header_check.h"
#include "frontend/http/router.h"
#include "metrics/registry.h"
#include "net/connection.h"

namespace tocsin::http {

class Session;

struct Options {
  size_t body_bytes_max = 16 << 20;
  Pages pages = Pages::kOfThisMachine;          // without tokens; with them a page can do only what its reader allowed
  std::vector<std::string> allowed_hosts = {};  // for browsers, in small letters
};

/// What the handlers work with; owned by the composition root.
struct Context {
  Service& service;
  const Clock& clock;
  VirtualClock* virtual_clock;  // null with the real clock
  metrics::Registry& metrics;
  Worker& scraper;  // renders the metrics: ten thousand topics make tens of megabytes of text
  NodeInfo node = {};
};

/// The answer to a connection over the limit.
std::string RefusalText(size_t connections_max);

class Server final : public net::Door {
 public:
  static constexpr size_t kScratchBytes = 64 << 10;

  Server(const Context& context, const Router& router, net::Budget& budget, net::AsioLoop& loop, Options options);
  ~Server() override { CloseAll(); }

  /// Who may call from now on; null: everybody.
  void Admit(std::shared_ptr<const auth::TokenSet> tokens);

  // For sessions.
  const Context& context() const { return context_; }
  const Router& router() const { return router_; }
  const Options& options() const { return options_; }
  Gzip& gzip() { return gzip_; }
  /// For small bodies: it keeps its stack.
  const std::shared_ptr<BodyParser>& parser() const { return parser_; }
  /// For one read: a session that waits for bytes needs no memory for them.
  std::span<char, kScratchBytes> scratch() { return scratch_; }
  /// Parses large bodies.
  Worker& helper() { return helper_; }
  Pages pages() const { return tokens_ == nullptr ? options_.pages : Pages::kOfTheirHost; }
  const std::shared_ptr<const auth::TokenSet>& tokens() const { return tokens_; }
  /// Calls Session::Run, at once if there is time left in this slice.
  void Serve(std::shared_ptr<Session> session);
  /// `route`: its index in the router's table, or the table's size if the request matched no route.
  void Record(size_t route, int status, std::chrono::nanoseconds took);

 private:
  /// Made when the first request is answered: most routes are never called, and a wall of zeros helps nobody.
  struct RouteFigures {
    std::array<std::shared_ptr<metrics::Counter>, 6> by_class;  // 2 for 2xx, and so on
    std::shared_ptr<metrics::Histogram> seconds;
  };

  std::shared_ptr<net::Connection> Make(net::Socket socket, net::ConnectionPass pass) override;
  std::string PlainAnswer() const override;
  void Turn();
  void Run(Session& session);
  void MakeFigures(size_t route, size_t status_class);

  const Context context_;
  const Router& router_;
  const Options options_;
  Gzip gzip_;
  const std::shared_ptr<BodyParser> parser_ = MakeParser();
  std::array<char, kScratchBytes> scratch_;
  Worker helper_{"tocsin-json"};
  std::vector<RouteFigures> figures_;
  std::shared_ptr<const auth::TokenSet> tokens_;
  std::deque<std::shared_ptr<Session>> waiting_;  // with a request each
  bool turn_posted_ = false;
  std::chrono::steady_clock::duration spent_{};  // on requests, since the last Turn began
};

}  // namespace tocsin::http
