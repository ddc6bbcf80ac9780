// Handover: gives the jobs and the cancels of one page to the service, and waits for the answers. On the mysql thread;
// what it posts runs on the shards' loops, whose answers end the wait.
//
// Invariants: rows of one job are handed over in their order: the next one only after the answer for the one before.
// Rows of one key are too, except that one call may have several of them. If a row has to be tried again later, so have
// all later rows of its topic until Begin, except those of calls that were under way. A call to the service is small
// (kCallJobs, kCallBytes), so it takes a shard a fraction of a millisecond.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/result.h"
#include "core/service.h"
#include "outbox/table.h"

namespace tocsin::outbox {

/// What became of the rows of a page; those that it does not name stay as they are.
struct HandedOver {
  std::vector<RowKey> removed;  // accepted, or there is nothing left to do
  std::vector<Refusal> refused;
  std::vector<Time> accepted;  // when the rows of new jobs were inserted
  size_t duplicates = 0;       // jobs that were stored already
  size_t cancelled = 0;
  size_t cancelled_late = 0;     // leased, done, dead or unknown: nothing was cancelled
  std::optional<Error> trouble;  // the store or the node takes no jobs at the moment
  // By topic: why it takes no jobs at the moment, although others may.
  std::vector<std::pair<std::string, std::string>> full_topics;
};

class Handover {
 public:
  /// The loops are those of the shards; each call goes to the next one.
  Handover(Service& service, std::vector<Loop*> loops, const Rules& rules)
      : service_(service), loops_(std::move(loops)), rules_(rules) {}

  /// From now on rows of all topics are handed over again, also of those that were to be tried again later.
  void Begin() { postponed_.clear(); }
  /// `has_turn` is asked before calls that follow an answer. If it says no, the rest of the page stays as it is: it is
  /// for the node that has the turn now.
  HandedOver Run(const std::shared_ptr<Page>& page, Millis ahead, const std::function<bool()>& has_turn);

 private:
  struct Batch;
  struct Flight;
  class Plan;
  void Send(Batch& batch, const std::shared_ptr<Page>& page, const std::shared_ptr<Flight>& flight);
  void Take(const Batch& batch, HandedOver& done);
  void TakeSubmits(const Batch& batch, HandedOver& done);
  void TakeCancels(const Batch& batch, HandedOver& done);
  /// The call failed for all of the batch, or for one of its rows.
  void Fail(const Batch& batch, const Error& error, HandedOver& done);
  void Postpone(const std::string& topic, const Error& error, HandedOver& done);

  Service& service_;
  const std::vector<Loop*> loops_;
  const Rules& rules_;
  size_t next_loop_ = 0;
  std::set<std::string, std::less<>> postponed_;  // topics, until Begin
};

}  // namespace tocsin::outbox
