// FallbackCoordinator: two lists of members, so that nodes still replace each other if one coordinator is lost. Every
// node registers with both. The first decides (ZooKeeper). The second (leases in Redis) decides while no node is
// registered with the first: then all nodes have the same second list, and compute the same assignment from it.
//
// A node that has lost the first alone follows neither list: the others see it gone from the first and take its groups.
// That is why each node's record in the second list says whether it follows the first. A node that starts gives the
// first one some time to answer before it looks at the second.
//
// Owned by the composition root. Threads: everything on the thread that runs both.
//
// Invariants:
//  - Between two lists it reports joined = false, so that the node takes all its groups again, with new epochs.
#pragma once

#include <memory>

#include "coordination/shared/membership.h"

namespace tocsin {

class FallbackCoordinator final : public Coordinator {
 public:
  /// `patience`: how long a node that starts waits for the first.
  FallbackCoordinator(boost::asio::io_context& io, std::unique_ptr<Coordinator> first,
                      std::unique_ptr<LeasedCoordinator> second, Millis patience)
      : first_(std::move(first)), second_(std::move(second)), patience_(patience), timer_(io) {}

  void Join(Member self, std::move_only_function<void(const Members&)> changed) override;
  void Leave(Done<void> done) override;
  void Refresh() override;
  Members Current() const override;
  CoordinatorHealth Health() const override;

 private:
  enum class List : uint8_t { kNone, kFirst, kSecond };

  void OnFirst(const Members& members);
  void OnSecond();
  /// Which list to follow now.
  List Choose() const;
  void Follow(List list);

  const std::unique_ptr<Coordinator> first_;
  const std::unique_ptr<LeasedCoordinator> second_;
  const Millis patience_;
  boost::asio::steady_timer timer_;  // while it is patient
  bool patient_ = true;
  std::string self_;  // the id
  std::move_only_function<void(const Members&)> changed_;
  List followed_ = List::kNone;
  bool in_first_ = false;  // as the second list says
};

}  // namespace tocsin
