#include "core/figures.h"

#include <utility>

namespace tocsin {
int64_t ConservationDifference(const TopicFigures& figures) {
  const uint64_t in = figures.recovered + figures.accepted;
  const uint64_t out =
      figures.scheduled + figures.leased + figures.dead + figures.acked + figures.cancelled + figures.purged;
  return static_cast<int64_t>(in - out);
}

FiguresBoard::FiguresBoard(size_t shards, metrics::Registry& metrics)
    : shards_(shards), registration_(metrics.AddCollector([this](metrics::Samples& samples) { Collect(samples); })) {}

FiguresParts FiguresBoard::Publish(size_t shard, FiguresParts scan) {
  const std::lock_guard lock(mutex_);
  Published& published = shards_[shard];
  ++published.scans;
  std::erase_if(published.forgotten, [&](const auto& each) { return each.second < published.scans; });
  return std::exchange(published.scan, std::move(scan));
}

void FiguresBoard::Forget(size_t shard, std::string_view topic) {
  const std::lock_guard lock(mutex_);
  shards_[shard].forgotten.insert_or_assign(std::string(topic), shards_[shard].scans + 1);
}

void FiguresBoard::Collect(metrics::Samples& samples) {
  std::vector<Published> shards;
  {
    const std::lock_guard lock(mutex_);
    shards = shards_;
  }
  std::map<std::string_view, TopicFigures> sums;
  for (const Published& shard : shards) {
    for (const auto& part : shard.scan) {
      for (const TopicFigures& figures : *part) {
        if (!shard.forgotten.contains(figures.topic.name)) AddPart(sums[figures.topic.name], figures);
      }
    }
  }
  for (const auto& [name, figures] : sums) {
    const metrics::Labels labels{{"topic", std::string(name)}};
    for (const FigureColumn& column : kFigureColumns) {
      samples.Add(column.kind, column.metric, column.help, labels, static_cast<double>(figures.*column.value));
    }
    samples.Add(metrics::Kind::kGauge, "tocsin_conservation_difference",
                "Jobs that came in minus jobs accounted for: always 0.", labels,
                static_cast<double>(ConservationDifference(figures)));
  }
}

}  // namespace tocsin
