#include "core/alert_watch.h"

#include <algorithm>
#include <utility>

#include <fmt/chrono.h>

#include "base/id.h"

namespace tocsin {
namespace {

uint64_t Figure(const FiguresRow& row, size_t column) { return row.values[column]; }

double Number(uint64_t value) { return static_cast<double>(value); }
double Number(Millis value) { return static_cast<double>(value.count()); }

/// Of a topic's own thresholds and the node's.
template <class T>
T Threshold(const AlertLimits* own, const AlertLimits& of_node, T AlertLimits::* limit) {
  return own != nullptr && own->*limit != T{} ? own->*limit : of_node.*limit;
}

double PercentOf(uint64_t used, uint64_t size) { return size == 0 ? 0 : 100 * Number(used) / Number(size); }

std::string MinuteText(Time minute) {
  return fmt::format("{:%Y-%m-%dT%H:%MZ}", std::chrono::floor<std::chrono::minutes>(minute));
}

int64_t MinuteOf(Time utc) { return std::chrono::floor<std::chrono::minutes>(utc).time_since_epoch().count(); }

}  // namespace

/// A topic over all shards.
struct AlertWatch::Topic {
  explicit Topic(std::span<const FiguresRow* const> rows) : name(rows.front()->topic), first(*rows.front()) {
    static constexpr size_t kReady = ColumnOf("ready");
    static constexpr size_t kScheduled = ColumnOf("scheduled");
    static constexpr size_t kLeased = ColumnOf("leased");
    static constexpr size_t kDead = ColumnOf("dead");
    static constexpr size_t kBytes = ColumnOf("bytes");
    static constexpr size_t kDelivered = ColumnOf("delivered");
    static constexpr size_t kAcked = ColumnOf("acked");
    for (const FiguresRow* row : rows) {
      ready += Figure(*row, kReady);
      scheduled += Figure(*row, kScheduled);
      leased += Figure(*row, kLeased);
      dead += Figure(*row, kDead);
      bytes += Figure(*row, kBytes);
      delivered += Figure(*row, kDelivered);
      acked += Figure(*row, kAcked);
      oldest_age = std::max(oldest_age, row->oldest_age);
      push.failures = std::max(push.failures, row->push.failures);
      push.failed_at = std::max(push.failed_at, row->push.failed_at);
      push.broken_at = std::min(push.broken_at, row->push.broken_at);
    }
  }

  const AlertLimits* own() const { return first.alerts.get(); }
  bool off() const { return own() != nullptr && own()->off; }
  uint64_t stored() const { return scheduled + leased + dead; }

