// The contract of Store as a test suite. A back end passes it by giving a StoreHarness and
//
//   INSTANTIATE_TEST_SUITE_P(Journal, StoreContract, testing::Values(StoreMaker{[] { return ...; }}));
//
// and linking the library store_contract. Tests named after invariants and peer bugs refer to the numbered lists in
// docs/reliability.md. After every test the books are balanced: what was recovered and accepted is somewhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/result.h"
#include "spi/store.h"

namespace tocsin {

/// One store under test, with its clock and its disk or server. Made anew, and empty, for every test.
class StoreHarness {
 public:
  virtual ~StoreHarness() = default;

  /// Another object after Restart and Crash.
  virtual Store& store() = 0;
  virtual VirtualClock& clock() = 0;
  /// Runs until every pending `done` has run.
  virtual void Pump() = 0;
  /// Closes cleanly, and opens again.
  virtual void Restart() = 0;
  /// Loses everything that is not durable, without warning, and opens again. Pending `done`s never run.
  virtual void Crash() = 0;

  /// Whether what was acknowledged survives a Crash.
  virtual bool durable() const { return true; }
  /// False where the store has a clock of its own that a test cannot step.
  virtual bool supports_clock_steps() const { return true; }
  /// Whether leases outlive the store's object: others may hold them, through other nodes.
  virtual bool keeps_leases() const { return false; }
  /// The next write to stable storage fails, and what it would have saved is lost. False: this store cannot show it.
  virtual bool FailNextSync() { return false; }
  /// The largest payload that it takes, as it is set up here.
  virtual size_t largest_payload() const { return 1 << 20; }
  /// Bytes on disk, after upkeep.
  virtual std::optional<uint64_t> DiskBytes() { return std::nullopt; }
};

/// Room for so many bytes.
class LimitedRoom final : public JobRoom {
 public:
  explicit LimitedRoom(size_t bytes_max) : bytes_max_(bytes_max) {}

  bool Reach(size_t /*jobs*/, size_t bytes) override {
    if (bytes > bytes_max_) return false;
    bytes_ = std::max(bytes_, bytes);
    return true;
  }
  void Lower(size_t /*jobs*/, size_t bytes) override { bytes_ = std::min(bytes_, bytes); }
  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_max_;
  size_t bytes_ = 0;
};

using StoreMaker = std::function<std::unique_ptr<StoreHarness>()>;

class StoreContract : public testing::TestWithParam<StoreMaker> {
 protected:
  static constexpr const char* kTopic = "orders";

  void SetUp() override;
  void TearDown() override;

  Store& store() { return harness_->store(); }
  VirtualClock& clock() { return harness_->clock(); }
  Moment Now() { return clock().Now(); }

  /// Calls a method of the store and waits for its answer.
  template <class T>
  Result<T> Await(const std::function<void(Done<T>)>& call) {
    // Shared, because after a crash in the middle of a call nobody knows when `done` is destroyed.
    auto answer = std::make_shared<std::optional<Result<T>>>();
    call([answer](Result<T> result) {
      TOCSIN_CHECK(!answer->has_value());  // exactly once
      answer->emplace(std::move(result));
    });
    if (!answer->has_value()) harness_->Pump();
    if (!answer->has_value()) return Fail(Code::kInternal, "done did not run");
    return std::move(**answer);
  }

  Topic DefaultSettings() const;
  void Put(const Topic& topic);
  /// Changes the settings of kTopic.
  void Set(const std::function<void(Topic&)>& change);

  /// A job on the slot that the service would give it.
  static NewJob Job(std::string_view id = {}, Millis delay = Millis(0), std::string_view payload = "payload");
  static NewJob JobAt(std::string_view id, Time due);
  static NewJob CountJob(std::string_view id, uint32_t count, Trigger trigger = Trigger::kCount,
                         Millis delay = Millis(0));
  static NewJob Keyed(NewJob job, std::string_view key);
  static NewJob Asking(NewJob job, OnConflict on_conflict);

  std::vector<Submitted> SubmitAll(const std::vector<NewJob>& jobs, std::string_view topic = kTopic);
  Submitted Submit(const NewJob& job, std::string_view topic = kTopic);
  /// Submits and expects kAccepted.
  Submitted Accept(const NewJob& job, std::string_view topic = kTopic);

