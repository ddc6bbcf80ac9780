#include "coordination/shared/fallback.h"

#include <algorithm>

#include "base/log.h"

namespace tocsin {

void FallbackCoordinator::Join(Member self, std::move_only_function<void(const Members&)> changed) {
  self_ = self.id;
  changed_ = std::move(changed);
  second_->Join(self, [this](const Members&) { OnSecond(); });
  first_->Join(std::move(self), [this](const Members& members) { OnFirst(members); });
  timer_.expires_after(patience_);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    patient_ = false;
    OnSecond();
  });
}

void FallbackCoordinator::OnFirst(const Members& members) {
  if (in_first_ != members.joined) {
    in_first_ = members.joined;
    patient_ = false;
    timer_.cancel();
    second_->SetFollowsFirst(in_first_);
  }
  Follow(Choose());
}

void FallbackCoordinator::OnSecond() {
  const List list = Choose();
  // Its changes mean nothing while the first decides.
  if (list == List::kFirst && followed_ == list) return;
  Follow(list);
}

FallbackCoordinator::List FallbackCoordinator::Choose() const {
  if (in_first_) return List::kFirst;
  if (patient_) return List::kNone;
  const Members members = second_->Current();
  // This node's own record may be older than what it knows.
  const bool others_follow_first = std::ranges::any_of(
      members.members, [this](const Member& member) { return member.follows_first && member.id != self_; });
  return members.joined && !others_follow_first ? List::kSecond : List::kNone;
}

void FallbackCoordinator::Follow(List list) {
  const List before = std::exchange(followed_, list);
  if (before != list && list == List::kSecond) {
    LogWarn("coordinator: no node is registered with {}: the members are those in {}", first_->Health().kind,
            second_->Health().kind);
  }
  if (before == List::kSecond && list == List::kFirst) {
    LogInfo("coordinator: the members are those in {} again", first_->Health().kind);
  }
  if (before != list && before != List::kNone && list != List::kNone) {
    Members none = Current();
    none.joined = false;
    std::erase_if(none.members, [this](const Member& member) { return member.id == self_; });
    changed_(none);
  }
  changed_(Current());
}

void FallbackCoordinator::Refresh() {
  if (followed_ == List::kSecond) return second_->Refresh();
  first_->Refresh();
}

void FallbackCoordinator::Leave(Done<void> done) {
  timer_.cancel();
  struct Both {
    Done<void> done;
    Status status;
    int left = 2;
  };
  const auto both = std::make_shared<Both>(std::move(done));
  const auto end = [both](Result<void> result) {
    if (!result) both->status = std::move(result);
    if (--both->left == 0) both->done(std::move(both->status));
  };
  second_->Leave(end);
  first_->Leave(end);
}

Members FallbackCoordinator::Current() const {
  Members second = second_->Current();
  if (followed_ == List::kSecond) return second;
  Members members = first_->Current();
  // The first may not tell a crash from a leave. All nodes are registered with the second too.
  if (members.lost.empty()) members.lost = std::move(second.lost);
  return members;
}

CoordinatorHealth FallbackCoordinator::Health() const {
  CoordinatorHealth health = first_->Health();
  if (followed_ == List::kSecond) health.state += fmt::format("; the members are those in {}", second_->Health().kind);
  return health;
}

}  // namespace tocsin
