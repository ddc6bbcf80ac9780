// LocalCoordinator: a node alone. It is the only member, always joined, and owns everything. Owned by the composition
// root; everything on the loop's thread.
#pragma once

#include <memory>

#include "base/clock.h"
#include "base/loop.h"
#include "spi/coordinator.h"

namespace tocsin {

class LocalCoordinator final : public Coordinator {
 public:
  /// Both outlive it.
  LocalCoordinator(Loop& loop, const Clock& clock) : loop_(loop), clock_(clock) {}

  void Join(Member self, std::move_only_function<void(const Members&)> changed) override;
  void Leave(Done<void> done) override;
  void Refresh() override;
  Members Current() const override;
  CoordinatorHealth Health() const override;

 private:
  /// Runs `task` later, unless the coordinator is gone by then.
  void Later(Task task);

  Loop& loop_;
  const Clock& clock_;
  Members members_;
  std::move_only_function<void(const Members&)> changed_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace tocsin
