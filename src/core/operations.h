// Operations: actions on all jobs that a selector names. An operation walks through the topic's jobs page by page,
// changes those that match with Service::Amend, and counts what became of each. It goes on when its caller has gone;
// who wants to know asks for its report. A restart ends and forgets it: what it has changed stays changed.
//
// It holds up nobody: pages are steps in the shards' turns (Shard::InTurn), and one batch of changes is under way at a
// time. The number of operations that run at once is bounded, and so is the number of reports that are kept.
//
// An id is a mark of this run of the server and a number, such as "k3f7p-12". Other nodes, and this one after a
// restart, have other marks: no id ever names another operation than the one that it was given to.
//
// Owned by the service. All methods are called on the thread of `home`, where `done` runs too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/node.h"
#include "core/requests.h"
#include "core/shard.h"

namespace tocsin {

class Service;

class Operations {
 public:
  Operations(Service& service, Node& node, Shard& home);

  /// Asks somewhere whether anybody waits for a dry run, and tells it on the thread of `home`.
  using AskWanted = std::function<void(std::move_only_function<void(bool)> tell)>;
  /// Answers when the operation has begun; a dry run when it has counted, or when nobody waits for it any more (`ask`,
  /// which may be empty). `ended`, if given, runs when it is over.
  void Start(OperateRequest request, uint64_t jobs, AskWanted ask, Done<OperationReport> done,
             std::move_only_function<void(const OperationReport&)> ended);
  /// kNotFound if the topic has no such operation, or its report is no longer kept.
  Result<OperationReport> Show(std::string_view topic, std::string_view id) const;
  /// Newest first.
  std::vector<OperationReport> List(std::string_view topic) const;
  /// Ends it after the batch that is under way. Ok if it is over already.
  Status Stop(std::string_view topic, std::string_view id);

 private:
  struct Operation;
  using OperationPtr = std::shared_ptr<Operation>;

  /// Null if there is none, or it is of another topic.
  OperationPtr Find(std::string_view topic, std::string_view id) const;
  /// Goes on to the next page, if that is wanted.
  void GoOn(const OperationPtr& operation);
  /// A full mailbox has refused `step`: does it again a little later, but not for ever.
  void TryAgain(const OperationPtr& operation, std::move_only_function<void()> step);
  /// Reads the next page.
  void Look(const OperationPtr& operation);
  void Looked(const OperationPtr& operation, Page page);
  /// Changes some of the jobs that were found.
  void Act(const OperationPtr& operation);
  void Acted(const OperationPtr& operation, const std::vector<Amended>& outcomes);
  /// It has changed as many jobs as it may: fails if another one matches.
  void LookAtOneMore(const OperationPtr& operation);
  void SetRunning(size_t running);
  /// To those who listen: at its beginning and its end, and once a second in between.
  void Tell(Operation& operation);
  void End(const OperationPtr& operation, OperationState state, std::string error = {});

  Service& service_;
  Node& node_;
  Shard& home_;
  const std::string mark_;                       // of the ids, with its dash
  std::map<uint64_t, OperationPtr> operations_;  // by number: those that run, and the last that are over
  size_t running_ = 0;
  std::shared_ptr<metrics::Gauge> gauge_;  // the same, once there was one
  uint64_t last_number_ = 0;
};

}  // namespace tocsin
