// ClusterClient: the client of a Redis Cluster. A map says which node serves which hash slot; each master has a lane.
//
// The map comes from any node that answers (CLUSTER SLOTS), one question at a time and at most one every kRefreshGap:
// when a node says that a slot moved or that it cannot serve, when one is lost or says nothing, and every kRefreshIdle;
// again and again as long as a master is not connected, less and less often. In between MOVED corrects single slots.
//
// Order: commands of one hash slot go through one lane, in the order of their calls. Where a slot moves, a command that
// was redirected (MOVED, ASK) or must be tried again (TRYAGAIN, CLUSTERDOWN, ...) may be carried out after later ones.
#pragma once

#include <map>
#include <set>

#include "clients/redis/base_client.h"
#include "clients/redis/inquiry.h"
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
  void CallEach(const Command& command,
                std::move_only_function<void(Result<std::vector<std::pair<Endpoint, Reply>>>)> answer) override;
  std::vector<ServerHealth> Health() const override;

 private:
  struct Gathering;

  void Route(RequestPtr request) override;
  void CloseLanes(Requests& sent, Requests& unsent) override;
  void Where(Lane& lane) override;
  void WhereToListen(Link& subscription) override;
  void LaneUp(Lane& lane) override;
  void LaneDown(Lane& lane) override;
  void LaneHangs(Lane& lane) override { Doubt(lane); }
  void Postponed(Lane& lane, std::string_view why) override;
  void Redirected(Lane& lane, RequestPtr request, Reply reply) override;
  void Demoted(Lane& lane) override { Doubt(lane); }

  /// Null where nobody serves it, as far as is known.
  Lane* LaneFor(const Request& request);
  Lane& LaneAt(const Endpoint& endpoint);
  std::vector<Endpoint> Connected() const;
  /// All nodes that are known, those that are connected first.
  std::vector<Endpoint> Known() const;
  void MoveSlot(int hash_slot, const Endpoint& to);
  void AskAll(const std::shared_ptr<Gathering>& gathering);

  void WantRefresh();
  /// Another node may serve in its place by now: the map is looked at, and this node asked for it last.
  void Doubt(Lane& lane);
  void Refresh();
  void Refreshed(const Status& status);
  void Adopt(SlotMap map);
  void DropUnused();
  bool SomeMasterIsDown() const;

  SlotMap map_;
  std::map<Endpoint, std::unique_ptr<Lane>> lanes_;
  std::vector<Lane*> by_node_;  // as map_.nodes(); null for replicas

  std::unique_ptr<Inquiry> inquiry_;
  SlotMap fresh_;       // what the inquiry found
  bool again_ = false;  // wanted while one was under way
  Millis gap_ = kRefreshGap;
  std::set<Endpoint> doubted_;  // since the map was asked for last
  size_t asked_ = 0;            // rotates whom is asked
  size_t listened_ = 0;         // the same for the subscription
  std::string trouble_;         // why there is no map
  TimePoint refreshed_at_;
  Alarm refresh_;
};

}  // namespace tocsin::redis
