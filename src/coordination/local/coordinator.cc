#include "coordination/local/coordinator.h"

namespace tocsin {

void LocalCoordinator::Join(Member self, std::move_only_function<void(const Members&)> changed) {
  changed_ = std::move(changed);
  self.joined = clock_.Now().utc;
  members_ = {.members = {std::move(self)}, .joined = true};
  Refresh();
}

void LocalCoordinator::Leave(Done<void> done) {
  members_ = {};
  Later([done = std::move(done)]() mutable { done({}); });
}

void LocalCoordinator::Refresh() {
  Later([this] {
    if (members_.joined) changed_(Current());
  });
}

Members LocalCoordinator::Current() const {
  Members current = members_;
  for (Member& member : current.members) member.heard = clock_.Now().utc;
  return current;
}

CoordinatorHealth LocalCoordinator::Health() const {
  return {.kind = "local", .connected = true, .state = "connected"};
}

void LocalCoordinator::Later(Task task) {
  loop_.Post([alive = std::weak_ptr(alive_), task = std::move(task)]() mutable {
    if (!alive.expired()) task();
  });
}

}  // namespace tocsin
