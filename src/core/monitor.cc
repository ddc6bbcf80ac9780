#include "core/monitor.h"

#include <algorithm>
#include <utility>

#include "core/shard.h"
#include "core/topic_reports.h"

namespace tocsin {
namespace {

using Row = FiguresSnapshot::Row;

constexpr size_t kRankingsMax = 64;         // that wait for the worker
constexpr size_t kTracked = 32;             // of the busiest topics
constexpr std::chrono::minutes kForget{1};  // a topic that was wanted since then does not give way to a busy one

constexpr std::array<size_t, kRateNames.size()> kRateColumns = [] {
  std::array<size_t, kRateNames.size()> columns{};
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = ColumnOf(kRateNames[i]);
  return columns;
}();
constexpr std::array<size_t, kGaugeNames.size()> kGaugeColumns = [] {
  std::array<size_t, kGaugeNames.size()> columns{};
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = ColumnOf(kGaugeNames[i]);
  return columns;
}();

double SecondsBetween(IoTime from, IoTime to) { return std::chrono::duration<double>(to - from).count(); }

/// A counter that has fallen began again: the topic was dropped and made again.
FigureValues AddedSince(const Row* before, const Row& now) {
  FigureValues added{};
  for (size_t i = 0; i < added.size(); ++i) {
    if (kFigureColumns[i].kind != metrics::Kind::kCounter) continue;
    const uint64_t from = before == nullptr || before->values[i] > now.values[i] ? 0 : before->values[i];
    added[i] = now.values[i] - from;
  }
  return added;
}

uint64_t Busyness(const FigureValues& added) {
  uint64_t sum = 0;
  for (const size_t column : kRateColumns) sum += added[column];
  return sum;
}

/// Calls `visit(row, before)` for each topic of `now`; `before` is null if the topic is new.
template <class Visit>
void Compare(const FiguresSnapshot& before, const FiguresSnapshot& now, Visit visit) {
  auto old = before.rows.begin();
  for (const Row& row : now.rows) {
    while (old != before.rows.end() && old->topic < row.topic) ++old;
    visit(row, old != before.rows.end() && old->topic == row.topic ? &*old : nullptr);
  }
}

Activity SumOf(const FiguresSnapshot& before, const FiguresSnapshot& now) {
  Activity sum;
  Compare(before, now, [&](const Row& row, const Row* old) {
    const FigureValues added = AddedSince(old, row);
    for (size_t i = 0; i < added.size(); ++i) {
      sum.values[i] += row.values[i];
      sum.added[i] += added[i];
    }
    sum.oldest_age = std::max(sum.oldest_age, row.oldest_age);
  });
  return sum;
}

HistoryPoint PointOf(Time at, double seconds, const Activity& activity, const metrics::Histogram::Snapshot& lateness) {
  HistoryPoint point{.at = at, .oldest_age_ms = activity.oldest_age.count()};
  for (size_t i = 0; i < point.rates.size(); ++i) {
    point.rates[i] = static_cast<float>(static_cast<double>(activity.added[kRateColumns[i]]) / seconds);
  }
  for (size_t i = 0; i < point.gauges.size(); ++i) point.gauges[i] = activity.values[kGaugeColumns[i]];
  if (lateness.count == 0) return point;
  point.p50_ms = static_cast<float>(lateness.Quantile(0.5) * 1e3);
  point.p99_ms = static_cast<float>(lateness.Quantile(0.99) * 1e3);
  return point;
}

void Push(std::deque<HistoryPoint>& points, const HistoryPoint& point) {
  points.push_back(point);
  if (points.size() > Monitor::kPoints) points.pop_front();
}

}  // namespace

void Monitor::Tick() {
  if (looking_) return;
  Look look{.wanted = node_.events.WantedFigures()};
  const IoTime now = node_.clock.IoNow();
  look.step = now >= next_step_;
  if (!look.step && !look.wanted.figures && !look.wanted.topics) return;
  if (look.step) next_step_ = now + kStep;
  looking_ = true;
  Shard& home = *node_.shards[0];
  home.OpenCall();  // it is not quiet before the worker has finished
  const auto shared = std::make_shared<Look>(std::move(look));
  worker_.Run(
      home.loop(), [this, shared] { Run(*shared); },
      [this, &home, shared](const Status&) {
        looking_ = false;
        {
          const std::lock_guard lock(mutex_);
          for (const std::string& topic : shared->busiest) {
            const TopicEntry* const entry = home.topics().Find(topic);
            if (entry != nullptr) Add(topic, entry->lateness, node_.clock.IoNow(), false);
          }
        }
        home.CloseCall();
      });
}

void Monitor::Run(Look& look) {
  const bool listened = look.wanted.figures || look.wanted.topics;
  const auto now = std::make_shared<const Baseline>(Baseline{.at = node_.clock.IoNow(),
                                                             .utc = node_.clock.Now().utc,
                                                             .figures = node_.board.Snapshot(),
                                                             .lateness = node_.lateness.Read()});
  if (listened) Tell(look, told_ ? *told_ : *now, *now);
  told_ = listened ? now : nullptr;
  // While a virtual clock stands, nothing has a new place in the history: the next step takes it all.
  if (!look.step || (kept_ && kept_->utc == now->utc)) return;
  if (kept_) Keep(look, *kept_, *now);
  kept_ = now;
}

void Monitor::Tell(const Look& look, const Baseline& before, const Baseline& now) {
  const double seconds = SecondsBetween(before.at, now.at);
  if (look.wanted.figures) {
    node_.events.Publish(EventKind::kFigures, {},
                         FiguresEvent{.seconds = seconds,
                                      .topics = now.figures.rows.size(),
                                      .activity = SumOf(before.figures, now.figures),
                                      .lateness = LatenessOf(now.lateness.Since(before.lateness))});
  }
  if (look.wanted.topics) TellOfTopics(look.wanted, seconds, before, now);
}

void Monitor::TellOfTopics(const EventHub::Wanted& wanted, double seconds, const Baseline& before,
                           const Baseline& now) {
  struct Changed {
    const Row* row;
    FigureValues added;
    uint64_t busyness;
    bool shown = false;
    uint32_t place = 0;  // in the event
  };
  std::vector<Changed> changed;  // by name
  Compare(before.figures, now.figures, [&](const Row& row, const Row* old) {
    const bool same =
        old != nullptr && old->values == row.values && old->paused == row.paused && old->oldest_age == row.oldest_age;
    if (same) return;
    const FigureValues added = AddedSince(old, row);
    changed.push_back({&row, added, Busyness(added)});
  });
  const auto name_of = [](const Changed& each) { return each.row->topic; };
  auto from = changed.begin();
  for (const std::string& name : wanted.names) {
    from = std::ranges::lower_bound(from, changed.end(), name, {}, name_of);
    if (from != changed.end() && from->row->topic == name) from->shown = true;
  }
  TopicsEvent event{.seconds = seconds};
  std::vector<std::pair<TopicsEvent::Busiest*, std::vector<Changed*>>> busiest;
  for (const std::string& prefix : wanted.prefixes) {
    std::vector<Changed*> those;
    for (auto at = std::ranges::lower_bound(changed, prefix, {}, name_of);
         at != changed.end() && at->row->topic.starts_with(prefix); ++at) {
      those.push_back(&*at);
    }
    if (those.empty()) continue;
    TopicsEvent::Busiest& part = event.busiest[prefix];
    part.changed = those.size();
    const size_t count = std::min(wanted.Busiest(), those.size());
    std::ranges::partial_sort(those, those.begin() + static_cast<ptrdiff_t>(count), [](const auto* a, const auto* b) {
      return a->busyness != b->busyness ? a->busyness > b->busyness : a->row->topic < b->row->topic;
    });
    those.resize(count);
    for (Changed* const each : those) each->shown = true;
    busiest.emplace_back(&part, std::move(those));
  }
  for (Changed& each : changed) {
    if (!each.shown) continue;
    each.place = static_cast<uint32_t>(event.topics.size());
    event.topics.push_back(
        {std::string(each.row->topic), each.row->paused, {each.row->values, each.added, each.row->oldest_age}});
  }
  for (auto& [part, those] : busiest) {
    for (const Changed* const each : those) part->places.push_back(each->place);
  }
  if (!event.topics.empty()) node_.events.Publish(EventKind::kTopic, {}, std::move(event));
}

void Monitor::Keep(Look& look, const Baseline& before, const Baseline& now) {
  const double seconds = SecondsBetween(before.at, now.at);
  std::map<std::string, std::shared_ptr<metrics::Histogram>, std::less<>> tracked;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [topic, track] : tracks_) tracked.emplace(topic, track.histogram);
  }
  // Without the lock, for which shards wait.
  struct Step {
    const Row* row;
    FigureValues added;
    metrics::Histogram::Snapshot lateness;
  };
  const HistoryPoint of_node =
      PointOf(now.utc, seconds, SumOf(before.figures, now.figures), now.lateness.Since(before.lateness));
  std::vector<std::pair<uint64_t, std::string_view>> busy;
  std::map<std::string_view, Step> steps;
  Compare(before.figures, now.figures, [&](const Row& row, const Row* old) {
    const FigureValues added = AddedSince(old, row);
    if (const uint64_t busyness = Busyness(added); busyness > 0) busy.emplace_back(busyness, row.topic);
    const auto at = tracked.find(row.topic);
    if (at != tracked.end()) steps.emplace(row.topic, Step{&row, added, at->second->Read()});
  });
  const size_t count = std::min(kTracked, busy.size());
  std::ranges::partial_sort(busy, busy.begin() + static_cast<ptrdiff_t>(count), std::greater());
  for (size_t i = 0; i < count; ++i) look.busiest.emplace_back(busy[i].second);

  const std::lock_guard lock(mutex_);
  Push(points_, of_node);
  for (auto at = tracks_.begin(); at != tracks_.end();) {
    Track& track = at->second;
    const auto step = steps.find(at->first);
    // A topic without figures was dropped, unless it is so new that it has none yet.
    if (step == steps.end() && (!track.points.empty() || track.wanted_at <= now.at - kForget)) {
      at = tracks_.erase(at);
      continue;
    }
    const auto known = tracked.find(at->first);
    if (step != steps.end() && known != tracked.end() && known->second == track.histogram) {
      const auto& [row, added, lateness] = step->second;
      const Activity activity{row->values, added, row->oldest_age};
      Push(track.points, PointOf(now.utc, seconds, activity, lateness.Since(std::exchange(track.before, lateness))));
    }
    ++at;
  }
}

