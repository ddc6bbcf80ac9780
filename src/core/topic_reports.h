// TopicReporter: what the shards say about topics, summed, with their lateness. One topic costs one look in each store.
// All topics are walked by name, a few in each step, and every shard does one step in a turn (Shard::InTurn): however
// many topics and callers there are, no shard is held up. Callers that want the totals share a walk.
//
// Owned by the service. Every method is called on the thread of `origin`, where `done` runs too. The caller keeps
// `origin` from being quiet until then.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/node.h"
#include "core/requests.h"
#include "core/shard.h"

namespace tocsin {

Lateness LatenessOf(const metrics::Histogram::Snapshot& recorded);

class TopicReporter {
 public:
  explicit TopicReporter(Node& node, size_t shards) : node_(node), totals_(shards) {}

  /// kTopicNotFound if no store has it.
  void One(Shard& origin, std::string topic, Done<TopicReport> done);
  /// Those whose names begin with `prefix`. An error of `take` ends the walk, and is the answer.
  void All(Shard& origin, std::string prefix, TakeTopic take, Done<void> done);
  /// Those of `names`, in their order; who was dropped is missing.
  void Some(Shard& origin, std::vector<std::string> names, TakeTopic take, Done<void> done);
  /// Service::NextLeased, in one step.
  void NextLeased(Shard& origin, std::string prefix, std::string after, Done<NextTopics> done);
  void Total(Shard& origin, Done<Totals> done);

 private:
  struct Walk;
  struct Naming;
  struct Adding;
  /// The totals that the callers of one shard wait for.
  struct Waiting {
    std::vector<Done<Totals>> callers;
    bool walking = false;  // for others, who came before
  };

  /// Sums the topics of `names` over the shards, in their order; those that no store has have no name.
  void Read(Shard& origin, std::vector<std::string> names, Done<std::vector<TopicFigures>> done);
  void Next(std::shared_ptr<Walk> walk);
  void NextNames(std::shared_ptr<Naming> naming);
  void StartTotals(Shard& origin);
  /// Answers some of those who shared a walk, and the others in later turns.
  static void AnswerSome(Shard& origin, std::shared_ptr<Adding> adding);

  Node& node_;
  std::vector<Waiting> totals_;  // by shard
};

}  // namespace tocsin
