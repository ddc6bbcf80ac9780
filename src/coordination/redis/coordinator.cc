#include "coordination/redis/coordinator.h"

#include <algorithm>
#include <ranges>

#include <boost/asio/post.hpp>

#include "base/check.h"
#include "base/log.h"

namespace tocsin {

Result<std::unique_ptr<RedisCoordinator>> RedisCoordinator::Make(boost::asio::io_context& io, const Clock& clock,
                                                                 redis::Options redis, metrics::Registry& metrics,
                                                                 RedisCoordinatorOptions options) {
  if (options.session < kSessionMin || options.session > kSessionMax) {
    return FailField(Code::kInvalidArgument, "session", "a session of {} ms is not between {} and {} ms",
                     options.session.count(), kSessionMin.count(), kSessionMax.count());
  }
  const Millis third = options.session / 3;
  redis.command_timeout = third;
  redis.connect_timeout = std::min(redis.connect_timeout, third);
  redis.backoff_max = std::min(redis.backoff_max, third);
  auto client = redis::Client::Make(io, std::move(redis), metrics);
  if (!client) return std::unexpected(std::move(client).error());
  return std::unique_ptr<RedisCoordinator>(
      new RedisCoordinator(io, clock, std::move(client).value(), std::move(options)));
}

RedisCoordinator::RedisCoordinator(boost::asio::io_context& io, const Clock& clock,
                                   std::unique_ptr<redis::Client> client, RedisCoordinatorOptions options)
    : io_(io),
      clock_(clock),
      options_(std::move(options)),
      keys_(options_.prefix),
      client_(std::move(client)),
      timer_(io) {}

RedisCoordinator::~RedisCoordinator() {
  closed_ = true;
  client_->Close();
}

void RedisCoordinator::Join(Member self, std::move_only_function<void(const Members&)> changed) {
  TOCSIN_CHECK(self_.id.empty() && !self.id.empty());
  self_ = std::move(self);
  changed_ = std::move(changed);
  client_->Subscribe(keys_.channel, [this](std::string_view, std::string_view who) {
    if (who != self_.id) Beat();
  });
  client_->OnUp([this] { Beat(); });
  Beat();
}

void RedisCoordinator::Refresh() {
  refresh_ = true;
  Beat();
}

void RedisCoordinator::Leave(Done<void> done) {
  TOCSIN_CHECK(!left_);
  left_ = true;
  timer_.cancel();
  leave_done_ = std::move(done);
  // A beat that joins must not arrive after the leave.
  if (!under_way_) SendLeave();
}

void RedisCoordinator::SendLeave() {
  if (self_.id.empty()) {  // never joined
    boost::asio::post(io_, [done = std::move(leave_done_)]() mutable { done({}); });
    return;
  }
  client_->Call(LeaveCommand(keys_, self_.id), [this](Result<redis::Reply> answer) {
    if (closed_) return;
    if (!answer) return leave_done_(std::unexpected(std::move(answer).error()));
    const redis::ReplyView root = answer->root();
    leave_done_(root.error() ? Fail(Code::kUnavailable, "Redis refuses to remove this node: {}", root.text())
                             : Status());
  });
}

void RedisCoordinator::Beat() {
  if (closed_ || self_.id.empty()) return;
  CheckLease();
  if (left_) return;
  if (under_way_) {
    again_ = true;
    return;
  }
  under_way_ = true;
  again_ = false;
  refreshing_ = std::exchange(refresh_, false);
  next_beat_ = TimePoint::max();
  if (!view_.joined) self_.joined = clock_.Now().utc;
  const BeatKind kind = view_.joined ? BeatKind::kRenew : BeatKind::kJoin;
  client_->Call(BeatCommand(keys_, self_, options_.session, kind),
                [this, sent = clock_.IoNow()](Result<redis::Reply> answer) { OnBeat(sent, std::move(answer)); });
  Arm();
}

void RedisCoordinator::OnBeat(TimePoint sent, Result<redis::Reply> answer) {
  if (closed_) return;
  under_way_ = false;
  if (left_) return SendLeave();
  CheckLease();
  Result<Roster> roster = answer ? ReadRoster(*answer, self_.id, options_.session)
                                 : Result<Roster>(std::unexpected(std::move(answer).error()));
  if (roster) {
    Apply(sent, std::move(*roster));
  } else {
    SetState(false, roster.error().message);
    next_beat_ = clock_.IoNow() + options_.session / 12;
    if (refreshing_) Report();
  }
  if (left_) return;  // `changed` may leave
  if (again_) return Beat();
  Arm();
}

void RedisCoordinator::Apply(TimePoint sent, Roster roster) {
  SetState(true, "connected");
  const TimePoint now = clock_.IoNow();
  const TimePoint end = sent + options_.session;
  // Not joined: Redis has removed this node, or the answer is so old that it may have done so since.
  const bool joined = roster.held && now < end;
  if (!joined) std::erase_if(roster.members, [this](const Member& member) { return member.id == self_.id; });
  const bool same = joined == view_.joined && roster.version == version_ &&
                    std::ranges::equal(roster.members, view_.members, {}, &Member::id, &Member::id);
  view_.members = std::move(roster.members);
  version_ = roster.version;
  next_beat_ = std::min(sent + options_.session / 3, now + roster.next_end.value_or(options_.session) + Millis(1));
  if (!joined) {
    again_ = true;
    if (view_.joined) return Lose("Redis has removed it");
  } else {
    if (!view_.joined) LogInfo("coordinator: this node has joined as {}", self_.id);
    view_.joined = true;
    lease_end_ = end;
  }
  if (!same || refreshing_) Report();
}

void RedisCoordinator::CheckLease() {
  if (view_.joined && !left_ && clock_.IoNow() >= lease_end_) Lose("its lease in Redis has run out");
}

void RedisCoordinator::Lose(std::string_view why) {
  LogWarn("coordinator: this node is no longer a member: {}", why);
  view_.joined = false;
  std::erase_if(view_.members, [this](const Member& member) { return member.id == self_.id; });
  Report();
}

void RedisCoordinator::Report() {
  if (!left_) changed_(view_);
}

void RedisCoordinator::SetState(bool connected, std::string state) {
  if (connected != connected_ && connected) LogInfo("coordinator: Redis answers");
  if (!connected && state != state_) LogWarn("coordinator: {}", state);
  connected_ = connected;
  state_ = std::move(state);
}

void RedisCoordinator::Arm() {
  const TimePoint at = std::min(next_beat_, view_.joined ? lease_end_ : TimePoint::max());
  if (at == TimePoint::max()) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(at);
  timer_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired() || left_) return;
    if (clock_.IoNow() >= next_beat_) return Beat();
    CheckLease();
    Arm();
  });
}

CoordinatorHealth RedisCoordinator::Health() const {
  return {.kind = "redis", .connected = connected_, .state = state_};
}

}  // namespace tocsin
