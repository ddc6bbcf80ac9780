// AlertBook: the alerts of a node, and how each goes from pending to firing to resolved. The watch (alert_watch.h)
// tells it what is true at the moment; doors list it, and the server posts from it. Alerts live in memory: a restart
// forgets them, and what is still true fires again.
//
//   pending ──true for `hold`──▶ firing ──false for `hold`──▶ resolved ──an hour──▶ forgotten
//      └──false──▶ forgotten
//
// Times that are shown are UTC; what waits follows elapsed time.
//
// Threads: one thread updates and posts. List is for every thread, also for shards: it copies a pointer.
//
// Invariants: at most kAlertsMax alerts are pending or firing, and kOfNodesMax of those places are kept for conditions
// of no topic; what is more is counted. An alert is posted when it fires, again after `repeat`, and when it is
// resolved; until a post succeeds, it is due again. A resolved alert of which the receiver may have heard is kept until
// the receiver knows that it is over, at most kAlertsMax of them; others for an hour, at most kResolvedMax.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/alert_rules.h"

namespace tocsin {

/// A rule's condition that is true at the moment.
struct AlertCondition {
  const AlertRule* rule = nullptr;
  std::string topic;  // empty: of a node
  std::string node;   // that it is about, if it is another one
  double value = 0;
  double threshold = 0;
  std::string detail;  // of the moment, for the summary
};

enum class AlertState : uint8_t { kFiring, kPending, kResolved };  // in the order in which they are listed
inline constexpr std::string_view kAlertStateNames[] = {"firing", "pending", "resolved"};

struct Alert {
  AlertCondition condition;  // as last seen
  AlertState state = AlertState::kPending;
  uint64_t number = 0;  // of this alert; one that fires again later is another one
  Time starts_at{};     // pending: when its condition became true; then when it fired
  Time ends_at{};       // resolved: when
};

/// What tells the alerts of one server or cluster from those of others.
struct AlertOrigin {
  std::string instance;  // the node's name
  std::string cluster;   // of the nodes that share the store; empty: this node is alone

  /// The labels of an alert, sorted by name.
  std::vector<std::pair<std::string_view, std::string>> LabelsOf(const Alert& alert) const;
};

/// As Prometheus computes it from the labels, which are sorted by name: the same labels, the same fingerprint.
std::string FingerprintOf(const std::vector<std::pair<std::string_view, std::string>>& labels);
/// For people.
std::string SummaryOf(const AlertCondition& condition);

/// The node's threshold of each rule, in the order of the rules; 0: it has none, or is switched off.
using AlertThresholds = std::array<double, std::size(kAlertRules)>;

class AlertBook {
 public:
  static constexpr size_t kAlertsMax = 10'000;
  static constexpr size_t kOfNodesMax = 100;
  static constexpr size_t kResolvedMax = 1'000;
  static constexpr Millis kResolvedKept = std::chrono::hours(1);
  /// The others see the same, some seconds later.
  static constexpr Millis kOthersLate = std::chrono::minutes(5);

  explicit AlertBook(AlertOrigin origin = {}, const AlertThresholds& thresholds = {})
      : origin_(std::move(origin)), thresholds_(thresholds) {}

  const AlertOrigin& origin() const { return origin_; }
  /// Of the node; a topic may have another one.
  double ThresholdOf(AlertRuleId rule) const { return thresholds_[static_cast<size_t>(rule)]; }

  /// What is true now, each rule at most once for a topic and a node. `hold` is for rules that hold.
  void Update(const std::vector<AlertCondition>& conditions, Moment now, Millis hold);

  struct Listing {
    std::vector<Alert> alerts;                              // those that fire first, the latest first in each state
    std::array<uint64_t, std::size(kAlertRules)> firing{};  // how many fire, by rule
    uint64_t left_out = 0;                                  // conditions that found no room at the last update
    uint64_t rounds = 0;                                    // updates
  };
  /// As the last update left it; it does not change any more.
  std::shared_ptr<const Listing> List() const;

  /// Up to `max` alerts that are to be posted: what is critical first, news before repetitions, then the oldest. `mine`
  /// says whether this node posts it. What this node said to fire it also says to be over, even if by then another node
  /// should have done so. `repeat` 0: never again.
  std::vector<Alert> ToPost(Time steady, Millis repeat, size_t max,
                            const std::function<bool(const AlertCondition&)>& mine);
  /// The receiver has these.
  void Posted(const std::vector<Alert>& alerts, Time steady);

 private:
  struct Key {
    AlertRuleId rule;
    std::string topic;
    std::string node;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  static Key KeyOf(const Alert& alert) {
    return {alert.condition.rule->id, alert.condition.topic, alert.condition.node};
  }
  struct Entry {
    Alert alert;
    Time changed{};  // steady: when its condition became true, was last true while it fires, or it was resolved
    bool seen = true;
    bool told = false;                         // a post that it fires was begun: the receiver may have it
    AlertState posted = AlertState::kPending;  // as the receiver last heard of it; kPending: not at all
    Time posted_at{};                          // steady

    /// Of a resolved one: the receiver may believe that it fires.
    bool Owed() const { return told && posted != AlertState::kResolved; }
  };
  /// An alert to be posted, and what is posted before it.
  struct Post {
    bool warning = false;  // not critical
    bool again = false;
    uint64_t number = 0;
    Entry* entry = nullptr;
    friend auto operator<=>(const Post&, const Post&) = default;
  };

  void Fire(Entry& entry, Moment now);
  void Resolve(Entry& entry, Moment now);
  void Take(const AlertCondition& condition, Moment now, Millis hold);
  void ForgetOld(Time steady);
  void Publish(Time steady);
  void LogChange(const Alert& alert);

  const AlertOrigin origin_;
  const AlertThresholds thresholds_;
  std::map<Key, Entry> active_;
  std::deque<Entry> resolved_;  // the latest first
  uint64_t numbers_ = 0;
  uint64_t left_out_ = 0;
  uint64_t rounds_ = 0;
  size_t lines_ = 0;  // of the log, in this update
  // Listings that readers may still hold. They are freed here, because a shard must not have to free thousands.
  std::vector<std::shared_ptr<const Listing>> outdated_;

  mutable std::mutex mutex_;  // guards the pointer below, and is held for a copy of it
  std::shared_ptr<const Listing> listed_ = std::make_shared<const Listing>();
};

}  // namespace tocsin
