// How jobs, topics, figures and nodes are shown, the same on every wire. A job's members are a table, which the OpenAPI
// document reads too. No state.
#pragma once

#include <span>
#include <string_view>

#include "api/field.h"
#include "core/cluster.h"
#include "core/service.h"
#include "frontend/shared/value_writer.h"

namespace tocsin::shared {

/// One member of a job as it is shown.
struct JobMember {
  std::string_view name;
  api::FieldKind kind;
  std::string_view doc;
  bool (*there)(const JobView& job) = nullptr;  // null: always
  /// Writes the value; null for the payload, which the writer names itself.
  void (*show)(ValueWriter& out, const JobView& job) = nullptr;
  bool shown = true;       // when a job is looked up or listed
  bool delivered = true;   // when it is delivered
  bool in_leases = false;  // when its lease is listed
  std::span<const std::string_view> choices = {};
};
std::span<const JobMember> JobMembers();

/// A job that was looked up.
void Show(ValueWriter& out, const JobView& job, bool with_payload = true);
/// A job with the delivery token that settles it.
void ShowDelivered(ValueWriter& out, const JobView& job);
/// Who holds a leased job, since when and until when. Without its payload.
void ShowLease(ValueWriter& out, std::string_view topic, const JobView& job);
void Show(ValueWriter& out, const Topic& topic, bool whole_urls = true);
/// Without `whole_urls` a URL ends after its host and port.
void Show(ValueWriter& out, const TopicReport& report, bool whole_urls);
void ShowFigures(ValueWriter& out, const TopicFigures& figures);
void Show(ValueWriter& out, const Lateness& lateness);
void Show(ValueWriter& out, const Probed& probed);
void Show(ValueWriter& out, const ClusterReport& report);
void Show(ValueWriter& out, const TallyReport& tally);
void Show(ValueWriter& out, const OperationReport& report, bool with_payloads);
/// The steps of all topics together. With `by_topic` the largest topics follow, one after the other, then EndSums.
void ShowSums(ValueWriter& out, const LoadReport& report, bool by_topic);
void EndSums(ValueWriter& out, bool by_topic);
void Show(ValueWriter& out, const LoadReport::OfTopic& topic);

void Show(ValueWriter& out, const AlertOrigin& origin, const Alert& alert);
/// With the node's threshold; 0: none.
void Show(ValueWriter& out, const AlertRule& rule, double threshold);
/// At least what an alert takes when it is shown, and a rule.
size_t BytesMax(const Alert& alert);
constexpr size_t kAlertRuleBytes = 512;

/// At least what an operation takes when it is shown, without samples; and a tally.
constexpr size_t kOperationBytes = 2048;
size_t BytesMax(const TallyReport& tally);
/// At least what the jobs take when they are shown or delivered as raw bytes.
size_t BytesMax(const JobBatch& batch);
/// To show all jobs of a large batch would hold up the shard for 20 ms. So they are shown in steps of less than a
/// millisecond: the end of the one that begins with the job `from`.
size_t StepEnd(const JobBatch& batch, size_t from);
/// The same for a topic with its figures.
size_t BytesMax(const Topic& topic);
size_t BytesMax(const LoadReport& report);
constexpr size_t kTopicBytes = 3840;  // of that, without the settings of its delivery

}  // namespace tocsin::shared
