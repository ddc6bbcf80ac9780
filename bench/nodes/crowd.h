// Crowd: many nodes in one process on one Redis, to see what membership, ownership and idle looks cost. A node is what
// tocsind has of it: a coordinator in Redis, Ownership, and the store of one shard, on a thread of its own. It has no
// clients and no core; something like the core's alarm calls Advance.
//
// Owned and used by one thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "clients/redis/client.h"
#include "net/asio_loop.h"
#include "server/ownership.h"
#include "storage/redis/store.h"

namespace tocsin::bench {

struct CrowdOptions {
  uint16_t port = 0;  // of Redis, on 127.0.0.1
  uint32_t groups = kGroups;
  Millis session{6'000};
};

class CrowdNode {
 public:
  CrowdNode(const CrowdOptions& options, std::string id);
  /// Dies, unless it has left.
  ~CrowdNode();
  CrowdNode(const CrowdNode&) = delete;
  CrowdNode& operator=(const CrowdNode&) = delete;

  void MakeTopic(const std::string& name, uint32_t slots);
  /// Until it has heard of so many topics that other nodes have made since it started.
  void AwaitHeard(size_t topics) const;
  void Leave();
  /// Stands still for ever: its lease and its beats end, and nobody is told.
  void Die();
  const std::string& id() const { return id_; }

 private:
  void Open();
  void Advance();
  /// Runs it on the node's thread, until it calls what it is given.
  void Await(const std::function<void(Task)>& call);

  const CrowdOptions options_;
  const std::string id_;
  const RealClock clock_;
  metrics::Registry metrics_;
  net::AsioLoop loop_;
  std::unique_ptr<redis::Client> client_;
  std::unique_ptr<redis::RedisStore> store_;
  std::unique_ptr<Ownership> ownership_;
  std::set<std::string> heard_;  // topics; on the node's thread
  std::atomic<size_t> heard_count_ = 0;
  bool advancing_ = false;
  bool again_ = false;
  std::jthread thread_;
};

class Crowd {
 public:
  explicit Crowd(CrowdOptions options) : options_(options), tags_("tocsin", {.count = options.groups}) {}

  void Join(size_t nodes);
  /// By one node, one after the other; until all nodes know them.
  void MakeTopics(size_t topics, uint32_t slots);
  void Leave(size_t nodes);
  void Die(size_t nodes);
  size_t size() const { return nodes_.size(); }
  /// Until the owner of each group, as Redis has it, is the one that the live nodes must compute; kTimedOut after that.
  Result<Millis> AwaitOwners(Millis most) const;

 private:
  /// What is wrong; empty if nothing is.
  std::string Unassigned() const;
  std::unique_ptr<CrowdNode> Take();

  const CrowdOptions options_;
  const redis::GroupTags tags_;
  std::map<std::string, std::unique_ptr<CrowdNode>> nodes_;  // alive, by id
  size_t made_ = 0;
};

/// Counts the commands that clients send to a Redis, without those that scripts call (MONITOR).
class CommandCounter {
 public:
  explicit CommandCounter(uint16_t port);
  ~CommandCounter();
  CommandCounter(const CommandCounter&) = delete;
  CommandCounter& operator=(const CommandCounter&) = delete;

  uint64_t count() const { return count_; }
  /// How long it takes until so many more are sent.
  Millis TimeOf(uint64_t commands) const;

 private:
  void Read();

  int socket_ = -1;
  std::atomic<uint64_t> count_ = 0;
  std::jthread thread_;
};

}  // namespace tocsin::bench
