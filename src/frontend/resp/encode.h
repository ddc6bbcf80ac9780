// Answers with an outcome for each job of a batch -> RESP. Appends by the caller's Writer; no state. What shows a whole
// job, topic or node is in frontend/shared/views.h.
#pragma once

#include <span>
#include <string_view>

#include "core/service.h"
#include "frontend/resp/writer.h"

namespace tocsin::resp {

/// One command's jobs: [id, outcome, due_ms] or, with `many`, an array of ids. What is not stored is an error in its
/// place.
void WriteSubmitted(Writer& writer, std::span<const Submitted> jobs, std::string_view own_id, bool many);
void WriteSettled(Writer& writer, std::span<const SettleOutcome> outcomes);
void WriteAmended(Writer& writer, const Amended& amended, AmendKind kind);
void WriteCounted(Writer& writer, const Counted& counted);
/// One step, from the job `next` on: moves that. True when all are written.
bool WriteDelivered(Writer& writer, const JobBatch& batch, size_t& next);

}  // namespace tocsin::resp
