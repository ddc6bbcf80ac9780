// Lane: a shard writes to the journal through its lane. The lane gathers entries into records, appends a call's records
// as one batch, and holds back the answer of each call until its records may be acknowledged. One sync may acknowledge
// thousands of calls: a turn of the loop answers a few (TurnShare) and posts the rest. The shard's thread owns it; only
// Wake is called by the committer.
//
// Invariant: calls are answered in the order in which they were made.
#pragma once

#include <deque>

#include "base/loop.h"
#include "spi/store.h"
#include "storage/journal/journal.h"

namespace tocsin::journal {

class Lane {
 public:
  using Prologue = std::function<void(std::string&)>;
  using Placed = std::function<void(uint64_t segment)>;

  /// `prologue` writes the lane's first entries in each segment; `placed` is told the segment of each Append.
  Lane(Journal& journal, uint32_t number, Prologue prologue, Placed placed);

  void Bind(Loop& loop) { loop_ = &loop; }

  /// Begins to gather the entries of one call.
  void Begin(Moment now) { now_ = now; }
  /// Where the next entry is written. Entries written after one Out() are in one record: a crash keeps all or none.
  std::string& Out();
  /// Appends the gathered entries.
  void Append();
  /// Appends early, so that no batch outgrows a segment.
  void AppendIfLarge() {
    if (buffer_.size() > batch_max_) Append();
  }

  /// Runs `done` with `value` once everything appended so far may be acknowledged, or with the journal's error.
  template <class T>
  void Reply(Done<T> done, std::type_identity_t<Result<T>> value) {
    if (!journal_.failed() && end_ <= journal_.acknowledged() && waiting_.empty()) return done(std::move(value));
    waiting_.push_back({end_, [done = std::move(done), value = std::move(value)](const Error* error) mutable {
                          if (error != nullptr) value = std::unexpected(*error);
                          done(std::move(value));
                        }});
    if (journal_.failed()) Drain();
  }

  /// Runs the answers whose records may be acknowledged by now: some, and the rest in later turns.
  void Drain();
  /// Runs all of them. For the end, when the loop runs no more.
  void DrainAll();
  /// Called by the committer: makes Drain run on the shard's thread.
  void Wake();

  Journal& journal() { return journal_; }
  bool failed() const { return journal_.failed(); }

 private:
  struct Waiting {
    Lsn end = 0;
    std::move_only_function<void(const Error*)> complete;
  };

  /// Answers until `enough()`. True if there may be more to answer.
  template <class Enough>
  bool Answer(Enough&& enough);

  Journal& journal_;
  const uint32_t number_;
  const Prologue prologue_;
  const Placed placed_;
  const size_t batch_max_;
  Loop* loop_ = nullptr;
  Moment now_;
  std::string buffer_;
  size_t record_ = std::string::npos;  // where the open record begins in buffer_
  Lsn end_ = 0;
  std::deque<Waiting> waiting_;
  bool goes_on_ = false;  // a task that will Drain is in the loop
  std::atomic<bool> waking_ = false;
};

}  // namespace tocsin::journal
