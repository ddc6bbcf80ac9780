// Coordinator: which nodes there are. Every node computes the same assignment of groups to nodes from the members
// (model/placement.h); the store fences by epochs, so a node that learns of a change late does no harm.
//
// Threads: everything on the thread of the Loop that the coordinator was made with; `changed` and `done` run there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "spi/store.h"

namespace tocsin {

struct Member {
  std::string id;    // unique for each start of a node: name, and a random part
  std::string http;  // its addresses, for people and tools
  std::string resp;
  std::string version = {};  // of its program; empty: one of before versions were told
  Time joined{};             // when it was last registered, by its own clock, in UTC; set by the coordinator
  Time heard{};              // when it was last heard of, as far as the coordinator knows
  /// Among the members that a second coordinator lists: it is registered with the first one too, and follows that one.
  bool follows_first = false;
};

struct Members {
  std::vector<Member> members;  // sorted by id
  /// Whether this node is one of them. False while its registration is lost: then it takes over no group.
  bool joined = false;
  /// The last kLostMax that were members and vanished without Leave, since this node has looked; the latest first.
  std::vector<Member> lost = {};

  static constexpr size_t kLostMax = 16;
};

struct CoordinatorHealth {
  std::string kind;  // local, redis, zookeeper
  bool connected = false;
  std::string state;  // for people: "connected", or why not
};

class Coordinator {
 public:
  virtual ~Coordinator() = default;

  /// Registers this node, and again whenever the registration was lost. `changed` runs with the members at first and on
  /// every change.
  virtual void Join(Member self, std::move_only_function<void(const Members&)> changed) = 0;
  /// Removes the node from the list at once; `done` runs when the others can see it. No callback runs after `done`.
  virtual void Leave(Done<void> done) = 0;
  /// Reads the members again and calls `changed` even if they are the same: another node has taken a group of this one.
  virtual void Refresh() = 0;
  /// The members as last read. `heard` may be newer than in the last call of `changed`.
  virtual Members Current() const = 0;
  virtual CoordinatorHealth Health() const = 0;
};

}  // namespace tocsin
