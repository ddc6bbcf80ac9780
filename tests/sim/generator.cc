#include "sim/generator.h"

#include <algorithm>
#include <charconv>

namespace tocsin::sim {
namespace {

constexpr size_t kIdsPerTopic = 60;
constexpr size_t kServerIdsKept = 50;

}  // namespace

std::vector<Operation> Generator::Begin() {
  const auto make = [&](std::string name, auto change) {
    Topic topic = DefaultTopic(std::move(name));
    topic.lease = std::chrono::seconds(5);
    topic.max_attempts = 3;
    change(topic);
    topics_.push_back(topic);
  };
  make("plain", [](Topic&) {});
  make("kept", [](Topic& topic) { topic.retention = std::chrono::seconds(20); });
  make("small", [](Topic& topic) {
    topic.capacity_jobs = 30;
    topic.capacity_bytes = 4'000;
  });
  make("mixed", [](Topic& topic) { topic.retention = std::chrono::minutes(2); });
  make("quick", [](Topic& topic) {
    topic.backoff_base = topic.backoff_max = Millis(0);
    topic.max_attempts = 2;
    topic.lease = Millis(300);
  });
  make("counts", [](Topic& topic) { topic.count_limit = 3; });
  server_ids_.resize(topics_.size());
  std::vector<Operation> operations;
  for (const Topic& topic : topics_) operations.push_back(PutTopic(topic));
  return operations;
}

Millis Generator::Wait() {
  constexpr int64_t kMinute = 60'000;
  const uint64_t kind = Below(1'000);
  if (kind < 500) return Millis(0);
  if (kind < 750) return Millis(Below(20));
  if (kind < 930) return Millis(Below(2'000));
  if (kind < 980) return Millis(Below(kMinute));
  if (kind < 997) return Millis(Below(5 * 60 * kMinute));
  return Millis(Below(20 * 24 * 60 * kMinute));
}

Millis Generator::Delay() {
  switch (Below(8)) {
    case 0:
    case 1:
      return Millis(0);
    case 2:
    case 3:
      return Millis(Below(50));
    case 4:
    case 5:
      return Millis(Below(5'000));
    case 6:
      return Millis(Below(3'600'000));
    default:
      return Millis(Below(Chance(10) ? uint64_t{kDelayMax.count()} : 200'000'000));
  }
}

std::string Generator::Bytes() {
  const uint64_t size = Chance(shape_.large_percent) ? Below(1'500) : Below(60);
  return fmt::format("{:0>{}}", ++payloads_, size);
}

std::string Generator::Id(size_t topic) {
  const auto& known = server_ids_[topic];
  if (!known.empty() && Chance(40)) return known[Below(known.size())];
  return fmt::format("id{}", Below(kIdsPerTopic));
}

std::string Generator::Key() { return Chance(80) ? "" : fmt::format("key{}", Below(3)); }

OwnedJob Generator::Job(size_t topic, Moment now) {
  OwnedJob job;
  if (Chance(60)) job.id = Id(topic);
  job.key = Key();
  job.delay = Delay();
  if (Mixed(topic) && Chance(50)) {
    job.timeline = Timeline::kUtc;
    job.due = now.utc + job.delay - Millis(Below(100));
  }
  if (Chance(topics_[topic].name == "counts" ? 70 : 5)) {
    job.trigger = Chance(50) ? Trigger::kCount : Trigger::kEither;
    job.count = static_cast<uint32_t>(Below(4));
  }
  job.max_attempts = static_cast<uint32_t>(Chance(80) ? 0 : 1 + Below(4));
  job.on_conflict = static_cast<OnConflict>(Below(3));
  if (Chance(15)) job.headers.emplace_back("name", "value");
  if (Chance(5)) job.headers.emplace_back("empty", "");
  job.payload = Bytes();
  job.slot = job.id.empty() && job.key.empty() ? static_cast<uint32_t>(Below(topics_[topic].slots))
                                               : SlotFor(job.key, job.id, topics_[topic].slots);
  return job;
}

std::optional<Operation> Generator::Relief(const Side& oracle) {
  if (++steps_ % 32 != 0) return std::nullopt;
  for (const TopicFigures& figures : oracle.store->Topics()) {
    if (figures.scheduled + figures.dead < shape_.live_max) continue;
    return Sweep(figures.topic.name, SweepKind::kPurge, shape_.sweep_limit_min + Below(200));
  }
  return std::nullopt;
}

Operation Generator::Next(const Side& oracle, Moment now) {
  claimed_topic_ = submitted_topic_ = SIZE_MAX;
  if (auto relief = Relief(oracle)) return std::move(*relief);
  const uint64_t kind = Below(1'000);
  if (kind < 330) return MakeSubmit(now);
  if (kind < 500) return MakeClaim();
  if (kind < 700) return MakeSettle();
  if (kind < 830) return MakeAmend(now);
  if (kind < 900) return MakeCount();
  if (kind < 910) return MakeSweep();
  if (kind < 930) return MakeTopic();
  return Advance();
}

Operation Generator::MakeSubmit(Moment now) {
  const size_t topic = AnyTopic();
  submitted_topic_ = topic;
  std::vector<OwnedJob> jobs;
  for (size_t i = 1 + (Chance(70) ? 0 : Below(5)); i > 0; --i) jobs.push_back(Job(topic, now));
  return Submit(topics_[topic].name, std::move(jobs));
}

Operation Generator::MakeClaim() {
  const size_t topic = AnyTopic();
  claimed_topic_ = topic;
  const Millis lease(Chance(50) ? 0 : 1 + Below(10'000));
  return Claim(topics_[topic].name, Mixed(topic) ? 100'000 : 1 + Below(12), lease, !Mixed(topic));
}

Operation Generator::MakeSettle() {
  if (deliveries_ == 0) return Advance();
  std::vector<OwnedSettlement> settlements;
  size_t topic = AnyTopic();
  if (!open_.empty()) topic = open_[Below(open_.size())].topic;
  for (size_t i = 1 + Below(6); i > 0; --i) {
    OwnedSettlement settlement;
    settlement.kind = Chance(60) ? SettleKind::kAck : static_cast<SettleKind>(Below(5));
    // The delay of a release is not written down: after a restart the job is due, as it was.
    if (Chance(50) && settlement.kind != SettleKind::kRelease) settlement.delay = Millis(Below(3'000));
    if (Chance(50)) settlement.lease = Millis(1 + Below(20'000));
    if (Chance(50)) settlement.reason = fmt::format("reason {}", Below(100));
    settlement.delivery = Below(deliveries_);  // nearly always stale
    const auto found = std::ranges::find(open_, topic, &Delivery::topic);
    if (found != open_.end() && Chance(95)) {
      settlement.delivery = found->index;
      if (settlement.kind != SettleKind::kExtend) open_.erase(found);
    }
    settlements.push_back(std::move(settlement));
  }
  return Settle(topics_[topic].name, std::move(settlements));
}

Operation Generator::MakeAmend(Moment now) {
  const size_t topic = AnyTopic();
  std::vector<OwnedAmendment> amendments;
  for (size_t i = 1 + (Chance(80) ? 0 : Below(4)); i > 0; --i) {
    OwnedAmendment amendment{.id = Id(topic), .key = Key(), .kind = static_cast<AmendKind>(Below(8)), .delay = Delay()};
    if (amendment.kind == AmendKind::kAttempts) amendment.max_attempts = static_cast<uint32_t>(1 + Below(4));
    if (Mixed(topic) && Chance(50)) {
      amendment.timeline = Timeline::kUtc;
      amendment.due = now.utc + Delay() - Millis(Below(100));
    }
    const bool both = amendment.kind == AmendKind::kReschedule && Chance(40);
    if (both || amendment.kind == AmendKind::kPayload) amendment.payload = Bytes();
    amendments.push_back(std::move(amendment));
  }
  return Amend(topics_[topic].name, std::move(amendments));
}

Operation Generator::MakeCount() {
  const size_t topic = Chance(80) ? 5 : AnyTopic();
  std::vector<OwnedEvent> events;
  for (size_t i = 1 + Below(4); i > 0; --i) {
    events.push_back({Id(topic), Key(), fmt::format("event{}", Below(5)), static_cast<uint32_t>(1 + Below(2))});
  }
  return Count(topics_[topic].name, std::move(events));
}

Operation Generator::MakeSweep() {
  const auto kind = Chance(60) ? SweepKind::kRedrive : static_cast<SweepKind>(Below(3));
  return Sweep(topics_[AnyTopic()].name, kind, shape_.sweep_limit_min + Below(50));
}

Operation Generator::MakeTopic() {
  const size_t number = AnyTopic();
  Topic& topic = topics_[number];
  if (Chance(8)) {
    server_ids_[number].clear();
    return DropTopic(topic.name);
  }
  ++topic.version;
  topic.paused = !topic.paused && Chance(40);
  if (Chance(20)) topic.retention = Millis(Below(2) * Below(60'000));
  if (topic.capacity_jobs != 0) topic.capacity_jobs = 20 + Below(20);
  if (Chance(20)) topic.max_attempts = static_cast<uint32_t>(1 + Below(4));
  if (Chance(20)) topic.lease = Millis(100 + Below(10'000));
  return PutTopic(topic);
}

void Generator::Learn(const Reply& reply, const Side& oracle) {
  for (; deliveries_ < oracle.tokens.size(); ++deliveries_) open_.push_back({claimed_topic_, deliveries_});
  if (open_.size() > 300) open_.erase(open_.begin(), open_.begin() + 100);  // their leases expire
  if (submitted_topic_ == SIZE_MAX) return;
  std::vector<std::string>& ids = server_ids_[submitted_topic_];
  for (size_t at = reply.text.find("uid "); at != std::string::npos; at = reply.text.find("uid ", at + 1)) {
    Uid uid = 0;
    std::from_chars(reply.text.data() + at + 4, reply.text.data() + reply.text.size(), uid);
    if (uid != 0) ids.push_back(UidText(uid));
  }
  if (ids.size() > kServerIdsKept) ids.erase(ids.begin(), ids.end() - kServerIdsKept);
}

}  // namespace tocsin::sim
