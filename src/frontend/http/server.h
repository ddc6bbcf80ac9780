// Server: the HTTP door of one shard, with the sessions that live on the shard's loop.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "core/cluster.h"
#include "core/service.h"
#include "frontend/http/decode.h"
#include "frontend/http/gzip.h"
#include "frontend/http/header_check.h"
#include "frontend/http/router.h"
#include "metrics/registry.h"
#include "metrics/scraper.h"
#include "net/connection.h"
#include "net/helper_thread.h"

namespace tocsin::http {

struct Options {
  size_t body_bytes_max = 16 << 20;
  Pages pages = Pages::kOfThisMachine;  // without tokens; with them a page can do only what its reader allowed
};

/// What the handlers work with; owned by the composition root.
struct Context {
  Service& service;
  const Clock& clock;
  VirtualClock* virtual_clock;  // null with the real clock
  metrics::Registry& metrics;
  metrics::Scraper& scraper;
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
  boost::json::parser& parser() { return parser_; }
  /// For one read: a session that waits for bytes needs no memory for them.
  std::span<char, kScratchBytes> scratch() { return scratch_; }
  net::HelperThread& helper() { return helper_; }
  Pages pages() const { return tokens_ == nullptr ? options_.pages : Pages::kOfTheirHost; }
  const std::shared_ptr<const auth::TokenSet>& tokens() const { return tokens_; }
  /// `route`: its index in the router's table, or the table's size if the request matched no route.
  void Record(size_t route, int status, std::chrono::nanoseconds took);

 private:
  struct RouteFigures {
    std::array<std::shared_ptr<metrics::Counter>, 6> by_class;  // 2 for 2xx, and so on
    std::shared_ptr<metrics::Histogram> seconds;
  };

  std::shared_ptr<net::Connection> Make(net::Socket socket, net::ConnectionPass pass) override;

  const Context context_;
  const Router& router_;
  const Options options_;
  Gzip gzip_;
  boost::json::parser parser_ = MakeParser();
  std::array<char, kScratchBytes> scratch_;
  net::HelperThread helper_;
  std::vector<RouteFigures> figures_;
  std::shared_ptr<const auth::TokenSet> tokens_;
};

}  // namespace tocsin::http
