// ShardChannels: the sharded channels that a client of a Cluster listens to. A message of such a channel reaches only
// those who listen at the server that serves the channel's hash slot, so there is a connection for messages to each
// server that has some.
//
// If a hash slot moves, its old server ends the subscriptions, or says MOVED to a new one: the channel has no place
// until the client has asked for the map, and calls Place. A failover shows in the map too.
//
// Owned by a ClusterClient, on its thread.
#pragma once

#include "clients/redis/link.h"

namespace tocsin::redis {

class ShardChannels {
 public:
  struct Hooks {
    /// Who serves a hash slot, as far as is known.
    std::move_only_function<std::optional<Endpoint>(int hash_slot)> where;
    /// Channels were subscribed to: messages may have been lost before.
    std::move_only_function<void()> back;
    /// A channel has lost its place: asks for the map.
    std::move_only_function<void()> moved;
  };

  ShardChannels(Context& context, Hooks hooks) : context_(context), hooks_(std::move(hooks)) {}

  /// Whether it has a server.
  bool Add(std::string channel, Client::Message message);
  /// Whether it was one of them.
  bool Remove(std::string_view channel);
  /// Moves each channel to the server that serves it. Not from a message or a hook.
  void Place();
  /// Whether a channel has no server.
  bool lacking() const;
  void Close(Requests& sent, Requests& unsent);

 private:
  struct Channel {
    Client::Message message;
    std::optional<Endpoint> at;
  };

  void PlaceOne(const std::string& name, Channel& channel);
  void Lose(const std::string& name, Channel& channel);
  Subscription& LinkAt(const Endpoint& endpoint);
  void Moved(const Endpoint& from, std::string_view said);

  Context& context_;
  Hooks hooks_;
  std::map<std::string, Channel, std::less<>> channels_;
  std::map<Endpoint, std::unique_ptr<Subscription>> links_;
};

}  // namespace tocsin::redis
