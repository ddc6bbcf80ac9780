#include "core/figures.h"

#include <algorithm>
#include <utility>

namespace tocsin {
int64_t ConservationDifference(const TopicFigures& figures) {
  const uint64_t in = figures.recovered + figures.accepted;
  const uint64_t out =
      figures.scheduled + figures.leased + figures.dead + figures.acked + figures.cancelled + figures.purged;
  return static_cast<int64_t>(in - out);
}

FiguresRow RowOf(const TopicFigures& figures) {
  FiguresRow row{.topic = figures.topic.name};
  for (size_t i = 0; i < row.values.size(); ++i) row.values[i] = figures.*kFigureColumns[i].value;
  return row;
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
  std::vector<const FiguresRow*> rows;
  for (const Published& shard : shards) {
    for (const auto& part : shard.scan) {
      for (const FiguresRow& row : *part) {
        if (!shard.forgotten.contains(row.topic)) rows.push_back(&row);
      }
    }
  }
  std::ranges::sort(rows, {}, &FiguresRow::topic);
  metrics::Table table{.label = "topic"};
  for (const FigureColumn& column : kFigureColumns) {
    table.columns.push_back({column.kind, column.metric, column.help});
  }
  table.columns.push_back({metrics::Kind::kGauge, "tocsin_conservation_difference",
                           "Jobs that came in minus jobs accounted for: always 0."});
  for (auto at = rows.begin(); at != rows.end();) {
    TopicFigures sum;
    const std::string& topic = (*at)->topic;
    for (; at != rows.end() && (*at)->topic == topic; ++at) {
      for (size_t i = 0; i < (*at)->values.size(); ++i) sum.*kFigureColumns[i].value += (*at)->values[i];
    }
    table.rows.push_back(topic);
    for (const FigureColumn& column : kFigureColumns) {
      table.values.push_back(static_cast<double>(sum.*column.value));
    }
    table.values.push_back(static_cast<double>(ConservationDifference(sum)));
  }
  samples.Add(std::move(table));
}

}  // namespace tocsin
