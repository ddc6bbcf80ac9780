#include "core/figures.h"

#include <map>
#include <string_view>
#include <utility>

namespace tocsin {
namespace {

struct Column {
  std::string_view name;
  std::string_view help;
  metrics::Kind kind;
  uint64_t TopicFigures::* value;
};

constexpr Column kColumns[] = {
    {"tocsin_jobs_pending", "Jobs that are scheduled, with those that are ready.", metrics::Kind::kGauge,
     &TopicFigures::scheduled},
    {"tocsin_jobs_ready", "Jobs that are due and wait for a consumer.", metrics::Kind::kGauge, &TopicFigures::ready},
    {"tocsin_jobs_leased", "Jobs that consumers hold.", metrics::Kind::kGauge, &TopicFigures::leased},
    {"tocsin_jobs_dead", "Dead letters.", metrics::Kind::kGauge, &TopicFigures::dead},
    {"tocsin_jobs_bytes", "Bytes of ids, keys, headers and payloads of the jobs that are stored.",
     metrics::Kind::kGauge, &TopicFigures::bytes},
    {"tocsin_jobs_recovered_total", "Jobs that were stored already at the start.", metrics::Kind::kCounter,
     &TopicFigures::recovered},
    {"tocsin_jobs_accepted_total", "Jobs accepted since the start.", metrics::Kind::kCounter, &TopicFigures::accepted},
    {"tocsin_jobs_delivered_total", "Deliveries since the start.", metrics::Kind::kCounter, &TopicFigures::delivered},
    {"tocsin_jobs_acked_total", "Deliveries that were acknowledged.", metrics::Kind::kCounter, &TopicFigures::acked},
    {"tocsin_jobs_nacked_total", "Deliveries that were refused.", metrics::Kind::kCounter, &TopicFigures::nacked},
    {"tocsin_jobs_expired_total", "Deliveries whose lease ran out.", metrics::Kind::kCounter, &TopicFigures::expired},
    {"tocsin_jobs_cancelled_total", "Jobs that were cancelled or replaced.", metrics::Kind::kCounter,
     &TopicFigures::cancelled},
    {"tocsin_jobs_redriven_total", "Dead letters that were scheduled again.", metrics::Kind::kCounter,
     &TopicFigures::redriven},
    {"tocsin_jobs_purged_total", "Jobs that were removed by a purge.", metrics::Kind::kCounter, &TopicFigures::purged},
    {"tocsin_jobs_dead_total", "Jobs that used up their attempts, or were refused for good.", metrics::Kind::kCounter,
     &TopicFigures::died},
};

}  // namespace

void Add(TopicFigures& sum, const TopicFigures& part) {
  for (const FigureColumn& column : kFigureColumns) sum.*column.value += part.*column.value;
}

std::vector<TopicFigures> Sum(const std::vector<std::shared_ptr<const ShardFigures>>& shards) {
  std::map<std::string_view, TopicFigures> sums;
  for (const auto& shard : shards) {
    if (shard == nullptr) continue;
    for (const TopicFigures& part : *shard) {
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
    : shards_(shards), registration_(metrics.AddCollector([this](metrics::Sink& sink) { Collect(sink); })) {}

void FiguresBoard::Publish(size_t shard, std::shared_ptr<const ShardFigures> figures) {
  const std::lock_guard lock(mutex_);
  shards_[shard].swap(figures);  // the old ones are freed after the lock
}

void FiguresBoard::Collect(metrics::Sink& sink) {
  std::vector<std::shared_ptr<const ShardFigures>> shards;
  {
    const std::lock_guard lock(mutex_);
    shards = shards_;
  }
  for (const TopicFigures& figures : Sum(shards)) {
    const metrics::Labels labels{{"topic", figures.topic.name}};
    for (const Column& column : kColumns) {
      sink.Sample(column.kind, column.name, column.help, labels, static_cast<double>(figures.*column.value));
    }
    sink.Sample(metrics::Kind::kGauge, "tocsin_conservation_difference",
                "Jobs that came in minus jobs accounted for: always 0.", labels,
                static_cast<double>(ConservationDifference(figures)));
  }
}

}  // namespace tocsin
