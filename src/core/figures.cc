#include "core/figures.h"

#include <map>
#include <string_view>
#include <utility>

namespace tocsin {
std::vector<TopicFigures> Sum(const std::vector<std::shared_ptr<const ShardFigures>>& shards, std::string_view only) {
  std::map<std::string_view, TopicFigures> sums;
  for (const auto& shard : shards) {
    if (shard == nullptr) continue;
    for (const TopicFigures& part : *shard) {
      if (!only.empty() && part.topic.name != only) continue;
      TopicFigures& sum = sums[part.topic.name];
      if (sum.topic.name.empty() || part.topic.version > sum.topic.version) sum.topic = part.topic;
      Add(sum, part);
    }
  }
  std::vector<TopicFigures> out;
  out.reserve(sums.size());
  for (auto& [name, sum] : sums) out.push_back(std::move(sum));
  return out;
}

int64_t ConservationDifference(const TopicFigures& figures) {
  const uint64_t in = figures.recovered + figures.accepted;
  const uint64_t out =
      figures.scheduled + figures.leased + figures.dead + figures.acked + figures.cancelled + figures.purged;
  return static_cast<int64_t>(in - out);
}

FiguresBoard::FiguresBoard(size_t shards, metrics::Registry& metrics)
    : shards_(shards), registration_(metrics.AddCollector([this](metrics::Samples& samples) { Collect(samples); })) {}

void FiguresBoard::Publish(size_t shard, std::shared_ptr<const ShardFigures> figures) {
  const std::lock_guard lock(mutex_);
  shards_[shard].swap(figures);  // the old ones are freed after the lock
}

void FiguresBoard::Collect(metrics::Samples& samples) {
  std::vector<std::shared_ptr<const ShardFigures>> shards;
  {
    const std::lock_guard lock(mutex_);
    shards = shards_;
  }
  for (const TopicFigures& figures : Sum(shards)) {
    const metrics::Labels labels{{"topic", figures.topic.name}};
    for (const FigureColumn& column : kFigureColumns) {
      samples.Add(column.kind, column.metric, column.help, labels, static_cast<double>(figures.*column.value));
    }
    samples.Add(metrics::Kind::kGauge, "tocsin_conservation_difference",
                "Jobs that came in minus jobs accounted for: always 0.", labels,
                static_cast<double>(ConservationDifference(figures)));
  }
}

}  // namespace tocsin
