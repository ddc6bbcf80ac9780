// What the service takes and answers: requests, their limits, reports. Values.
//
// Requests own their bytes: views in `jobs` and the like point into what `bytes` keeps alive. The last reference may be
// dropped on another shard's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/job.h"
#include "model/topic.h"
#include "spi/sink.h"
#include "spi/store.h"

namespace tocsin {

using Bytes = std::shared_ptr<const void>;

/// Bounds for every topic. The service refuses a request over them with the field and the limit.
struct Limits {
  size_t payload_bytes = 1 << 20;
  size_t headers = kHeadersMax;   // of one job
  size_t header_bytes = 8 << 10;  // of one job, names and values together
  size_t batch = 10'000;          // jobs, tokens or references in one call
  Millis wait_max = kWaitMax;     // of a long poll
  Millis lease_max = kLeaseMax;
  size_t waiters = 100'000;          // long polls parked at once, per shard
  size_t topics = 10'000;            // a submit to an unknown topic creates it, so their number needs a bound
  size_t topics_per_prefix = 1'000;  // the same for the callers of one prefix
};

// `checked` says that the caller has passed every item to Validate (core/validate.h) and that there are no more than
// Limits::batch: the service does not check them again. The RESP door sets it. It merges many commands into one
// request, and a bad command must not fail the others.

struct SubmitRequest {
  std::string topic;
  std::vector<NewJob> jobs;
  Bytes bytes;
  bool checked = false;
  std::string prefix = {};  // of the topics that the caller may use; needed only if the topic is unknown
};

struct ReserveRequest {
  std::string topic;
  size_t max = 1;
  Millis wait{0};
  Millis lease{0};                       // 0: the topic's
  std::shared_ptr<ClaimRoom> room = {};  // for the jobs, until the answer; null: there is room for any
};

struct SettleRequest {
  std::string topic;
  std::vector<Settlement> settlements;
  Bytes bytes;
  bool checked = false;
};

struct AmendRequest {
  std::string topic;
  std::vector<Amendment> amendments;
  Bytes bytes;
  bool checked = false;
};

struct CountRequest {
  std::string topic;
  std::vector<CountEvent> events;
  Bytes bytes;
  bool checked = false;
};

struct FindRequest {
  std::string topic;
  std::vector<JobRef> jobs;
  Bytes bytes;
};

struct ListRequest {
  std::string topic;
  State state = State::kScheduled;
  std::string cursor;  // of the page before: printable, otherwise opaque
  size_t limit = 100;
};

enum class IfUnknown : uint8_t { kCreate, kRefuse };

struct ChangeTopicRequest {
  std::string topic;
  TopicChange change;
  IfUnknown if_unknown = IfUnknown::kCreate;  // otherwise kTopicNotFound
  std::string prefix = {};                    // of the topics that the caller may use
};

struct ChangedTopic {
  Topic topic;
  bool created = false;
};

/// How late deliveries were since the start, in seconds.
struct Lateness {
  uint64_t count = 0;
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

struct TopicReport {
  TopicFigures figures;
  Lateness lateness;
};

/// Takes the topics of a list one after the other, by name, each summed over the shards. An error ends the list.
using TakeTopic = std::move_only_function<Status(TopicReport)>;

/// All topics together.
struct Totals {
  size_t topics = 0;
  TopicFigures figures;  // of no topic
  Lateness lateness;
};

/// The result of a job that was sent to try a topic's sink.
struct Probed {
  Delivered delivered;
  Millis took{0};
};

/// What the answer to a reserve hands out.
struct Leases {
  std::string topic;
  std::vector<Token> tokens;
};
/// Of the jobs that a reserve got.
Leases LeasesOf(std::string topic, const JobBatch& jobs);

/// Names a parked reserve, so that a front end can cancel it when its client has gone.
struct ReserveId {
  uint32_t shard = 0;
  uint64_t number = 0;
};

}  // namespace tocsin