void Monitor::Add(const std::string& topic, std::shared_ptr<metrics::Histogram> histogram, IoTime now, bool asked) {
  const auto known = tracks_.find(topic);
  if (known != tracks_.end() && known->second.histogram == histogram) {
    known->second.wanted_at = now;
    return;
  }
  if (known != tracks_.end()) tracks_.erase(known);  // dropped and made again
  if (tracks_.size() >= kTopicsMax) {
    const auto last = std::ranges::min_element(tracks_, {}, [](const auto& each) { return each.second.wanted_at; });
    if (!asked && last->second.wanted_at > now - kForget) return;
    tracks_.erase(last);
  }
  auto before = histogram->Read();
  tracks_.emplace(topic, Track{.histogram = std::move(histogram), .before = before, .wanted_at = now});
}

HistoryReport Monitor::OfNode() const {
  const std::lock_guard lock(mutex_);
  return {kStep, {points_.begin(), points_.end()}};
}

HistoryReport Monitor::OfTopic(const std::string& topic, std::shared_ptr<metrics::Histogram> lateness) {
  const std::lock_guard lock(mutex_);
  Add(topic, std::move(lateness), node_.clock.IoNow(), true);
  const auto& points = tracks_.find(topic)->second.points;
  return {kStep, {points.begin(), points.end()}};
}