  /// Advances until there is nothing more to do now. What it found is in `found_`; `ready` adds up.
  void Scan();
  /// Time passes.
  void Pass(Millis by);
  /// After a restart or a crash: what was leased is due again, at once or, where leases outlive it, when they have run
  /// out.
  void LoseLeases();
  /// Scans and claims.
  JobBatch Claim(size_t max = 1000, Millis lease = std::chrono::seconds(30), std::string_view topic = kTopic,
                 JobRoom* room = nullptr);
  /// Claims, and returns the ids in the order of delivery.
  std::vector<std::string> ClaimIds(size_t max = 1000);
  /// The same, and acks them.
  std::vector<std::string> TakeIds(size_t max = 1000);
  /// Claims one job that has to be there.
  JobView ClaimOne(Millis lease = std::chrono::seconds(30));
  /// The same for a consumer with a name.
  JobView ClaimAs(std::string_view holder, Millis lease = std::chrono::seconds(30));

  SettleOutcome Settle(const Settlement& settlement, std::string_view topic = kTopic);
  SettleOutcome Ack(const Token& token) { return Settle({.token = token, .kind = SettleKind::kAck}); }
  SettleOutcome Nack(const Token& token, std::optional<Millis> delay = std::nullopt, std::string_view reason = {});
  SettleOutcome Release(const Token& token) { return Settle({.token = token, .kind = SettleKind::kRelease}); }
  SettleOutcome Extend(const Token& token, Millis lease);
  SettleOutcome Bury(const Token& token, std::string_view reason = {});

  Amended Amend(const Amendment& amendment);
  AmendOutcome Cancel(std::string_view id, std::string_view key = {});
  AmendOutcome Fire(std::string_view id);
  AmendOutcome NewPayload(std::string_view id, std::string_view payload);
  Amended Reschedule(std::string_view id, Millis delay);
  /// A change that needs nothing more than its kind.
  AmendOutcome Change(std::string_view id, AmendKind kind, std::string_view key = {});
  AmendOutcome NewAttempts(std::string_view id, uint32_t max_attempts);

  Counted Count(std::string_view id, std::string_view event, uint32_t by = 1);
  /// The job as Find shows it; uid 0 where it is not stored. Valid until the next call.
  JobView Find(std::string_view id, std::string_view key = {});
  std::optional<State> StateOf(std::string_view id);
  /// Calls visit for every job that the selector names, through pages of `page` jobs. Returns how many were looked at.
  size_t Visit(const Selector& what, size_t page, const std::function<void(const JobView&)>& visit,
               std::string_view topic = kTopic);
  /// Ids of all jobs that the selector names.
  std::multiset<std::string> Select(const Selector& what, size_t page = 1000);
  /// Ids of all jobs in a state, through pages of `page` jobs.
  std::multiset<std::string> List(State state, size_t page = 1000, std::string_view topic = kTopic);
  size_t Sweep(SweepKind kind, size_t limit = 1000);
  TopicFigures Figures(std::string_view topic = kTopic);
  /// Asks again until all steps are counted.
  LoadCounts Load(const LoadSpan& span, std::string_view topic = kTopic);
  /// Scheduled jobs that are in no step: they wait for a count alone, or are due after kLoadLast.
  size_t CountWithoutStep(std::string_view topic);

  /// Jobs of every state, ten seconds apart: store_select.cc has the list. A selector can tell each from the others.
  void FillEveryState();
  /// Times of different stores are the same within a few milliseconds.
  static void ExpectNear(Time shown, Time expected);

  /// Claims and acks until nothing comes any more, moving time on by `step` each time. Every id, as often as it came.
  std::multiset<std::string> Drain(int steps, Millis step);

  std::unique_ptr<StoreHarness> harness_;
  Advanced found_;
  Time filled_{};         // when FillEveryState began, in UTC
  std::string given_id_;  // of its job without an own id
  JobBatch last_;         // owns the bytes of what ClaimOne and Find returned
};

}  // namespace tocsin
