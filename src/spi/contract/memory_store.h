// MemoryStore: the Store that is obviously right and slow, kept in std::map. It is the oracle that other stores are
// compared with, and a stand-in if a test needs some store. Everything is "durable" at once.
//
// One thread. `done` runs within the call, or through `loop` if one was given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "spi/store.h"

namespace tocsin {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Loop* loop = nullptr) : loop_(loop) {}

  void PutTopic(const Topic& topic, Done<void> done) override;
  void DropTopic(std::string_view topic, Done<void> done) override;
  std::optional<TopicFigures> FindFigures(std::string_view topic) const override;
  TopicsPage TopicsFrom(std::string_view cursor, size_t limit) const override;
  void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
              Done<std::vector<Submitted>> done) override;
  void Claim(std::string_view topic, JobMax max, Millis lease, Moment now, Done<JobBatch> done) override;
  void Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
              Done<std::vector<SettleOutcome>> done) override;
  void Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
             Done<std::vector<Amended>> done) override;
  void Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
             Done<std::vector<Counted>> done) override;
  void Find(std::string_view topic, std::span<const JobRef> jobs, JobRoom* room, Moment now,
            Done<JobBatch> done) override;
  void List(std::string_view topic, const Selector& what, std::string_view cursor, JobMax max, Moment now,
            Done<Page> done) override;
  void Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
             Done<Swept> done) override;
  void Load(std::string_view topic, const LoadSpan& span, Moment now, Done<LoadCounts> done) override;
  void Advance(Moment now, size_t budget, Done<Advanced> done) override;

  /// What a restart does: leases are gone, and the counts begin again.
  void Reopen();

 private:
  struct Job {
    Uid uid = 0;
    uint32_t slot = 0;
    std::shared_ptr<const JobBatch> texts;  // one view: own id, key, headers and payload; copies of the store share it
    uint64_t fingerprint = 0;

    State state = State::kScheduled;
    Timeline timeline = Timeline::kSteady;
    Time due{};
    Trigger trigger = Trigger::kTime;
    bool fired = false;  // its count no longer matters
    uint32_t count_left = 0;
    std::set<std::string> events;
    uint32_t attempts = 0;
    uint32_t max_attempts = 0;
    std::string reason;
    uint64_t fence = 0;
    Time lease_deadline{};  // this and the following are steady
    Time leased{};
    uint32_t extensions = 0;
    std::string holder;
    Time restored_created{};  // in UTC; of a copy that brought it along
    Time last_attempt{};
    Time ended{};      // when dead, done or cancelled: since when
    Time forget_at{};  // when done or cancelled

    bool Live() const { return state != State::kDone && state != State::kCancelled; }
    uint32_t ShownAttempt() const { return attempts + (state == State::kLeased || state == State::kDone ? 1 : 0); }
    bool Ready(Moment now) const { return state == State::kScheduled && due <= now.On(timeline); }
    const JobView& Texts() const { return texts->jobs.front(); }
    uint64_t Bytes() const { return CountedBytes(Texts()); }
    uint64_t CopyBytes() const { return Bytes() + reason.size() + (state == State::kLeased ? holder.size() : 0); }
  };

  struct TopicJobs {
    Topic topic;
    std::map<Uid, Job> jobs;
    std::map<std::pair<std::string, std::string>, Uid> by_id;  // (key, own id)
    TopicFigures counts;                                       // its second group alone is kept up to date
    bool reported = false;                                     // as ready, and not claimed empty since

    Job* Find(const JobRef& ref);
    uint64_t LiveJobs() const;
    uint64_t LiveBytes() const;
    bool HasReady(Moment now) const;
    void Erase(const Job& job);
    void Finish(Job& job, State state, Moment now);
    void Retry(Job& job, std::optional<Millis> delay, std::string reason, Moment now);
    void Bury(Job& job, std::string reason, Moment now);
    void Redrive(Job& job, Moment now);
    void Purge(const Job& job);
  };

  template <class T>
  void Answer(Done<T> done, Result<T> result);
  TopicJobs* FindTopic(std::string_view topic);
  Submitted SubmitOne(TopicJobs& held, const NewJob& asked, Moment now);
  /// How many of the jobs, from the first on, there is room for.
  static size_t FitInto(JobRoom* room, const std::vector<Job*>& jobs);
  static SettleOutcome SettleOne(TopicJobs& held, const Settlement& settlement, Moment now);
  static bool NewPayload(const TopicJobs& held, Job& job, std::string_view payload);
  static Amended AmendOne(TopicJobs& held, const Amendment& amendment, Moment now);
  static Counted CountOne(TopicJobs& held, const CountEvent& event, Moment now);
  static JobView View(const Job& job, Moment now);
  static JobBatch Show(const std::vector<const Job*>& jobs, Moment now);
  static void LoadOne(const TopicJobs& held, const LoadSpan& span, Moment now, LoadCounts& counts);
  static size_t AdvanceOne(TopicJobs& held, Moment now, size_t budget, Advanced& advanced);

  Loop* loop_;
  std::map<std::string, TopicJobs, std::less<>> topics_;
  UidSource uids_;
  uint64_t fence_ = 0;
  Moment latest_;  // of Advance: what Topics() calls ready
};

}  // namespace tocsin