Monitor::Ranked Monitor::RankNow(const FiguresBoard& board, const TopicsPageRequest& request) {
  const FiguresSnapshot snapshot = board.Snapshot();
  const bool by_age = request.sort == TopicSort::kLateness;
  const size_t column =
      by_age || request.sort == TopicSort::kName ? 0 : ColumnOf(kTopicSortNames[static_cast<size_t>(request.sort)]);
  const auto value = [&](const Row* row) {
    return by_age ? row->oldest_age.count() : static_cast<int64_t>(row->values[column]);
  };
  const auto before = [&](const Row* a, const Row* b) {
    if (value(a) != value(b)) return request.descending ? value(a) > value(b) : value(a) < value(b);
    return a->topic < b->topic;
  };
  std::vector<const Row*> rows;
  for (const Row& row : snapshot.rows) {
    if (row.topic.starts_with(request.prefix) && row.topic.contains(request.filter)) rows.push_back(&row);
  }
  const size_t end = std::min(rows.size(), request.offset + request.limit);
  std::ranges::partial_sort(rows, rows.begin() + static_cast<ptrdiff_t>(end), before);
  Ranked ranked{.total = rows.size()};
  for (size_t i = request.offset; i < end; ++i) ranked.names.emplace_back(rows[i]->topic);
  return ranked;
}

void Monitor::Rank(Loop& loop, TopicsPageRequest request, Done<Ranked> done) {
  const auto ranked = std::make_shared<Ranked>();
  auto work = [this, ranked, request = std::move(request)] { *ranked = RankNow(node_.board, request); };
  worker_.Run(
      loop, std::move(work),
      [ranked, done = std::move(done)](const Status& status) mutable {
        status ? done(std::move(*ranked)) : done(std::unexpected(status.error()));
      },
      kRankingsMax);
}

}  // namespace tocsin
