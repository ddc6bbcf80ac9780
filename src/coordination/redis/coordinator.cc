#include "coordination/redis/coordinator.h"

#include <algorithm>

#include <boost/asio/post.hpp>

#include "base/log.h"

namespace tocsin {
namespace {

redis::Command Scripted(const redis::Script& script, const RosterKeys& keys) {
  redis::Command command(script, 3, keys.lease);
  command.Add(keys.record).Add(keys.version).Add(keys.channel);
  return command;
}

}  // namespace

struct RedisCoordinator::Roster {
  int64_t version = 0;
  Time now{};                   // by Redis' clock
  bool held = false;            // whether this node has a lease now
  std::vector<Member> members;  // sorted by id
  /// In how long the first lease of another member runs out, if it is not renewed.
  std::optional<Millis> next_end;
};

RosterKeys::RosterKeys(std::string_view prefix)
    : channel(fmt::format("{{{}:members}}", prefix)),
      lease(channel + ":lease"),
      record(channel + ":record"),
      version(channel + ":version") {}

redis::Command RedisCoordinator::BeatCommand() const {
  static const redis::Script script("members_beat", kBeatScript);
  redis::Command command = Scripted(script, keys_);
  command.Add(self_.id).Add(EncodeMember(self_)).Add(options_.session.count()).Add(kSessionMax.count());
  command.Add(view_.joined ? "0" : "1");  // a member renews only a lease that has not run out
  return command;
}

Result<RedisCoordinator::Roster> RedisCoordinator::ReadRoster(const redis::Reply& reply) const {
  const redis::ReplyView root = reply.root();
  if (root.error()) return Fail(Code::kUnavailable, "Redis refuses the list of members: {}", root.text());
  if (root.size() != 4) return Fail(Code::kInternal, "Redis answered something else than the list of members");
  const Time now = FromMs(root[1].integer());
  Roster roster{.version = root[0].integer(), .now = now, .held = root[2].integer() == 1};
  const redis::ReplyView members = root[3];
  for (size_t i = 0; i < members.size(); ++i) {
    const redis::ReplyView row = members[i];
    if (row.size() != 3) return Fail(Code::kInternal, "Redis answered something else than a member");
    Member member = DecodeMember(std::string(row[0].text()), row[1].text());
    const Time end = FromMs(row[2].integer());
    member.heard = std::min(end - options_.session, now);  // if all nodes have the same session
    if (member.id != self_.id) roster.next_end = std::min(roster.next_end.value_or(Millis::max()), end - now);
    roster.members.push_back(std::move(member));
  }
  std::ranges::sort(roster.members, {}, &Member::id);
  return roster;
}

Result<std::unique_ptr<RedisCoordinator>> RedisCoordinator::Make(boost::asio::io_context& io, const Clock& clock,
                                                                 redis::Options redis, metrics::Registry& metrics,
                                                                 RedisCoordinatorOptions options) {
  TOCSIN_TRY(CheckSession(options.session, kSessionMin, kSessionMax));
  const Millis third = options.session / 3;
  redis.command_timeout = third;
  redis.connect_timeout = std::min(redis.connect_timeout, third);
  redis.backoff_max = std::min(redis.backoff_max, third);
  TOCSIN_ASSIGN(auto client, redis::Client::Make(io, std::move(redis), metrics));
  return std::unique_ptr<RedisCoordinator>(new RedisCoordinator(io, clock, std::move(client), std::move(options)));
}

RedisCoordinator::RedisCoordinator(boost::asio::io_context& io, const Clock& clock,
                                   std::unique_ptr<redis::Client> client, RedisCoordinatorOptions options)
    : LeasedCoordinator(io, clock, "redis", "its lease in Redis has run out"),
      io_(io),
      options_(std::move(options)),
      keys_(options_.prefix),
      client_(std::move(client)) {}

RedisCoordinator::~RedisCoordinator() {
  closed_ = true;
  client_->Close();
}

void RedisCoordinator::Join(Member self, std::move_only_function<void(const Members&)> changed) {
  BeginJoin(std::move(self), std::move(changed));
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
  BeginLeave(std::move(done));
  // A beat that joins must not arrive after the leave.
  if (!under_way_) SendLeave();
}

void RedisCoordinator::SendLeave() {
  if (self_.id.empty()) {  // never joined
    boost::asio::post(io_, [done = std::move(leave_done_)]() mutable { done({}); });
    return;
  }
  static const redis::Script script("members_leave", kLeaveScript);
  redis::Command command = Scripted(script, keys_);
  command.Add(self_.id);
  client_->Call(std::move(command), [this](Result<redis::Reply> answer) {
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
  next_ = TimePoint::max();
  if (!view_.joined) self_.joined = clock_.Now().utc;
  client_->Call(BeatCommand(),
                [this, sent = clock_.IoNow()](Result<redis::Reply> answer) { OnBeat(sent, std::move(answer)); });
  Arm();
}

void RedisCoordinator::OnBeat(TimePoint sent, Result<redis::Reply> answer) {
  if (closed_) return;
  under_way_ = false;
  if (left_) return SendLeave();
  CheckLease();
  Result<Roster> roster = answer ? ReadRoster(*answer) : std::unexpected(std::move(answer).error());
  if (roster) {
    Apply(sent, std::move(*roster));
  } else {
    SetState(false, roster.error().message);
    next_ = clock_.IoNow() + options_.session / 12;
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
  const bool lost = view_.joined && !joined;
  bool changed = roster.version != version_;
  NoteLostSince(roster);
  changed |= Adopt(std::move(roster.members), joined);
  version_ = roster.version;
  next_ = std::min(sent + options_.session / 3, now + roster.next_end.value_or(options_.session) + Millis(1));
  if (joined) {
    lease_end_ = end;
  } else {
    again_ = true;
  }
  if (lost) return Lose("Redis has removed it");
  if (changed || refreshing_) Report();
}

void RedisCoordinator::NoteLostSince(const Roster& roster) {
  for (const Member& member : view_.members) {
    const bool there = std::ranges::binary_search(roster.members, member.id, {}, &Member::id);
    // A member that leaves does so before its lease has run out, as far as we know it: we beat three times a session.
    const bool ran_out = member.heard + options_.session <= roster.now;
    if (!there && ran_out && member.id != self_.id) NoteLost(member);
  }
}

void RedisCoordinator::SetState(bool connected, std::string state) {
  if (connected != connected_ && connected) LogInfo("coordinator: Redis answers");
  if (!connected && state != state_) LogWarn("coordinator: {}", state);
  connected_ = connected;
  state_ = std::move(state);
}

void RedisCoordinator::OnTimer() {
  if (clock_.IoNow() >= next_) return Beat();
  CheckLease();
  Arm();
}

}  // namespace tocsin
