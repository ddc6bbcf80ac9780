#include "core/figures.h"

#include <algorithm>
#include <span>
#include <utility>

namespace tocsin {
namespace {

using Rows = std::span<const FiguresRow* const>;

/// A figure that only some topics have. The others get no series: with many topics that would be a wall of zeros.
struct RareColumn {
  metrics::Table::Column column;
  double (*value)(const FiguresRow& row);  // below or at 0: it has none
};
constexpr RareColumn kRareColumns[] = {
    {{metrics::Kind::kGauge, "tocsin_jobs_oldest_due_seconds", "How long the first ready job has been due."},
     [](const FiguresRow& row) { return static_cast<double>(row.oldest_age.count()) / 1000; }},
    {{metrics::Kind::kGauge, "tocsin_topic_capacity_jobs", "The topic's capacity_jobs, if it has one."},
     [](const FiguresRow& row) { return static_cast<double>(row.capacity_jobs); }},
    {{metrics::Kind::kGauge, "tocsin_topic_capacity_bytes", "The topic's capacity_bytes, if it has one."},
     [](const FiguresRow& row) { return static_cast<double>(row.capacity_bytes); }},
    {{metrics::Kind::kGauge, "tocsin_topic_paused", "1 while the topic is paused."},
     [](const FiguresRow& row) { return row.paused ? 1.0 : 0.0; }},
};

/// `rows` are sorted by topic; the shards of a topic say the same, except for the age, of which the largest counts.
void AddRare(metrics::Samples& samples, Rows rows, const RareColumn& rare) {
  metrics::Table table{.label = "topic", .columns = {rare.column}};
  for (const FiguresRow* row : rows) {
    const double value = rare.value(*row);
    if (value <= 0) continue;
    if (!table.rows.empty() && table.rows.back() == row->topic) {
      table.values.back() = std::max(table.values.back(), value);
    } else {
      table.rows.push_back(row->topic);
      table.values.push_back(value);
    }
  }
  samples.Add(std::move(table));
}

}  // namespace

int64_t ConservationDifference(const TopicFigures& figures) {
  const uint64_t in = figures.recovered + figures.accepted;
  const uint64_t out =
      figures.scheduled + figures.leased + figures.dead + figures.acked + figures.cancelled + figures.purged;
  return static_cast<int64_t>(in - out);
}

FiguresRow RowOf(const TopicFigures& figures, Time now) {
  FiguresRow row{.topic = figures.topic.name,
                 .capacity_jobs = figures.topic.capacity_jobs,
                 .capacity_bytes = figures.topic.capacity_bytes,
                 .worst = figures.worst,
                 .paused = figures.topic.paused};
  if (figures.topic.alerts != AlertLimits{}) row.alerts = std::make_shared<const AlertLimits>(figures.topic.alerts);
  if (figures.oldest_due != kNever) row.oldest_age = std::max(now - figures.oldest_due, Millis(0));
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

FiguresBoard::Rows FiguresBoard::Latest() const {
  std::vector<Published> shards;
  {
    const std::lock_guard lock(mutex_);
    shards = shards_;
  }
  Rows latest;
  for (Published& shard : shards) {
    for (const auto& part : shard.scan) {
      for (const FiguresRow& row : *part) {
        if (!shard.forgotten.contains(row.topic)) latest.rows_.push_back(&row);
      }
    }
    latest.scans_.push_back(std::move(shard.scan));
  }
  if (!std::ranges::is_sorted(latest.rows_, {}, &FiguresRow::topic)) {
    std::ranges::sort(latest.rows_, {}, &FiguresRow::topic);
  }
  return latest;
}

bool FiguresBoard::complete() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(shards_, [](const Published& shard) { return shard.scans > 0; });
}

FiguresSnapshot FiguresBoard::Snapshot() const {
  const Rows latest = Latest();
  size_t topics = 0;
  size_t bytes = 0;
  std::string_view last;
  for (const FiguresRow* const row : latest.rows()) {
    if (topics > 0 && row->topic == last) continue;
    last = row->topic;
    ++topics;
    bytes += last.size();
  }
  const auto names = std::make_shared<std::string>();
  names->reserve(bytes);  // so that it does not move
  FiguresSnapshot snapshot{.names = names, .rows = {}};
  snapshot.rows.reserve(topics);
  for (const FiguresRow* const row : latest.rows()) {
    if (snapshot.rows.empty() || snapshot.rows.back().topic != row->topic) {
      const size_t at = names->size();
      *names += row->topic;
      snapshot.rows.push_back({std::string_view(*names).substr(at)});
    }
    FiguresSnapshot::Row& sum = snapshot.rows.back();
    for (size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += row->values[i];
    sum.oldest_age = std::max(sum.oldest_age, row->oldest_age);
    sum.paused |= row->paused;
  }
  return snapshot;
}

void FiguresBoard::Collect(metrics::Samples& samples) {
  const Rows latest = Latest();
  const std::vector<const FiguresRow*>& rows = latest.rows();
  metrics::Table table{.label = "topic"};
  for (const FigureColumn& column : kFigureColumns) {
    table.columns.push_back({column.kind, column.metric, column.help});
  }
  table.columns.push_back(
      {metrics::Kind::kGauge, "tocsin_jobs_future", "Scheduled jobs that are not due yet, or wait for events."});
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
    table.values.push_back(static_cast<double>(sum.scheduled - std::min(sum.scheduled, sum.ready)));
    table.values.push_back(static_cast<double>(ConservationDifference(sum)));
  }
  samples.Add(std::move(table));
  for (const RareColumn& rare : kRareColumns) AddRare(samples, rows, rare);
}

}  // namespace tocsin
