// SlotMap: which server of a Cluster serves which hash slot, as a server told it (CLUSTER SLOTS). A value.
//
// Invariants: each server is in the map once; server indices stay valid until the map is replaced.
#pragma once

#include "clients/redis/client.h"

namespace tocsin::redis {

class SlotMap {
 public:
  struct Server {
    Endpoint endpoint;
    size_t hash_slots = 0;
    bool master = false;
    friend bool operator==(const Server&, const Server&) = default;
  };

  SlotMap() : owner_(kHashSlots, kNobody) {}
  /// `asked` is the server that answered: one that does not know its own address leaves it out. kCorrupt for an answer
  /// of another shape, kUnavailable for an error.
  static Result<SlotMap> Parse(const Reply& reply, const Endpoint& asked);

  /// Sorted by endpoint as parsed; servers that Move added are at the end.
  const std::vector<Server>& servers() const { return servers_; }
  /// The index of the server that serves it.
  std::optional<size_t> OwnerOf(int hash_slot) const;
  /// The index of `to`.
  size_t Move(int hash_slot, const Endpoint& to);
  bool empty() const { return servers_.empty(); }
  friend bool operator==(const SlotMap&, const SlotMap&) = default;

 private:
  static constexpr uint16_t kNobody = UINT16_MAX;
  size_t IndexOf(const Endpoint& endpoint);
  Status AddRange(ReplyView range, const Endpoint& asked);
  void Give(size_t hash_slot, size_t index);

  std::vector<Server> servers_;
  std::vector<uint16_t> owner_;
};

struct Redirect {
  int hash_slot = 0;
  Endpoint to;
};

/// "MOVED 3999 10.0.0.1:6381" and the same with ASK. A server that does not know its peer's address leaves the host
/// out: then it is `from`'s.
std::optional<Redirect> ParseRedirect(std::string_view text, const Endpoint& from);

}  // namespace tocsin::redis
