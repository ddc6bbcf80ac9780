// ServerNode: everything that a server consists of, put together.
//
// Made, run and destroyed by the main thread, whose loop accepts connections and waits for signals; each shard has a
// thread of its own. Members are declared in the order in which they depend on each other.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/clock.h"
#include "base/result.h"
#include "base/worker.h"
#include "config/config.h"
#include "core/service.h"
#include "frontend/http/router.h"
#include "frontend/http/server.h"
#include "frontend/resp/server.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "net/listener.h"
#include "outbox/outbox.h"
#include "server/backing.h"
#include "server/lifecycle.h"
#include "server/node_alerts.h"
#include "server/program.h"
#include "server/sinks.h"
#include "server/tls_guard.h"
#include "server/token_guard.h"
#include "spi/push_memory.h"

namespace tocsin {

class ServerNode {
 public:
  /// Binds the addresses, opens the store and recovers it. Nothing is served yet. kShuttingDown if a signal came
  /// meanwhile.
  static Result<std::unique_ptr<ServerNode>> Open(const Config& config);
  ~ServerNode();
  ServerNode(const ServerNode&) = delete;
  ServerNode& operator=(const ServerNode&) = delete;

  /// Where the server listens, for people.
  std::string Banner() const;
  /// Serves until a signal; the program's exit status. What was accepted is stored when this returns.
  int Run();

 private:
  explicit ServerNode(const Config& config);
  std::vector<net::AsioLoop*> Loops() const;
  Status OpenStore();
  Status Listen(const net::Address& http, const net::Address& resp);
  void MakeShards();
  /// Conditions that the log tells of are events too, and nodes that come and go.
  void TellOfLog();
  void MakeServers();
  Status MakeOutbox();
  Status MakeAlerts();
  void StartThreads();
  /// Who may call, and the certificate: both may change while the server runs.
  void WatchFiles();
  void WatchTokens();
  void SpeakTls(size_t shard, const DoorsTls& tls);
  std::string HttpUrl(const std::string& address) const;
  void AwaitSignal();
  void WatchEpisodes();
  void Stop();
  void Drain();
  void ShardDrains();
  void PartStopped();
  int Finish();
  /// Of the stores that end with the server.
  std::optional<JobCounts> CountJobs();

  const Config config_;
  metrics::Registry metrics_;
  RealClock real_clock_;
  const IoTime began_ = real_clock_.IoNow();
  const std::unique_ptr<VirtualClock> virtual_clock_;  // null with the real clock
  Clock& clock_;

  std::unique_ptr<net::Budget> budget_;  // what the loops and the service still have when they end is charged to it
  std::vector<std::unique_ptr<net::AsioLoop>> loops_;  // of the shards
  net::AsioLoop main_loop_;  // destroyed before loops_: an accept under way holds a socket of theirs
  boost::asio::signal_set signals_;
  boost::asio::steady_timer stop_timer_;
  boost::asio::steady_timer episodes_timer_;
  std::unique_ptr<net::Listener> http_listener_;
  std::unique_ptr<net::Listener> resp_listener_;
  SocketPlan sockets_;
  const net::Listener::Count connections_ = std::make_shared<std::atomic<size_t>>(0);
  std::unique_ptr<TokenGuard> token_guard_;  // null: no authentication
  std::unique_ptr<TlsGuard> tls_guard_;      // null: no TLS

  PushMemory push_memory_;
  metrics::Registry::Registration push_memory_shown_;
  std::unique_ptr<Backing> backing_;
  std::unique_ptr<NodeSinks> sinks_;
  std::unique_ptr<Worker> monitor_;  // of the service
  std::unique_ptr<Service> service_;
  std::unique_ptr<outbox::Outbox> outbox_;  // null: there is none
  http::Router router_;
  std::unique_ptr<Worker> scraper_;
  std::shared_ptr<AlertBook> alert_book_;
  std::unique_ptr<NodeAlerts> alerts_;
  std::vector<std::unique_ptr<http::Server>> http_servers_;
  std::vector<std::unique_ptr<resp::Server>> resp_servers_;
  std::vector<std::jthread> threads_;
  metrics::Registry::Registration figures_;

  // While stopping.
  bool stopping_ = false;
  IoTime stop_began_{};
  size_t shards_draining_ = 0;
  size_t parts_running_ = 0;  // the service, the alerts, the outbox, the shards' servers, and what these release
};

}  // namespace tocsin
