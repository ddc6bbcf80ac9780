// Real Redis for tests: a single server, one master behind three sentinels, and a Cluster of 3 masters and 3 replicas.
// All on 127.0.0.1, on free ports, with their data in a temporary folder; everything ends with its object, and with the
// test, however that ends.
//
//   if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
//   auto server = real::RedisServer::Make();
//   ASSERT_TRUE(server) << server.error().message;
//   (*server)->Ask({"SET", "k", "v"});
//
// Make returns when the servers can be used. Threads: one at a time, on a thread that outlives the servers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "real/ask.h"
#include "real/certificates.h"
#include "real/process.h"

namespace tocsin::real {

/// Empty if redis-server can be run; otherwise the reason for GTEST_SKIP.
std::string WhyNoRedis();

struct RedisOptions {
  bool append_only = true;
  std::string append_fsync = "everysec";  // or always, no
  std::string password;                   // of the default user; empty: none is asked for
  std::vector<std::string> users;         // ACL: "alice on >secret ~tocsin:* &* +@all"
  bool tls = false;                       // port() speaks only TLS; Ask still works, over a port of its own
  bool tls_client_certificates = false;   // refuses clients that have none of ours
  std::vector<std::string> lines;         // further ones of redis.conf
};

class RedisServer {
 public:
  static Result<std::unique_ptr<RedisServer>> Make(RedisOptions options = {});

  uint16_t port() const { return port_; }
  /// Of a server with TLS.
  const Certificates& certificates() const { return certificates_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  bool running() { return process_->running(); }
  /// Whether it runs and is not paused.
  bool awake() { return process_->running() && !process_->paused(); }
  pid_t pid() const { return process_->pid(); }

  void Stop() { process_->Stop(); }  // SIGTERM: writes what it has
  void Kill() { process_->Kill(); }  // SIGKILL
  void Pause() { process_->Pause(); }
  void Continue() { process_->Continue(); }
  /// Again, on the same ports and data, after Stop or Kill. Returns when it has loaded its data.
  Status Start();

  Result<Answer> Ask(const std::vector<std::string>& command);
  std::string Output() const { return process_->Output(); }

 private:
  friend class RedisSentinels;
  friend class RedisCluster;
  enum class Kind : uint8_t { kServer, kClusterNode, kSentinel };

  RedisServer(RedisOptions options, Kind kind) : options_(std::move(options)), kind_(kind) {}
  static Result<std::unique_ptr<RedisServer>> MakeKind(RedisOptions options, Kind kind);
  /// Writes redis.conf for ports that nobody uses.
  void Configure();
  std::string ServerLines() const;
  std::string TlsLines() const;
  bool Ready();

  RedisOptions options_;
  Kind kind_;
  Folder folder_;
  Certificates certificates_;
  uint16_t port_ = 0;
  uint16_t plain_port_ = 0;  // where Ask goes; port_ without TLS
  uint16_t bus_port_ = 0;    // of a node of a Cluster
  std::unique_ptr<Process> process_;
};

struct SentinelOptions {
  std::string password;           // of the servers
  std::string sentinel_password;  // of the sentinels
  Millis down_after{1'000};       // with less, a busy machine causes failovers
  Millis failover_timeout{3'000};
  std::vector<std::string> lines;  // further ones of each server's redis.conf
};

/// One master, two replicas, three sentinels (two must agree).
class RedisSentinels {
 public:
  static constexpr const char* kMasterName = "tocsin";

  static Result<std::unique_ptr<RedisSentinels>> Make(SentinelOptions options = {});

  std::vector<uint16_t> SentinelPorts() const;
  std::vector<uint16_t> ServerPorts() const;
  /// The port of the master, as the first sentinel that answers says.
  Result<uint16_t> Master();
  /// The server or sentinel of a port.
  RedisServer& At(uint16_t port);
  RedisServer& Sentinel(size_t i) { return *sentinels_.at(i); }

  /// Each returns the port of the master that it hit.
  Result<uint16_t> KillMaster();
  Result<uint16_t> PauseMaster();
  /// Until all running sentinels name a master other than `old`, and that one takes writes; its port.
  Result<uint16_t> WaitForNewMaster(uint16_t old, Millis within = Millis(30'000));
  /// Waits until all other running servers follow the master and are in step: writes up to now survive a failover.
  Status WaitUntilInStep(Millis within = Millis(30'000));

  Result<Answer> Ask(uint16_t port, const std::vector<std::string>& command);

 private:
  explicit RedisSentinels(SentinelOptions options) : options_(std::move(options)) {}
  Status StartServers();
  Status StartSentinels();
  bool Watched(RedisServer& sentinel);

  SentinelOptions options_;
  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

struct ClusterOptions {
  std::string password;
  Millis node_timeout{1'000};
  bool append_only = true;
  std::string append_fsync = "everysec";
  std::vector<std::string> lines;  // further ones of each node's redis.conf
};

/// Three masters with a third of the hash slots each, and a replica for each of them.
class RedisCluster {
 public:
  static constexpr int kHashSlots = 16'384;

  static Result<std::unique_ptr<RedisCluster>> Make(ClusterOptions options = {});

  /// Of all nodes, also of those that do not run; the first three began as masters.
  std::vector<uint16_t> Ports() const;
  RedisServer& At(uint16_t port);
  /// As the first node says that is awake.
  Result<uint16_t> MasterOf(int hash_slot);
  std::vector<uint16_t> Masters();

  /// Each returns the port of the node that it hit.
  Result<uint16_t> KillMasterOf(int hash_slot);
  Result<uint16_t> PauseMasterOf(int hash_slot);
  /// Until a node other than `old` serves the hash slot; its port.
  Result<uint16_t> WaitForNewMaster(int hash_slot, uint16_t old, Millis within = Millis(30'000));
  /// Until every running node says that the Cluster is ok, and they agree on who serves what.
  Status WaitUntilOk(Millis within = Millis(30'000));
  /// Until every running replica has all that its master has.
  Status WaitUntilInStep(Millis within = Millis(30'000));

  /// A hash slot that moves to another master, step by step. Between Begin and End its keys are on either side: the old
  /// master answers ASK for those that have left, and TRYAGAIN for commands whose keys are on both.
  struct Migration {
    int hash_slot = 0;
    uint16_t from = 0;
    uint16_t to = 0;
  };
  Result<Migration> BeginMigration(int hash_slot, uint16_t to);
  /// Moves up to `count` keys; how many. 0: none is left.
  Result<size_t> MoveKeys(const Migration& migration, size_t count);
  Status EndMigration(const Migration& migration);
  /// The three steps at once.
  Status MigrateSlot(int hash_slot, uint16_t to);

  Result<Answer> Ask(uint16_t port, const std::vector<std::string>& command);

 private:
  explicit RedisCluster(ClusterOptions options) : options_(std::move(options)) {}
  Status StartNodes();
  Status Introduce();
  Status AddReplicas();
  bool Agreed();
  bool KnowsAll(RedisServer& node);
  Result<std::string> IdOf(uint16_t port);

  ClusterOptions options_;
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace tocsin::real
