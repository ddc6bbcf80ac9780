#include "coordination/shared/membership.h"

#include <algorithm>
#include <charconv>
#include <ranges>

#include "base/log.h"
#include "base/result.h"

namespace tocsin {

std::string EncodeMember(const Member& member) {
  return fmt::format("http={}\nresp={}\nversion={}\njoined_ms={}\n{}", member.http, member.resp, member.version,
                     ToMs(member.joined), member.follows_first ? "follows_first=1\n" : "");
}

Member DecodeMember(std::string id, std::string_view record) {
  Member member{.id = std::move(id)};
  for (const auto part : std::views::split(record, '\n')) {
    const std::string_view line(part.begin(), part.end());
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 1);
    if (name == "http") member.http = value;
    if (name == "resp") member.resp = value;
    if (name == "version") member.version = value;
    if (name == "follows_first") member.follows_first = value == "1";
    if (name == "joined_ms") {
      int64_t joined_ms = 0;
      std::from_chars(value.data(), value.data() + value.size(), joined_ms);
      member.joined = FromMs(joined_ms);
    }
  }
  return member;
}

Status CheckSession(Millis session, Millis min, Millis max) {
  if (session >= min && session <= max) return {};
  return FailField(Code::kInvalidArgument, "session", "a session of {} ms is not between {} and {} ms", session.count(),
                   min.count(), max.count());
}

void LeasedCoordinator::BeginJoin(Member self, std::move_only_function<void(const Members&)> changed) {
  TOCSIN_CHECK(self_.id.empty() && !self.id.empty());
  self_ = std::move(self);
  changed_ = std::move(changed);
}

void LeasedCoordinator::BeginLeave(Done<void> done) {
  TOCSIN_CHECK(!left_);
  left_ = true;
  timer_.cancel();
  leave_done_ = std::move(done);
}

void LeasedCoordinator::Arm() {
  const TimePoint at = std::min(next_, view_.joined ? lease_end_ : TimePoint::max());
  if (at == TimePoint::max() || left_) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(at);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (!error && !alive.expired() && !left_) OnTimer();
  });
}

bool LeasedCoordinator::Adopt(std::vector<Member> members, bool joined) {
  if (!joined) std::erase_if(members, [this](const Member& member) { return member.id == self_.id; });
  const bool same = joined == view_.joined && std::ranges::equal(members, view_.members, {}, &Member::id, &Member::id);
  if (joined && !view_.joined) LogInfo("coordinator: this node has joined as {}", self_.id);
  view_.members = std::move(members);
  view_.joined = joined;
  // One that was only away for a while is back.
  std::erase_if(view_.lost, [this](const Member& lost) {
    return std::ranges::binary_search(view_.members, lost.id, {}, &Member::id);
  });
  return !same;
}

void LeasedCoordinator::NoteLost(Member member) {
  std::erase_if(view_.lost, [&](const Member& lost) { return lost.id == member.id; });
  view_.lost.insert(view_.lost.begin(), std::move(member));
  if (view_.lost.size() > Members::kLostMax) view_.lost.pop_back();
}

void LeasedCoordinator::CheckLease() {
  if (view_.joined && !left_ && clock_.IoNow() >= lease_end_) Lose(lapsed_);
}

void LeasedCoordinator::Lose(std::string_view why) {
  LogWarn("coordinator: this node is no longer a member: {}", why);
  view_.joined = false;
  std::erase_if(view_.members, [this](const Member& member) { return member.id == self_.id; });
  Report();
}

void LeasedCoordinator::Report() {
  if (!left_) changed_(view_);
}

}  // namespace tocsin
