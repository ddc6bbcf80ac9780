// AlertRules: what the server watches. One table of plain values; the evaluation (alert_watch.h), the list of alerts,
// the posts, the metrics and docs/operations.md follow it. A rule for Prometheus (deploy/prometheus/rules.yml) of the
// same name has the same condition, with the defaults of the options; docs/operations.md says which rules those are.
//
// To add a rule: an enumerator and its row here, what it watches in alert_watch.cc, a line of the table in
// docs/operations.md. If a topic has a threshold of its own: a member of AlertLimits (model/topic.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "base/time.h"

namespace tocsin {

enum class AlertRuleId : uint8_t {
  kBacklog,
  kLate,
  kStalled,
  kJobFailures,
  kPushFailures,
  kDeadLetters,
  kFutureLoad,
  kTopicNearlyFull,
  kNodeSilent,
  kStoreAway,
  kOutboxAway,
  kDiskFull,
  kDiskNearlyFull,
  kMemoryNearlyFull,
};

/// Whose condition it is, and so which nodes post it if several share the store.
enum class AlertScope : uint8_t {
  kTopic,    // a topic's: all nodes see the same, and one of them posts
  kSearch,   // a topic's: it takes a search, so only the node that posts looks for it
  kPart,     // a topic's, of which each node sees a part: each posts its own
  kCluster,  // of all nodes: one of them posts
  kNode,     // this node's own
};

enum class AlertUnit : uint8_t { kJobs, kAttempts, kMillis, kPercent, kNone };
inline constexpr std::string_view kAlertUnitNames[] = {"jobs", "attempts", "ms", "percent", ""};

struct AlertRule {
  AlertRuleId id;
  std::string_view name;
  std::string_view alertname;  // the label, as in the rules for Prometheus
  std::string_view severity;
  AlertScope scope;
  AlertUnit unit;            // of its value and its threshold
  bool holds;                // it waits for alerts.hold
  std::string_view option;   // of the node, with the threshold; empty: it has none
  std::string_view setting;  // of the topic, the same
  std::string_view summary;  // {topic}, {node}, {value}, {threshold} and {detail} stand for those of the alert
};

inline constexpr AlertRule kAlertRules[] = {
    {AlertRuleId::kBacklog, "backlog", "TocsinBacklog", "warning", AlertScope::kTopic, AlertUnit::kJobs, true,
     "alerts.due_jobs", "alert_due_jobs",
     "{value} due jobs of topic {topic} wait, more than {threshold}: too few consumers, or a paused topic"},
    {AlertRuleId::kLate, "late", "TocsinLate", "warning", AlertScope::kPart, AlertUnit::kMillis, true, "alerts.late",
     "alert_late_ms", "the first due job of topic {topic} has waited for {value}, longer than {threshold}"},
    {AlertRuleId::kStalled, "stalled", "TocsinStalled", "warning", AlertScope::kTopic, AlertUnit::kMillis, false,
     "alerts.stalled", "alert_stalled_ms", "due jobs of topic {topic} wait, and nobody has taken any for {value}"},
    {AlertRuleId::kJobFailures, "job_failures", "TocsinJobFailures", "warning", AlertScope::kPart, AlertUnit::kAttempts,
     false, "alerts.attempts", "alert_attempts", "failed attempts of job {detail} of topic {topic}: {value}"},
    {AlertRuleId::kPushFailures, "push_failures", "TocsinPushFailsInARow", "warning", AlertScope::kPart,
     AlertUnit::kAttempts, false, "alerts.push_failures", "alert_push_failures",
     "pushes of topic {topic} fail: {detail}"},
    {AlertRuleId::kDeadLetters, "dead_letters", "TocsinDeadLetters", "warning", AlertScope::kTopic, AlertUnit::kJobs,
     false, "alerts.dead_jobs", "alert_dead_jobs",
     "topic {topic} has {value} dead letters, more than {threshold}: tocsin dead list {topic}"},
    {AlertRuleId::kFutureLoad, "future_load", "TocsinFutureLoad", "warning", AlertScope::kSearch, AlertUnit::kJobs,
     false, "alerts.future_jobs", "alert_future_jobs",
     "{value} jobs of topic {topic} become due in the minute {detail}; the most that it ever drained in a minute is "
     "{threshold}"},
    {AlertRuleId::kTopicNearlyFull, "topic_nearly_full", "TocsinTopicNearlyFull", "warning", AlertScope::kTopic,
     AlertUnit::kPercent, true, "alerts.nearly_full", "", "topic {topic} is at {value} of its capacity"},
    {AlertRuleId::kNodeSilent, "node_silent", "TocsinNodeSilent", "critical", AlertScope::kCluster, AlertUnit::kMillis,
     false, "alerts.node_silent", "", "node {node} has vanished: it was last heard of {value} ago"},
    {AlertRuleId::kStoreAway, "store_away", "TocsinStoreAway", "critical", AlertScope::kNode, AlertUnit::kNone, true,
     "", "", "this node cannot look for due jobs: {detail}"},
    {AlertRuleId::kOutboxAway, "outbox_away", "TocsinOutboxAway", "critical", AlertScope::kNode, AlertUnit::kNone, true,
     "", "", "this node cannot pick up the rows of the outbox: {detail}"},
    {AlertRuleId::kDiskFull, "disk_full", "TocsinDiskFull", "critical", AlertScope::kNode, AlertUnit::kNone, false, "",
     "", "the disk is full, or no file can be opened: this node accepts no jobs"},
    {AlertRuleId::kDiskNearlyFull, "disk_nearly_full", "TocsinDiskNearlyFull", "warning", AlertScope::kNode,
     AlertUnit::kPercent, true, "alerts.nearly_full", "", "{value} of the disk of the data folder are used"},
    {AlertRuleId::kMemoryNearlyFull, "memory_nearly_full", "TocsinMemory", "warning", AlertScope::kNode,
     AlertUnit::kPercent, true, "alerts.nearly_full", "", "stored jobs take {value} of what memory_limit leaves them"},
};

consteval bool AlertRulesAreInOrder() {
  for (size_t i = 0; i < std::size(kAlertRules); ++i) {
    if (static_cast<size_t>(kAlertRules[i].id) != i) return false;
  }
  return std::size(kAlertRules) == static_cast<size_t>(AlertRuleId::kMemoryNearlyFull) + 1;
}
static_assert(AlertRulesAreInOrder(), "one row for each rule, in the order of the enum");

constexpr const AlertRule& RuleOf(AlertRuleId id) { return kAlertRules[static_cast<size_t>(id)]; }

}  // namespace tocsin
