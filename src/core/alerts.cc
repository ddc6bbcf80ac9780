#include "core/alerts.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <tuple>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/log_event.h"

namespace tocsin {
namespace {

constexpr size_t kLogLinesMax = 100;  // of one update
constexpr std::string_view kCritical = "critical";

std::string ShowSpan(Millis span) {
  if (span < std::chrono::minutes(2)) return fmt::format("{:.1f} s", static_cast<double>(span.count()) / 1000);
  if (span < std::chrono::hours(2)) return fmt::format("{} min", span / std::chrono::minutes(1));
  return fmt::format("{} h", span / std::chrono::hours(1));
}

std::string ShowValue(AlertUnit unit, double value) {
  switch (unit) {
    case AlertUnit::kJobs:
    case AlertUnit::kAttempts:
      return fmt::format("{:.0f}", value);
    case AlertUnit::kMillis:
      return ShowSpan(Millis(static_cast<int64_t>(value)));
    case AlertUnit::kPercent:
      return fmt::format("{:.1f} %", value);
    case AlertUnit::kNone:
      break;
  }
  return {};
}

}  // namespace

std::vector<std::pair<std::string_view, std::string>> AlertOrigin::LabelsOf(const Alert& alert) const {
  const AlertCondition& condition = alert.condition;
  const AlertRule& rule = *condition.rule;
  // What all nodes see has the same labels on all of them, so receivers take two posts of it for one alert.
  const bool of_all = !cluster.empty() && rule.scope != AlertScope::kPart && rule.scope != AlertScope::kNode;
  std::vector<std::pair<std::string_view, std::string>> labels;
  labels.emplace_back("alertname", rule.alertname);
  if (!cluster.empty()) labels.emplace_back("cluster", cluster);
  if (!of_all) labels.emplace_back("instance", instance);
  if (!condition.node.empty()) labels.emplace_back("node", condition.node);
  labels.emplace_back("severity", rule.severity);
  if (!condition.topic.empty()) labels.emplace_back("topic", condition.topic);
  return labels;
}

std::string FingerprintOf(const std::vector<std::pair<std::string_view, std::string>>& labels) {
  uint64_t hash = 14'695'981'039'346'656'037ULL;  // FNV-1a
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1'099'511'628'211ULL;
    hash = (hash ^ 255) * 1'099'511'628'211ULL;
  };
  for (const auto& [name, value] : labels) {
    add(name);
    add(value);
  }
  return fmt::format("{:016x}", hash);
}

std::string SummaryOf(const AlertCondition& condition) {
  const AlertRule& rule = *condition.rule;
  const std::pair<std::string_view, std::string> words[] = {
      {"{topic}", condition.topic},
      {"{node}", condition.node},
      {"{value}", ShowValue(rule.unit, condition.value)},
      {"{threshold}", ShowValue(rule.unit, condition.threshold)},
      {"{detail}", condition.detail},
  };
  std::string text;
  for (std::string_view rest = rule.summary; !rest.empty();) {
    const size_t open = std::min(rest.find('{'), rest.size());
    text += rest.substr(0, open);
    rest.remove_prefix(open);
    const auto* const word =
        std::ranges::find_if(words, [&](const auto& each) { return rest.starts_with(each.first); });
    const bool known = word != std::end(words);
    text += known ? std::string_view(word->second) : rest.substr(0, 1);
    rest.remove_prefix(std::min(rest.size(), known ? word->first.size() : 1));
  }
  return text;
}

void AlertBook::LogChange(const Alert& alert) {
  if (++lines_ > kLogLinesMax) return;
  const AlertCondition& condition = alert.condition;
  const bool firing = alert.state == AlertState::kFiring;
  const std::string summary = SummaryOf(condition);
  std::vector<LogField> fields{{"state", kAlertStateNames[static_cast<size_t>(alert.state)]},
                               {"rule", condition.rule->name}};
  if (!condition.topic.empty()) fields.push_back({"topic", condition.topic});
  if (!condition.node.empty()) fields.push_back({"node", condition.node});
  if (firing) fields.push_back({"summary", summary});
  if (!firing) fields.push_back({"lasted_ms", int64_t{(alert.ends_at - alert.starts_at).count()}});
  LogEvent(firing ? LogLevel::kWarn : LogLevel::kInfo, "alert", fields);
}

void AlertBook::Fire(Entry& entry, Moment now) {
  entry.alert.state = AlertState::kFiring;
  entry.alert.starts_at = now.utc;
  entry.changed = now.steady;
  LogChange(entry.alert);
}

void AlertBook::Resolve(Entry& entry, Moment now) {
  entry.alert.state = AlertState::kResolved;
  entry.alert.ends_at = std::max(now.utc, entry.alert.starts_at);
  entry.changed = now.steady;
  LogChange(entry.alert);
  resolved_.push_front(std::move(entry));
}

