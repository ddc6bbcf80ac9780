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
  bool shown = true;      // when a job is looked up or listed
  bool delivered = true;  // when it is delivered
  std::span<const std::string_view> choices = {};
};
std::span<const JobMember> JobMembers();

/// A job that was looked up.
void Show(ValueWriter& out, const JobView& job);
/// A job with the delivery token that settles it.
void ShowDelivered(ValueWriter& out, const JobView& job);
void Show(ValueWriter& out, const Topic& topic);
void Show(ValueWriter& out, const TopicReport& report);
void ShowFigures(ValueWriter& out, const TopicFigures& figures);
void Show(ValueWriter& out, const Lateness& lateness);
void Show(ValueWriter& out, const Probed& probed);
void Show(ValueWriter& out, const ClusterReport& report);

/// At least what the jobs take when they are shown or delivered as raw bytes.
size_t BytesMax(const JobBatch& batch);
/// The same for a topic with its figures.
size_t BytesMax(const Topic& topic);

}  // namespace tocsin::shared
