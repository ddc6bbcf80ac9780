// LoadReporter: how many jobs become due in each step of a time, summed over the shards. A store that keeps counts for
// all its topics answers for them as fast as for one. Callers that may see only a part of the topics, and the search
// for the largest topics, walk the topics by name, a few in each step, as TopicReporter does. Every shard does its work
// in turn (Shard::InTurn): no shard is held up.
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

/// The steps that a request asks for. The first begins with the minute of `from`, and the last one holds the moment
/// before `to`.
Result<LoadSpan> LoadSpanOf(const LoadRequest& request, Moment now);

class LoadReporter {
 public:
  explicit LoadReporter(Node& node) : node_(node) {}

  /// kTopicNotFound if the topic is unknown. For a prefix with very many topics the steps are longer than asked for.
  void Report(Shard& origin, LoadRequest request, Done<LoadReport> done);

 private:
  struct Reporting;

  /// Sums over the shards: of a topic, or of all if it is empty.
  void Read(Shard& origin, const std::string& topic, const LoadSpan& span, Done<LoadCounts> done);
  /// Adds up the topics of the prefix.
  void AddTopics(std::shared_ptr<Reporting> reporting);
  /// Finds the largest topics of the prefix.
  void RankTopics(std::shared_ptr<Reporting> reporting);
  void ReadLargest(std::shared_ptr<Reporting> reporting);

  Node& node_;
};

}  // namespace tocsin