void AlertBook::Take(const AlertCondition& condition, Moment now, Millis hold) {
  Key key{condition.rule->id, condition.topic, condition.node};
  auto at = active_.find(key);
  if (at == active_.end()) {
    if (active_.size() >= kAlertsMax - (condition.topic.empty() ? 0 : kOfNodesMax)) {
      ++left_out_;
      return;
    }
    at = active_.emplace(std::move(key), Entry{}).first;
    at->second.alert.number = ++numbers_;
    at->second.alert.starts_at = now.utc;
    at->second.changed = now.steady;
  }
  Entry& entry = at->second;
  entry.seen = true;
  entry.alert.condition = condition;
  const Millis wait = condition.rule->holds ? hold : Millis(0);
  if (entry.alert.state == AlertState::kPending && now.steady - entry.changed >= wait) Fire(entry, now);
  if (entry.alert.state == AlertState::kFiring) entry.changed = now.steady;  // it was true until now
}

void AlertBook::Update(const std::vector<AlertCondition>& conditions, Moment now, Millis hold) {
  ++rounds_;
  left_out_ = 0;
  lines_ = 0;
  for (auto& [key, entry] : active_) entry.seen = false;
  for (const AlertCondition& condition : conditions) Take(condition, now, hold);
  for (auto at = active_.begin(); at != active_.end();) {
    Entry& entry = at->second;
    const Millis wait = entry.alert.condition.rule->holds ? hold : Millis(0);
    const bool lasts = entry.alert.state == AlertState::kFiring && now.steady - entry.changed < wait;
    if (entry.seen || lasts) {
      ++at;
      continue;
    }
    if (entry.alert.state == AlertState::kFiring) Resolve(entry, now);
    at = active_.erase(at);
  }
  if (lines_ > kLogLinesMax) {
    LogWarn("{} more alerts began or ended at once", lines_ - kLogLinesMax);
  }
  ForgetOld(now.steady);
  Publish(now.steady);
}

void AlertBook::ForgetOld(Time steady) {
  size_t owed = 0;
  size_t others = 0;
  std::erase_if(resolved_, [&](const Entry& entry) {
    if (entry.Owed()) return ++owed > kAlertsMax;
    return steady - entry.changed >= kResolvedKept || ++others > kResolvedMax;
  });
}

void AlertBook::Publish(Time steady) {
  auto listing = std::make_shared<Listing>();
  listing->left_out = left_out_;
  listing->rounds = rounds_;
  std::vector<Alert>& alerts = listing->alerts;
  alerts.reserve(active_.size() + std::min(resolved_.size(), kResolvedMax));
  for (const auto& [key, entry] : active_) {
    alerts.push_back(entry.alert);
    if (entry.alert.state == AlertState::kFiring) ++listing->firing[static_cast<size_t>(key.rule)];
  }
  std::ranges::sort(alerts, {}, [](const Alert& alert) {
    return std::tuple(alert.state, -alert.starts_at.time_since_epoch().count(), alert.number);
  });
  const size_t most = alerts.size() + kResolvedMax;
  for (const Entry& entry : resolved_) {
    if (alerts.size() == most || steady - entry.changed >= kResolvedKept) break;
    alerts.push_back(entry.alert);
  }
  std::erase_if(outdated_, [](const auto& old) { return old.use_count() == 1; });
  const std::lock_guard lock(mutex_);
  outdated_.push_back(std::exchange(listed_, std::move(listing)));
}

std::shared_ptr<const AlertBook::Listing> AlertBook::List() const {
  const std::lock_guard lock(mutex_);
  return listed_;
}

std::vector<Alert> AlertBook::ToPost(Time steady, Millis repeat, size_t max,
                                     const std::function<bool(const AlertCondition&)>& mine) {
  std::vector<Post> posts;
  const auto add = [&](Entry& entry, bool again) {
    posts.push_back({entry.alert.condition.rule->severity != kCritical, again, entry.alert.number, &entry});
  };
  for (auto& [key, entry] : active_) {
    if (entry.alert.state != AlertState::kFiring || !mine(entry.alert.condition)) continue;
    const bool news = entry.posted != AlertState::kFiring;
    if (news || (repeat > Millis(0) && steady - entry.posted_at >= repeat)) add(entry, !news);
  }
  for (Entry& entry : resolved_) {
    if (entry.posted == AlertState::kResolved) continue;
    const AlertCondition& condition = entry.alert.condition;
    const bool by_others = condition.rule->scope == AlertScope::kSearch || active_.contains(KeyOf(entry.alert));
    const bool waited = entry.told && !by_others && steady - entry.changed >= kOthersLate;
    if (waited || mine(condition)) add(entry, false);
  }
  const size_t count = std::min(max, posts.size());
  std::ranges::partial_sort(posts, posts.begin() + static_cast<ptrdiff_t>(count));
  std::vector<Alert> due;
  for (const Post& post : std::span(posts).first(count)) {
    if (post.entry->alert.state == AlertState::kFiring) post.entry->told = true;
    due.push_back(post.entry->alert);
  }
  return due;
}

void AlertBook::Posted(const std::vector<Alert>& alerts, Time steady) {
  std::map<uint64_t, AlertState> rest;  // resolved meanwhile, or before
  for (const Alert& alert : alerts) {
    const auto at = active_.find(KeyOf(alert));
    if (at == active_.end() || at->second.alert.number != alert.number) {
      rest.emplace(alert.number, alert.state);
      continue;
    }
    at->second.posted = alert.state;
    at->second.posted_at = steady;
  }
  for (Entry& entry : resolved_) {
    if (const auto at = rest.find(entry.alert.number); at != rest.end()) entry.posted = at->second;
  }
}

}  // namespace tocsin
