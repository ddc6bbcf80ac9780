// How a shard claims jobs for the reserves of a topic: the topic's home asks the shards that have its slots.
#include <algorithm>
#include <iterator>

#include "core/shard.h"

namespace tocsin {
namespace {

constexpr Millis kRoomEvery{5};
constexpr size_t kClaimJobs = 2000;         // in one turn
constexpr size_t kReserveBytes = 16 << 20;  // a reserve that has so many bytes of jobs gets no more

}  // namespace

void Shard::Claim(const std::string& topic, uint32_t offset, uint64_t waiter, JobMax max, Millis lease) {
  ++started_;
  if (lease == Millis(0)) {
    const TopicEntry* entry = topics_.Find(topic);
    lease = entry == nullptr ? Topic{}.lease : entry->topic.lease;
  }
  Shard& there = *node_.shards[node_.placement.ShardOf(index_, offset)];
  if (&there == this) return ServeClaim(*this, topic, waiter, max, lease);
  there.Send([&there, this, topic, waiter, max, lease] { there.ServeClaim(*this, topic, waiter, max, lease); });
}

/// A claim that goes on: what it has got so far. For the store, the room that is left after that.
struct Shard::Claiming final : JobRoom {
  Claiming(Shard& the_home, std::string the_topic, uint64_t the_waiter, JobMax the_max, Millis the_lease)
      : home(the_home), topic(std::move(the_topic)), waiter(the_waiter), max(the_max), lease(the_lease) {}

  bool Reach(size_t jobs, size_t bytes) override { return max.room->Reach(got.jobs.size() + jobs, got_bytes + bytes); }
  void Lower(size_t jobs, size_t bytes) override { max.room->Lower(got.jobs.size() + jobs, got_bytes + bytes); }

  JobMax Next() {
    return {std::min(max.jobs - got.jobs.size(), kClaimJobs), max.room == nullptr ? nullptr : this, max.holder};
  }
  /// True if there may be more to take.
  bool Take(JobBatch part) {
    const bool goes_on = part.more || part.jobs.size() == Next().jobs;
    got.more = goes_on || part.no_room;
    for (const JobView& job : part.jobs) got_bytes += CountedBytes(job) + job.reason.size();
    got.jobs.reserve(max.jobs);  // to grow later would take long
    std::ranges::move(part.jobs, std::back_inserter(got.jobs));
    std::ranges::move(part.bytes, std::back_inserter(got.bytes));
    return goes_on && got.jobs.size() < max.jobs && got_bytes < kReserveBytes;
  }

  Shard& home;
  const std::string topic;
  const uint64_t waiter;
  const JobMax max;
  const Millis lease;
  JobBatch got;
  size_t got_bytes = 0;
};

void Shard::ServeClaim(Shard& home, std::string topic, uint64_t waiter, JobMax max, Millis lease) {
  if (changed_) Advance();  // so that a reserve sees what was submitted before it
  const std::string_view name = topic;
  const JobMax first(std::min(max.jobs, kClaimJobs), max.room, max.holder);
  store_.Claim(name, first, lease, Now(), [this, &home, topic, waiter, max, lease](Result<JobBatch> result) mutable {
    NoteClaimed(topic, result);
    const bool whole = !result || result->jobs.size() == max.jobs;
    if (whole || (!result->more && result->jobs.size() < kClaimJobs)) {
      return AnswerClaim(home, waiter, std::move(result));
    }
    const auto claiming = std::make_shared<Claiming>(home, std::move(topic), waiter, max, lease);
    claiming->Take(std::move(*result)) ? ContinueClaim(claiming) : AnswerClaim(home, waiter, std::move(claiming->got));
  });
}

void Shard::ContinueClaim(std::shared_ptr<Claiming> claiming) {
  ++started_;
  Send([this, claiming = std::move(claiming)] {
    --started_;
    store_.Claim(claiming->topic, claiming->Next(), claiming->lease, Now(), [this, claiming](Result<JobBatch> part) {
      NoteClaimed(claiming->topic, part);
      // After an error it answers with what it has: those jobs are leased.
      if (part && claiming->Take(std::move(*part))) return ContinueClaim(claiming);
      AnswerClaim(claiming->home, claiming->waiter, std::move(claiming->got));
    });
    CheckQuiet();
  });
}

void Shard::NoteClaimed(std::string_view topic, const Result<JobBatch>& result) {
  Note(result);
  if (!result || result->jobs.empty()) return;
  RecordLateness(topic, *result);
  Changed();  // Advance has to know when the leases end
}

void Shard::AnswerClaim(Shard& home, uint64_t waiter, Result<JobBatch> result) {
  if (&home == this) return Claimed(waiter, std::move(result));
  home.Send([&home, waiter, result = std::move(result)]() mutable { home.Claimed(waiter, std::move(result)); });
}

void Shard::Claimed(uint64_t waiter, Result<JobBatch> result) {
  --started_;
  waiters_.Claimed(waiter, std::move(result));
  AwaitRoom();
  AwaitSated();
  CheckQuiet();
}

void Shard::AwaitRoom() {
  if (!waiters_.WantsRoom() || room_at_ != IoTime::max()) return;
  room_at_ = node_.clock.IoNow() + kRoomEvery;
  if (room_at_ < alarm_at_) Rearm();
}

void Shard::RecordLateness(std::string_view topic, const JobBatch& jobs) {
  const TopicEntry* entry = topics_.Find(topic);
  if (entry == nullptr) return;
  const Time now = Now().utc;
  for (const JobView& job : jobs.jobs) {
    if (job.due == kNever) continue;
    entry->lateness->Record(now - job.due);
    node_.lateness.Record(now - job.due);
  }
}

void Shard::Release(const std::string& topic, uint32_t offset, JobBatch jobs) {
  ReleaseAt(*node_.shards[node_.placement.ShardOf(index_, offset)], LeasesOf(topic, jobs));
}

void Shard::ReleaseAt(Shard& from, Leases leases) {
  std::vector<Settlement> settlements;
  settlements.reserve(leases.tokens.size());
  for (const Token& token : leases.tokens) settlements.push_back({.token = token, .kind = SettleKind::kRelease});
  ++started_;
  const auto serve = [this, &from, topic = std::move(leases.topic), settlements = std::move(settlements)] {
    from.store_.Settle(topic, settlements, from.Now(), [this, &from](Result<std::vector<SettleOutcome>> result) {
      from.Note(result);
      from.Changed();
      Send([this] {
        --started_;
        CheckQuiet();
      });
    });
  };
  if (&from == this) return serve();
  from.Send(serve);
}

}  // namespace tocsin
