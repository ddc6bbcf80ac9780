// A real ZooKeeper for tests: one standalone server of Debian's package, run by java with a configuration of its own,
// on a free port of 127.0.0.1, with its data in a temporary folder. Ticks are short, so that sessions may be too.
//
//   if (const std::string why = real::WhyNoZooKeeper(); !why.empty()) GTEST_SKIP() << why;
//   auto server = real::ZooKeeperServer::Make();
//   ASSERT_TRUE(server) << server.error().message;
#pragma once

#include <memory>
#include <string>

#include "real/process.h"

namespace tocsin::real {

/// Empty if ZooKeeper can be run; otherwise the reason for GTEST_SKIP.
std::string WhyNoZooKeeper();

struct ZooKeeperOptions {
  Millis tick{200};
  Millis session_timeout_min{400};
  Millis session_timeout_max{60'000};
};

class ZooKeeperServer {
 public:
  static Result<std::unique_ptr<ZooKeeperServer>> Make(ZooKeeperOptions options = {});

  uint16_t port() const { return port_; }
  /// "127.0.0.1:port", as clients want it.
  std::string Hosts() const;
  bool running() { return process_->running(); }

  void Stop() { process_->Stop(); }
  void Kill() { process_->Kill(); }
  void Pause() { process_->Pause(); }
  void Continue() { process_->Continue(); }
  /// Again, on the same port and data, after Stop or Kill. Sessions that have not run out live on.
  Status Start();

  /// A four letter word: "cons" lists connections, "dump" sessions and ephemeral nodes, "srvr" figures.
  Result<std::string> Ask(std::string_view word) const;
  std::string Output() const { return process_->Output(); }

 private:
  explicit ZooKeeperServer(ZooKeeperOptions options) : options_(options) {}
  void Configure();

  ZooKeeperOptions options_;
  Folder folder_;
  uint16_t port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace tocsin::real
