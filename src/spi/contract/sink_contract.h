// The contract of Sink as a test suite. A sink passes it by giving a SinkWorld with a real receiver and
//
//   INSTANTIATE_TEST_SUITE_P(Webhook, SinkContract, testing::Values(SinkWorldMaker{[] { return ...; }}));
//
// and linking the library sink_contract. Everything runs on the test's own thread, which also runs the loop (RunUntil);
// the sink is called only from tasks of the loop. Nothing sleeps: a test waits for an answer, with a deadline, or until
// the time is over in which none may come.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/loop.h"
#include "base/result.h"
#include "spi/sink.h"

namespace tocsin {

/// A job that the suite hands over. A world may change key, headers and payload before it is sent.
struct ContractJob {
  Uid uid = 0;
  std::string own_id;
  std::string key;
  uint32_t attempt = 1;
  Time due{};
  Token token;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string payload;

  std::string Id() const { return own_id.empty() ? UidText(uid) : own_id; }
};

/// A job as the receiver got it.
struct ReceivedJob {
  std::string topic;
  std::string id;
  std::string key;  // empty if it came without one
  uint32_t attempt = 0;
  int64_t due_ms = 0;
  std::string token;
  std::map<std::string, std::string> headers;  // the job's own by their own names, tocsin-probe among them
  std::string payload;

  friend bool operator==(const ReceivedJob&, const ReceivedJob&) = default;
};
void PrintTo(const ReceivedJob& job, std::ostream* out);

/// A receiver that runs and has got nothing yet, and the loop of the sink, for one test. Its destructor stops the
/// receiver, or leaves it as the next world needs it.
class SinkWorld {
 public:
  virtual ~SinkWorld() = default;

  virtual Loop& loop() = 0;
  /// Runs the loop on this thread until `holds()`, which is called after each turn and at least every 20 ms. Whether it
  /// held in time.
  virtual bool RunUntil(const std::function<bool()>& holds, Millis within) = 0;

  /// A topic that this sink can serve, with its delivery; every call gives the same one. The suite sets timeout_ms, and
  /// keeps no more jobs under way than in_flight says.
  virtual Topic MakeTopic() = 0;
  /// The same for a receiver that gets jobs of one key in order; nothing if there is none.
  virtual std::optional<Topic> MakeOrderedTopic() { return MakeTopic(); }
  /// A task of the loop. The loop is that of loop().
  virtual Result<std::unique_ptr<Sink>> Open(const Topic& topic) = 0;

  /// Ends the process at once; what it has confirmed stays in Received.
  virtual void KillReceiver() = 0;
  /// At the same address, after KillReceiver; returns when it accepts connections.
  virtual Status StartReceiver() = 0;
  /// It may accept connections and bytes, but answers nothing until ResumeReceiver.
  virtual void HangReceiver() = 0;
  virtual void ResumeReceiver() = 0;
  /// Everything that the receiver got, in its order: at least what it has confirmed. It runs.
  virtual Result<std::vector<ReceivedJob>> Received() = 0;

  /// Changes the job, or tells the receiver about its id, so that it is refused for good. False: never refuses.
  virtual bool MakeRefused(ContractJob& /*job*/) { return false; }
  /// The same for a receiver that asks for a delay with its refusal.
  virtual bool MakePostponed(ContractJob& /*job*/, Millis /*delay*/) { return false; }

  /// Short, but long enough for a healthy receiver to confirm a few jobs in.
  virtual Millis short_timeout() const { return Millis(1'000); }
  virtual size_t payload_max() const { return 1 << 20; }
  /// Texts that no reason may hold.
  virtual std::vector<std::string> secrets() const { return {}; }
};

/// kUnavailable: a program that it needs is not installed, and the tests are skipped.
using SinkWorldMaker = std::function<Result<std::unique_ptr<SinkWorld>>()>;

class SinkContract : public testing::TestWithParam<SinkWorldMaker> {
 protected:
  /// Longer than anything takes on a busy machine, also the start of a receiver.
  static constexpr Millis kSoon{60'000};
  /// How much later than its time-out a sink may answer on a busy machine.
  static constexpr Millis kGrace{10'000};
  static constexpr Millis kLongTimeout{60'000};

  /// What became of one job.
  struct Sent {
    ContractJob job;
    size_t answers = 0;
    Delivered delivered;
  };

  void SetUp() override;
  void TearDown() override;

  void Open(Millis timeout) { Open(world_->MakeTopic(), timeout); }
  void Open(Topic topic, Millis timeout);
  /// With an id, delivery token and due time of its own; its payload must not be in any reason.
  ContractJob MakeJob();
  std::vector<ContractJob> MakeJobs(size_t count);
  /// Hands them over as one batch. What becomes of them is in sent(), in the order of all calls.
  void Deliver(std::vector<ContractJob> jobs);
  /// Batches of at most `batch`, never more than in_flight under way.
  void DeliverAll(std::vector<ContractJob> jobs, size_t batch);

  bool Answered() const { return under_way_ == 0; }
  /// Runs until all are answered. Fails the test if they are not in time.
  void AwaitAnswers(Millis within);
  /// One job, until it is answered.
  const Sent& DeliverOne(Millis within);
  /// Delivers one job after another until one is confirmed.
  void AwaitHealth();
  /// Closes the sink, until it is done, and destroys it; nothing may follow.
  void Close(Millis within);
  void RunFor(Millis time);

  size_t CountOf(DeliverOutcome outcome) const;
  /// Batches that somebody still holds.
  size_t BatchesHeld() const;
  std::vector<ReceivedJob> Received();
  ReceivedJob Expected(const ContractJob& job) const;
  /// What was confirmed has arrived, whole; nothing has arrived that was not sent.
  void ExpectConfirmedArrived();

  const std::deque<Sent>& sent() const { return sent_; }
  size_t in_flight() const { return static_cast<size_t>(topic_.delivery.Number("in_flight")); }

  std::unique_ptr<SinkWorld> world_;
  Topic topic_;

 private:
  void OnAnswer(size_t number, Delivered delivered);
  /// Runs `work` as a task of the loop, until it has run.
  void OnLoop(const std::function<void()>& work);

  std::unique_ptr<Sink> sink_;
  std::deque<Sent> sent_;
  std::vector<std::weak_ptr<const JobBatch>> batches_;
  size_t under_way_ = 0;
  bool closed_ = false;
  uint64_t made_ = 0;
};

}  // namespace tocsin
