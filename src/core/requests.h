// What the service takes and answers: requests, their limits, reports. Values.
//
// Requests own their bytes: views in `jobs` and the like point into what `bytes` keeps alive. The last reference may be
// dropped on another shard's thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/job.h"
#include "model/names.h"
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
  size_t event_streams = 100;
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
  Millis lease{0};                     // 0: the topic's
  std::string consumer = {};           // who takes the jobs; up to kHolderBytesMax
  std::shared_ptr<JobRoom> room = {};  // for the jobs, until the answer; null: there is room for any
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

// The room of these two belongs to whoever takes the answer, and lives as long. Without it there is room for anything.
// If there is none for the first job, the answer is kOverloaded.

struct FindRequest {
  std::string topic;
  std::vector<JobRef> jobs;
  Bytes bytes;
  JobRoom* room = nullptr;  // for one job only: several may be on several shards, and one thread at a time may use it
  bool checked = false;
};

/// Asked on the caller's thread while a walk goes on: false when nobody waits for the answer any more, so that the walk
/// ends. Empty: somebody does.
using WantedStill = std::function<bool()>;

struct ListRequest {
  std::string topic;
  Selector what;
  std::string cursor;  // of the page before: printable, otherwise opaque
  size_t limit = 100;
  JobRoom* room = nullptr;        // a page ends where there is no more
  Sort sort = Sort::kNone;        // by time, then by server id; each page then looks at all jobs
  size_t looked_max = 1'000'000;  // of an unsorted list: a page ends after so many jobs, whatever it has found
  WantedStill wanted = {};
};

struct TallyRequest {
  std::string topic;
  Selector what;
  TallyBy by = TallyBy::kNothing;
  std::string header;       // its name, for kHeader
  JobRoom* room = nullptr;  // for the jobs that are looked at, and the groups
  WantedStill wanted = {};
};

/// Of a group: what is longer counts by its beginning.
constexpr size_t kTallyValueMax = 256;

struct TallyReport {
  uint64_t looked = 0;                                   // at so many jobs
  uint64_t total = 0;                                    // of which so many match
  std::vector<std::pair<std::string, uint64_t>> groups;  // the largest, largest first; minutes by time
  uint64_t others = 0;                                   // jobs of the groups that are not listed
};

struct OperateRequest {
  std::string topic;
  Selector what;
  JobAction action = JobAction::kCancel;
  bool all = false;      // needed if the selector is empty
  bool dry_run = false;  // only counts
  // kReschedule: to `to`, or evenly from there over `window`; or by `shift`, which may be negative.
  std::optional<Time> to;
  std::optional<Millis> window;
  std::optional<Millis> shift;
  uint32_t max_attempts = 0;                 // kAttempts
  std::optional<uint32_t> rate;              // jobs a second; without it as fast as it goes
  std::optional<uint64_t> matched_max = {};  // it changes no more, and fails if another job matches
  WantedStill wanted = {};                   // of a dry run
};

enum class OperationState : uint8_t { kRunning, kDone, kStopped, kFailed };
constexpr std::string_view NameOf(OperationState state) {
  constexpr std::string_view kNames[] = {"running", "done", "stopped", "failed"};
  return kNames[static_cast<size_t>(state)];
}

struct OperationReport {
  std::string id;  // empty: a dry run
  std::string topic;
  JobAction action = JobAction::kCancel;
  OperationState state = OperationState::kRunning;
  uint64_t looked = 0;
  uint64_t of = 0;  // jobs that the topic had at the start
  uint64_t matched = 0;
  std::vector<std::pair<std::string_view, uint64_t>> outcomes;  // how many jobs had which
  Time started{};
  Time ended{};                             // Time{} while it runs
  std::string error;                        // why it failed
  std::shared_ptr<const JobBatch> samples;  // of a dry run: the first jobs that it found
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
  Millis oldest_age{-1};  // how long the first ready job has been due; below 0: none, or not known
};

/// Takes the topics of a list one after the other, by name, each summed over the shards. An error ends the list.
using TakeTopic = std::move_only_function<Status(TopicReport)>;

/// All topics together.
struct Totals {
  size_t topics = 0;
  TopicFigures figures;  // of no topic
  Lateness lateness;
};

/// Of the next topics by name, those that have leased jobs.
struct NextTopics {
  std::vector<std::string> names;
  std::string last = {};  // that was looked at; empty: no more topics follow
};

/// In the order of kTopicSortNames.
enum class TopicSort : uint8_t { kName, kReady, kScheduled, kLeased, kDead, kBytes, kAccepted, kDelivered, kLateness };

struct TopicsPageRequest {
  std::string prefix;  // of the topics that the caller may see
  std::string filter;  // a part of the name
  TopicSort sort = TopicSort::kName;
  bool descending = false;
  size_t offset = 0;
  size_t limit = 100;
};

struct TopicsPageReport {
  size_t total = 0;  // topics that match
  std::deque<TopicReport> topics;
};

enum class DeliveryState : uint8_t { kDelivering, kFailing, kUnreachable, kBroken, kPaused, kClosing };
constexpr std::string_view NameOf(DeliveryState state) {
  constexpr std::string_view kNames[] = {"delivering", "failing", "unreachable", "broken", "paused", "closing"};
  return kNames[static_cast<size_t>(state)];
}

/// How jobs of a topic reach its receiver, on this node.
struct DeliveryReport {
  std::string topic;
  std::string sink;
  std::string target;  // PlaceOf
  DeliveryState state{};
  uint64_t in_flight = 0;
  uint64_t failures = 0;  // answers since the last that was a confirmation
  std::string last_error;
  Time last_error_at{};
};
struct DeliveriesRequest {
  std::string prefix;
  std::string after;  // the last topic of the page before
  size_t limit = 100;
};
struct DeliveriesPage {
  std::vector<DeliveryReport> deliveries;
  std::string cursor;  // empty at the end
};

/// What a node, or a topic, did in one step of time.
struct HistoryPoint {
  Time at{};                         // its end
  std::array<float, 6> rates{};      // a second, in the order of kRateNames
  std::array<uint64_t, 4> gauges{};  // at the end, in the order of kGaugeNames
  float p50_ms = -1;                 // of the lateness; below 0: nothing was delivered
  float p99_ms = -1;
  int64_t oldest_age_ms = -1;  // of the ready jobs, at the end; below 0: none, or not known
};
inline constexpr std::array<std::string_view, 6> kRateNames{"accepted", "delivered", "acked",
                                                            "nacked",   "expired",   "died"};
inline constexpr std::array<std::string_view, 4> kGaugeNames{"scheduled", "ready", "leased", "dead"};

struct HistoryReport {
  Millis step{0};
  std::vector<HistoryPoint> points;  // the oldest first
};

struct LoadRequest {
  std::string topic = {};         // empty: all whose names begin with `prefix`
  std::string prefix = {};        // of the topics that the caller may see
  std::optional<Time> from = {};  // now, unless given
  std::optional<Time> to = {};    // an hour later, unless given
  Millis step = kLoadMinute;
  bool by_topic = false;  // the largest of them too
  WantedStill wanted = {};
};

/// The largest topics of an answer are at most this many.
constexpr size_t kLoadTopicsMax = 10;

struct LoadReport {
  struct OfTopic {
    std::string topic;
    LoadCounts counts;
  };
  LoadSpan span;
  LoadCounts counts;
  std::vector<OfTopic> largest;  // those with most jobs in all steps first; only if they were asked for
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
