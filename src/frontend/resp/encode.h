// Answers of the service -> RESP. Appends by the caller's Writer; no state. Names are those of every wire
// (model/names.h).
#pragma once

#include <span>
#include <string_view>

#include "core/cluster.h"
#include "core/service.h"
#include "frontend/resp/writer.h"

namespace tocsin::resp {

/// One command's jobs: [id, outcome, due_ms] or, with `many`, an array of ids. What is not stored is an error in its
/// place.
void WriteSubmitted(Writer& writer, std::span<const Submitted> jobs, std::string_view own_id, bool many);
void WriteSettled(Writer& writer, std::span<const SettleOutcome> outcomes);
void WriteAmended(Writer& writer, const Amended& amended, AmendKind kind);
void WriteCounted(Writer& writer, const Counted& counted);
void WriteDelivered(Writer& writer, const JobBatch& batch);
/// At least what WriteDelivered makes of it, or WriteJob of all its jobs.
size_t DeliveredBytesMax(const JobBatch& batch);
/// As JOB.GET and JOB.LIST show a job.
void WriteJob(Writer& writer, const JobView& job);
void WriteTopic(Writer& writer, const Topic& topic);
void WriteTopic(Writer& writer, const TopicReport& report);
void WriteProbed(Writer& writer, const Probed& probed);
/// At least what WriteTopic makes of it, with its figures.
size_t TopicBytesMax(const Topic& topic);

// encode_cluster.cc
void WriteCluster(Writer& writer, const ClusterReport& report);

}  // namespace tocsin::resp
