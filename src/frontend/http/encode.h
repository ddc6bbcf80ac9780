// Answers with an outcome for each job of a batch -> JSON bodies. What shows a whole job, topic or node is in
// frontend/shared/views.h.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/service.h"
#include "frontend/http/json_writer.h"
#include "model/job.h"

namespace tocsin::http {

/// `own_ids`: for each job its own id, empty if the server gave one.
std::string EncodeSubmitted(std::span<const Submitted> jobs, std::span<const std::string_view> own_ids);
/// At least what EncodeSubmitted makes: room is asked for before the jobs are stored.
size_t SubmittedBytesMax(std::span<const std::string_view> own_ids);
/// One step of the answer to a reserve, from the job `next` on: moves that. True when the answer is whole.
bool EncodeDelivered(JsonWriter& out, const JobBatch& batch, size_t& next);
std::string EncodeSettled(std::span<const Token> tokens, std::span<const SettleOutcome> outcomes);
/// At least what EncodeSettled makes.
size_t SettledBytesMax(size_t tokens);
/// `done`: what kDone is called here.
std::string EncodeAmended(const Amended& amended, std::string_view done);
std::string EncodeCounted(const Counted& counted);
std::string EncodeError(const Error& error);

struct NodeFacts {
  std::string_view version;
  int64_t now_ms = 0;
  int64_t uptime_ms = 0;
  size_t shards = 0;
  size_t connections = 0;
};
std::string EncodeStats(const NodeFacts& node, const Totals& totals);

/// The OpenAPI 3.1 document of the API: paths, bodies and most schemas come from the tables of verbs, settings, figures
/// and a job's members; what those do not say is in openapi.json beside this file.
const std::string& OpenApiDocument();
/// openapi.json, made a part of the program by CMake.
std::string_view OpenApiBase();

}  // namespace tocsin::http
