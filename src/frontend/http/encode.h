// Answers of the service -> JSON bodies, written by hand into one string: this is where the server's time goes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/cluster.h"
#include "core/service.h"
#include "model/job.h"

namespace tocsin::http {

/// `own_ids`: for each job its own id, empty where the server gave one.
std::string EncodeSubmitted(std::span<const Submitted> jobs, std::span<const std::string_view> own_ids);
/// At least what EncodeSubmitted makes: room is asked for before the jobs are stored.
size_t SubmittedBytesMax(std::span<const std::string_view> own_ids);
std::string EncodeDelivered(const JobBatch& batch);
std::string EncodeJob(const JobView& job);
std::string EncodePage(const Page& page);
std::string EncodeSettled(std::span<const Token> tokens, std::span<const SettleOutcome> outcomes);
/// At least what EncodeSettled makes.
size_t SettledBytesMax(size_t tokens);
/// `done`: what kDone is called here.
std::string EncodeAmended(const Amended& amended, std::string_view done);
std::string EncodeCounted(const Counted& counted);
std::string EncodeError(const Error& error);

// encode_topic.cc
std::string EncodeTopic(const Topic& topic);
std::string EncodeTopic(const TopicReport& report);
std::string EncodeProbed(const Probed& probed);
/// Those whose name begins with `prefix`.
std::string EncodeTopics(const Report& report, std::string_view prefix);

struct NodeFacts {
  std::string_view version;
  int64_t now_ms = 0;
  int64_t uptime_ms = 0;
  size_t shards = 0;
  size_t connections = 0;
};
std::string EncodeStats(const NodeFacts& node, const Report& report);

// encode_cluster.cc
std::string EncodeCluster(const ClusterReport& report);

}  // namespace tocsin::http
