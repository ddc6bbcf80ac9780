// ClusterClient: the client of a Redis Cluster. A map says which server serves which hash slot; each master has a link.
//
// The client asks any server for the map (CLUSTER SLOTS), at most once every kRefreshGap: if a server says that a slot
// moved or that it cannot serve, if a server is lost or silent, and every kRefreshIdle. While a master is not connected
// it asks repeatedly, at growing intervals. In between, MOVED corrects single slots.
//
// Order: commands of one hash slot go through one link, in the order of their calls. While a slot moves, a command that
// was redirected (MOVED, ASK) or is tried again (TRYAGAIN, CLUSTERDOWN, ...) may run after later ones.
#pragma once

#include <set>

#include "clients/redis/base_client.h"
#include "clients/redis/inquiry.h"
#include "clients/redis/shard_channels.h"
#include "clients/redis/slot_map.h"

namespace tocsin::redis {

class ClusterClient final : public BaseClient {
 public:
  static constexpr Millis kRefreshGap{200};
  static constexpr Millis kRefreshGapMax{1'000};
  static constexpr Millis kRefreshIdle{15'000};

  explicit ClusterClient(std::unique_ptr<Context> context);
  ~ClusterClient() override;

  void Start() override { Refresh(); }
  void CallEach(const Command& command, std::move_only_function<void(Result<Each>)> answer) override;
  std::vector<ServerHealth> Health() const override;
  void SubscribeShard(std::string channel, Message message) override;
  bool HasShards() const override { return true; }
  void Unsubscribe(std::string_view channel) override {
    if (!shard_channels_.Remove(channel)) BaseClient::Unsubscribe(channel);
  }

 private:
  struct Gathering;

  void Route(RequestPtr request) override;
  void CloseLinks(Requests& sent, Requests& unsent) override;
  void Where(CommandLink& link) override;
  void WhereToListen(Link& subscription) override;
  void LinkUp(CommandLink& link) override;
  void LinkDown(CommandLink& link) override;
  void LinkHangs(CommandLink& link) override { Doubt(link); }
  void Postponed(CommandLink& link, std::string_view why) override;
  void Redirected(CommandLink& link, RequestPtr request, Reply reply) override;
  void Demoted(CommandLink& link) override { Doubt(link); }

  /// Null if no known server serves it.
  CommandLink* LinkFor(const Request& request);
  CommandLink& LinkAt(const Endpoint& endpoint);
  std::vector<Endpoint> Connected() const;
  /// All known servers, connected ones first.
  std::vector<Endpoint> Known() const;
  void MoveSlot(int hash_slot, const Endpoint& to);
  void AskAll(const std::shared_ptr<Gathering>& gathering);

  void WantRefresh();
  /// Another server may have taken over: asks for the map, and asks this server last.
  void Doubt(CommandLink& link);
  void Refresh();
  void Refreshed(const Status& status);
  void Adopt(SlotMap map);
  void DropUnused();
  bool SomeMasterIsDown() const;

  SlotMap map_;
  std::map<Endpoint, std::unique_ptr<CommandLink>> links_;
  std::vector<CommandLink*> by_server_;  // as map_.servers(); null for replicas

  std::unique_ptr<Inquiry> inquiry_;
  SlotMap fresh_;       // what the inquiry found
  bool again_ = false;  // a refresh was wanted while one was under way
  Millis gap_ = kRefreshGap;
  std::set<Endpoint> doubted_;  // since the map was asked for last
  size_t asked_ = 0;            // rotates which server is asked
  size_t listened_ = 0;         // the same for the subscription
  std::string trouble_;         // why there is no map
  TimePoint refreshed_at_;
  ShardChannels shard_channels_;
  Alarm refresh_;
};

}  // namespace tocsin::redis