  const std::string& name;
  const FiguresRow& first;  // the settings are the same in all
  uint64_t ready = 0;
  uint64_t scheduled = 0;
  uint64_t leased = 0;
  uint64_t dead = 0;
  uint64_t bytes = 0;
  uint64_t delivered = 0;
  uint64_t acked = 0;
  Millis oldest_age{-1};
  PushTrouble push{};
  FailedJob worst{};  // of those that may still fail, or died just now
};

AlertThresholds ThresholdsOf(const AlertSettings& settings) {
  AlertThresholds all{};
  const auto set = [&all](AlertRuleId rule, double threshold) { all[static_cast<size_t>(rule)] = threshold; };
  set(AlertRuleId::kBacklog, Number(settings.topics.due_jobs));
  set(AlertRuleId::kLate, Number(settings.topics.late));
  set(AlertRuleId::kStalled, Number(settings.topics.stalled));
  set(AlertRuleId::kJobFailures, settings.topics.attempts);
  set(AlertRuleId::kPushFailures, Number(settings.topics.push_failures));
  set(AlertRuleId::kDeadLetters, Number(settings.topics.dead_jobs));
  set(AlertRuleId::kFutureLoad, Number(settings.topics.future_jobs));
  set(AlertRuleId::kNodeSilent, Number(settings.node_silent));
  for (const AlertRuleId rule :
       {AlertRuleId::kTopicNearlyFull, AlertRuleId::kDiskNearlyFull, AlertRuleId::kMemoryNearlyFull}) {
    set(rule, settings.nearly_full_percent);
  }
  return all;
}

std::vector<AlertCondition> AlertWatch::Look(std::vector<const FiguresRow*> rows, const NodeReading& node, Moment now) {
  ++look_;
  candidates_.clear();
  std::vector<AlertCondition> found;
  LookAtNode(node, now, found);
  // Most topics of many have nothing at the moment.
  std::erase_if(rows, [](const FiguresRow* row) {
    return std::ranges::all_of(row->values, [](uint64_t value) { return value == 0; });
  });
  std::ranges::sort(rows, {}, [](const FiguresRow* row) { return std::string_view(row->topic); });
  for (auto at = rows.begin(); at != rows.end();) {
    const auto end = std::find_if(at, rows.end(), [&](const FiguresRow* row) { return row->topic != (*at)->topic; });
    Topic topic({at, end});
    for (; at != end; ++at) {
      const auto take = [&](const FailedJob& failed) {
        // One that is delivered again at the last moment has a lease to fail, and the scan that tells of it may be
        // late.
        if (now.steady < failed.until + settings_.hold && failed.attempts > topic.worst.attempts) topic.worst = failed;
      };
      std::ranges::for_each((*at)->worst.live, take);
      take((*at)->worst.dead);
    }
    LookAt(topic, now, found);
  }
  ForgetGone();
  return found;
}

void AlertWatch::LookAt(const Topic& topic, Moment now, std::vector<AlertCondition>& found) {
  Record* const record = RecordOf(topic, now);
  if (topic.off()) return;
  const auto add = [&](AlertRuleId rule, double value, double threshold, std::string detail = {}) {
    found.push_back({&RuleOf(rule), topic.name, {}, value, threshold, std::move(detail)});
  };
  const auto threshold = [&](auto limit) { return Threshold(topic.own(), settings_.topics, limit); };
  if (const uint64_t most = threshold(&AlertLimits::due_jobs); most > 0 && topic.ready > most) {
    add(AlertRuleId::kBacklog, Number(topic.ready), Number(most));
  }
  const bool paused = topic.first.paused;
  if (const Millis most = threshold(&AlertLimits::late); most > Millis(0) && !paused && topic.oldest_age > most) {
    add(AlertRuleId::kLate, Number(topic.oldest_age), Number(most));
  }
  const Millis most_waiting = threshold(&AlertLimits::stalled);
  if (most_waiting > Millis(0) && record != nullptr && record->waiting_since != Time{}) {
    const Millis waited = now.steady - record->waiting_since;
    if (waited >= most_waiting) add(AlertRuleId::kStalled, Number(waited), Number(most_waiting));
  }
  if (const uint32_t most = threshold(&AlertLimits::attempts); most > 0 && topic.worst.attempts >= most) {
    add(AlertRuleId::kJobFailures, topic.worst.attempts, most, UidText(topic.worst.uid));
  }
  LookAtPushes(topic, now, found);
  if (const uint64_t most = threshold(&AlertLimits::dead_jobs); most > 0 && topic.dead > most) {
    add(AlertRuleId::kDeadLetters, Number(topic.dead), Number(most));
  }
  const double used = std::max(PercentOf(topic.stored(), topic.first.capacity_jobs),
                               PercentOf(topic.bytes, topic.first.capacity_bytes));
  if (settings_.nearly_full_percent > 0 && used >= settings_.nearly_full_percent) {
    add(AlertRuleId::kTopicNearlyFull, used, settings_.nearly_full_percent);
  }
  LookAtFuture(topic, record, now, found);
}

void AlertWatch::LookAtPushes(const Topic& topic, Moment now, std::vector<AlertCondition>& found) const {
  const uint64_t most = Threshold(topic.own(), settings_.topics, &AlertLimits::push_failures);
  if (most == 0) return;
  const bool waits = topic.ready > 0 && !topic.first.paused;
  const bool broken = topic.push.broken_at != kNever && now.steady - topic.push.broken_at >= settings_.hold;
  const bool lately = now.steady - topic.push.failed_at < std::max(settings_.hold, kPushQuiet);
  const bool goes_on = waits || topic.leased > 0 || topic.worst.attempts > 0 || lately;
  const bool fails = topic.push.failures >= most && goes_on;
  if (!fails && !(broken && waits)) return;
  found.push_back({&RuleOf(AlertRuleId::kPushFailures),
                   topic.name,
                   {},
                   Number(topic.push.failures),
                   Number(most),
                   fails ? fmt::format("{} in a row", topic.push.failures) : "its sink cannot be opened"});
}

void AlertWatch::LookAtFuture(const Topic& topic, const Record* record, Moment now,
                              std::vector<AlertCondition>& found) {
  const uint64_t least = Threshold(topic.own(), settings_.topics, &AlertLimits::future_jobs);
  if (least == 0 || record == nullptr || record->minutes < kDrainMinutesMin) return;
  const uint64_t limit = std::max(least, record->best);
  if (topic.scheduled - std::min(topic.scheduled, topic.ready) <= limit) return;
  candidates_.push_back({topic.name, limit});
  const auto known = future_.find(topic.name);
  if (known == future_.end() || !known->second.full) return;
  const FutureMinute& full = *known->second.full;
  if (full.jobs <= limit || full.minute + std::chrono::minutes(1) <= now.utc) return;  // or it has passed
  found.push_back(
      {&RuleOf(AlertRuleId::kFutureLoad), topic.name, {}, Number(full.jobs), Number(limit), MinuteText(full.minute)});
}

AlertWatch::Record* AlertWatch::RecordOf(const Topic& topic, Moment now) {
  auto at = records_.find(topic.name);
  if (at == records_.end()) {
    if (topic.acked == 0 && topic.ready == 0) return nullptr;
    at = records_.emplace(topic.name, Record{}).first;
    at->second.minute = MinuteOf(now.utc);
    at->second.acked_before = topic.acked;  // who knows in how many minutes
    at->second.delivered = topic.delivered;
  }
  Record& record = at->second;
  record.look = look_;
  CountDrain(record, topic.acked, now.utc);
  const bool waits = topic.ready > 0 && !topic.first.paused;
  if (!waits) record.waiting_since = {};
  if (waits && (record.waiting_since == Time{} || topic.delivered != record.delivered)) {
    record.waiting_since = now.steady;
  }
  record.delivered = topic.delivered;
  return &record;
}

void AlertWatch::CountDrain(Record& record, uint64_t acked, Time utc) {
  const int64_t minute = MinuteOf(utc);
  const int64_t passed = minute - record.minute;
  const uint64_t drained = acked - std::min(acked, record.acked_before);
  // If a look came late, or the clock was set, the jobs of several minutes are shared out evenly.
  const uint64_t each = drained / static_cast<uint64_t>(std::max<int64_t>(passed, 1));
  if (passed <= 1) record.best = std::max(record.best, drained);
  if (passed == 0) return;
  if (passed > 1) record.best = std::max(record.best, each);
  if (drained > 0) ++record.minutes;
  record.minute = minute;
  record.acked_before = acked;
}

void AlertWatch::ForgetGone() {
  std::erase_if(records_, [this](const auto& each) {
    const Record& record = each.second;
    return record.look != look_ || (record.acked_before == 0 && record.best == 0 && record.waiting_since == Time{});
  });
  std::erase_if(future_, [this](const auto& each) {
    return !std::ranges::binary_search(candidates_, each.first, {}, &FutureCandidate::topic);
  });
}

void AlertWatch::LookAtNode(const NodeReading& node, Moment now, std::vector<AlertCondition>& found) const {
  const auto add = [&](AlertRuleId rule, double value = 0, double threshold = 0, std::string detail = {}) {
    found.push_back({&RuleOf(rule), {}, {}, value, threshold, std::move(detail)});
  };
  for (const NodeReading::Vanished& each : node.vanished) {
    const Millis silent = now.utc - each.heard;
    if (settings_.node_silent == Millis(0) || silent < settings_.node_silent || silent > kVanishedKept) continue;
    found.push_back(
        {&RuleOf(AlertRuleId::kNodeSilent), {}, each.id, Number(silent), Number(settings_.node_silent), {}});
  }
  if (!node.outage.empty()) add(AlertRuleId::kStoreAway, 0, 0, node.outage);
  if (!node.outbox_outage.empty()) add(AlertRuleId::kOutboxAway, 0, 0, node.outbox_outage);
  if (node.disk_full) add(AlertRuleId::kDiskFull);
  if (settings_.nearly_full_percent == 0) return;
  const double most = settings_.nearly_full_percent;
  const double disk = PercentOf(node.disk_size - std::min(node.disk_size, node.disk_free), node.disk_size);
  if (disk >= most) add(AlertRuleId::kDiskNearlyFull, disk, most);
  const double memory = PercentOf(node.memory_used, node.memory_limit);
  if (memory >= most) add(AlertRuleId::kMemoryNearlyFull, memory, most);
}

std::vector<FutureCandidate> AlertWatch::Candidates(size_t max,
                                                    const std::function<bool(const std::string& topic)>& mine) {
  std::vector<FutureCandidate> some;
  auto at = std::ranges::upper_bound(candidates_, answered_, {}, &FutureCandidate::topic);
  for (; at != candidates_.end() && some.size() < max; ++at) {
    const auto known = future_.find(at->topic);
    if (mine(at->topic)) {
      some.push_back(*at);
      if (known != future_.end()) some.back().clear = known->second.clear;
    } else if (known != future_.end()) {
      future_.erase(known);
    }
  }
  answered_ = at == candidates_.end() ? std::string() : some.back().topic;
  return some;
}

void AlertWatch::SetFuture(const std::string& topic, FutureFinding found) {
  future_.insert_or_assign(topic, std::move(found));
}

}  // namespace tocsin
