#include "frontend/resp/encode.h"

#include <limits>
#include <map>

#include <gmock/gmock.h>

#include "frontend/resp/test_replies.h"
#include "frontend/shared/views.h"
#include "model/names.h"

namespace tocsin::resp {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

template <class Write>
std::string In(Protocol protocol, Write write) {
  std::string text;
  Writer writer(text, protocol);
  write(writer);
  const auto [form, size, reply] = ReadReply(text);
  EXPECT_EQ(form, Form::kWhole) << text;
  EXPECT_EQ(size, text.size()) << text;
  return text;
}

/// The reply that both protocols share.
template <class Write>
std::string Same(Write write) {
  std::string text = In(Protocol::kResp2, write);
  EXPECT_EQ(In(Protocol::kResp3, write), text);
  return text;
}

/// The names in a map, in their order.
std::vector<std::string> NamesIn(const Reply& map) {
  std::vector<std::string> names;
  for (size_t i = 0; i < map.items.size(); i += 2) names.push_back(map.items[i].text);
  return names;
}

TEST(EncodeTest, AJobThatIsStored) {
  const auto submitted = [](const Submitted& job, std::string_view own_id) {
    return [&job, own_id](Writer& w) { WriteSubmitted(w, {&job, 1}, own_id, false); };
  };
  const Submitted accepted{.outcome = SubmitOutcome::kAccepted, .uid = 1, .due = FromMs(1'000)};
  EXPECT_EQ(Same(submitted(accepted, "")), "*3\r\n$14\r\nj0000000000001\r\n+accepted\r\n:1000\r\n");
  EXPECT_EQ(Same(submitted(accepted, "a\r\nb")), "*3\r\n$4\r\na\r\nb\r\n+accepted\r\n:1000\r\n");
  const Submitted never{.outcome = SubmitOutcome::kDuplicate, .uid = 1, .due = kNever};
  EXPECT_EQ(In(Protocol::kResp2, submitted(never, "x")), "*3\r\n$1\r\nx\r\n+duplicate\r\n$-1\r\n");
  EXPECT_EQ(In(Protocol::kResp3, submitted(never, "x")), "*3\r\n$1\r\nx\r\n+duplicate\r\n_\r\n");
}

TEST(EncodeTest, AJobThatIsNotStoredIsAnErrorThatNamesItsOutcome) {
  const std::pair<SubmitOutcome, std::string_view> outcomes[] = {
      {SubmitOutcome::kConflict, "-CONFLICT conflict: "},
      {SubmitOutcome::kInFlight, "-CONFLICT in_flight: "},
      {SubmitOutcome::kOverCapacity, "-OVERCAPACITY over_capacity: "},
      {SubmitOutcome::kStorageFull, "-STORAGEFULL storage_full: "},
      {SubmitOutcome::kOverloaded, "-OVERLOADED overloaded: "},
      {SubmitOutcome::kUnavailable, "-UNAVAILABLE unavailable: "},
  };
  for (const auto& [outcome, begin] : outcomes) {
    const Submitted job{.outcome = outcome};
    EXPECT_THAT(Same([&](Writer& w) { WriteSubmitted(w, {&job, 1}, "id", false); }), StartsWith(begin));
  }
}

TEST(EncodeTest, ManyJobsHaveOnePlaceEach) {
  const Submitted jobs[] = {{.outcome = SubmitOutcome::kAccepted, .uid = 1, .due = FromMs(1)},
                            {.outcome = SubmitOutcome::kOverCapacity},
                            {.outcome = SubmitOutcome::kAccepted, .uid = 2, .due = FromMs(1)}};
  const Reply reply = ReadReply(Same([&](Writer& w) { WriteSubmitted(w, jobs, "", true); })).reply;
  ASSERT_EQ(reply.items.size(), 3U);
  EXPECT_EQ(reply.items[0].text, "j0000000000001");
  EXPECT_EQ(reply.items[1].type, '-');
  EXPECT_EQ(reply.items[2].text, "j0000000000002");
}

TEST(EncodeTest, SettledJobs) {
  constexpr SettleOutcome kOutcomes[] = {SettleOutcome::kOk, SettleOutcome::kDead, SettleOutcome::kStale,
                                         SettleOutcome::kOverloaded};
  EXPECT_EQ(Same([&](Writer& w) { WriteSettled(w, kOutcomes); }), "*4\r\n+ok\r\n+dead\r\n+stale\r\n+overloaded\r\n");
}

TEST(EncodeTest, AmendedJobs) {
  const auto amended = [](AmendOutcome outcome, AmendKind kind, Time due = {}) {
    return [=](Writer& w) { WriteAmended(w, {.outcome = outcome, .due = due}, kind); };
  };
  EXPECT_EQ(Same(amended(AmendOutcome::kDone, AmendKind::kCancel)), "+cancelled\r\n");
  EXPECT_EQ(Same(amended(AmendOutcome::kUnknown, AmendKind::kCancel)), "+unknown\r\n");
  EXPECT_EQ(Same(amended(AmendOutcome::kDone, AmendKind::kFire, FromMs(5))), "*2\r\n+fired\r\n:5\r\n");
  EXPECT_EQ(Same(amended(AmendOutcome::kDone, AmendKind::kPayload, FromMs(5))), "*2\r\n+amended\r\n:5\r\n");
  EXPECT_EQ(In(Protocol::kResp3, amended(AmendOutcome::kDone, AmendKind::kReschedule, kNever)),
            "*2\r\n+amended\r\n_\r\n");
  EXPECT_EQ(In(Protocol::kResp2, amended(AmendOutcome::kInFlight, AmendKind::kReschedule, FromMs(5))),
            "*2\r\n+in_flight\r\n$-1\r\n");
  EXPECT_THAT(Same(amended(AmendOutcome::kOverloaded, AmendKind::kCancel)), StartsWith("-OVERLOADED "));
  EXPECT_THAT(Same(amended(AmendOutcome::kUnavailable, AmendKind::kCancel)), StartsWith("-UNAVAILABLE "));
}

TEST(EncodeTest, CountedEvents) {
  const auto counted = [](CountOutcome outcome, uint32_t left) {
    return [=](Writer& w) { WriteCounted(w, {.outcome = outcome, .left = left}); };
  };
  EXPECT_EQ(Same(counted(CountOutcome::kCounted, 2)), "*2\r\n+counted\r\n:2\r\n");
  EXPECT_EQ(Same(counted(CountOutcome::kRepeated, 2)), "*2\r\n+repeated\r\n:2\r\n");
  EXPECT_THAT(Same(counted(CountOutcome::kOverloaded, 0)), StartsWith("-OVERLOADED "));
  EXPECT_THAT(Same(counted(CountOutcome::kUnavailable, 0)), StartsWith("-UNAVAILABLE "));
}

JobBatch SomeJobs() {
  JobBatch batch;
  batch.jobs.push_back({.uid = 1, .due = FromMs(5), .attempt = 1, .max_attempts = 16, .payload = "\r\n"});
  batch.jobs.push_back({.own_id = "x",
                        .key = "k",
                        .due = kNever,
                        .attempt = 2,
                        .max_attempts = 3,
                        .headers = {{"h", "1"}, {"i", ""}},
                        .payload = "",
                        .lease_deadline = FromMs(7)});
  return batch;
}

void WriteAll(Writer& writer, const JobBatch& batch) {
  size_t next = 0;
  while (!WriteDelivered(writer, batch, next)) {
  }
}

TEST(EncodeTest, DeliveredJobs) {
  const JobBatch batch = SomeJobs();
  const std::string token = TokenText({});
  const std::string token_bulk = fmt::format("${}\r\n{}\r\n", token.size(), token);
  const auto write = [&](Writer& w) { WriteAll(w, batch); };
  EXPECT_EQ(In(Protocol::kResp2, write),
            "*2\r\n*9\r\n$14\r\nj0000000000001\r\n" + token_bulk +
                "$2\r\n\r\n\r\n:1\r\n:16\r\n:5\r\n:0\r\n$-1\r\n*0\r\n*9\r\n$1\r\nx\r\n" + token_bulk +
                "$0\r\n\r\n:2\r\n:3\r\n$-1\r\n:7\r\n$1\r\nk\r\n*4\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\ni\r\n$0\r\n\r\n");
  EXPECT_EQ(In(Protocol::kResp3, write),
            "*2\r\n*9\r\n$14\r\nj0000000000001\r\n" + token_bulk +
                "$2\r\n\r\n\r\n:1\r\n:16\r\n:5\r\n:0\r\n_\r\n%0\r\n*9\r\n$1\r\nx\r\n" + token_bulk +
                "$0\r\n\r\n:2\r\n:3\r\n_\r\n:7\r\n$1\r\nk\r\n%2\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\ni\r\n$0\r\n\r\n");
  EXPECT_EQ(Same([](Writer& w) { WriteAll(w, {}); }), "*0\r\n");
}

TEST(EncodeTest, ManyDeliveredJobsTakeManySteps) {
  const std::string payload(1'000, 'x');
  JobBatch batch;
  batch.jobs.resize(10'000, {.payload = payload});
  std::string text;
  Writer writer(text, Protocol::kResp2);
  size_t steps = 1;
  for (size_t next = 0; !WriteDelivered(writer, batch, next); ++steps) {
  }
  EXPECT_GT(steps, 20U);
  EXPECT_EQ(ReadReply(text).reply.items.size(), batch.jobs.size());
  EXPECT_LE(text.size(), shared::BytesMax(batch));
}

TEST(EncodeTest, AJobAsItIsShown) {
  JobBatch batch = SomeJobs();
  JobView& job = batch.jobs[1];
  const auto names = [&] {
    const auto reply = ReadReply(In(Protocol::kResp3, [&](Writer& w) { shared::Show(w, job); })).reply;
    EXPECT_EQ(reply.type, '%');
    return NamesIn(reply);
  };
  EXPECT_THAT(names(),
              ElementsAre("id", "state", "trigger", "attempt", "max_attempts", "due_ms", "key", "headers", "payload"));
  job.state = State::kLeased;
  job.trigger = Trigger::kEither;
  job.reason = "late";
  EXPECT_THAT(names(), ElementsAre("id", "state", "trigger", "count_left", "reason", "attempt", "max_attempts",
                                   "due_ms", "lease_deadline_ms", "extensions", "key", "headers", "payload"));
  const auto flat = ReadReply(In(Protocol::kResp2, [&](Writer& w) { shared::Show(w, job); })).reply;
  EXPECT_EQ(flat.type, '*');
  EXPECT_EQ(flat.items.size(), 26U);
}

TEST(EncodeTest, AJobIsNoLongerThanWasAskedFor) {
  const std::string long_name(256, 'n');
  const std::string reason(1024, 'r');
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  JobView job{.uid = ~0ULL,
              .own_id = long_name,
              .key = long_name,
              .state = State::kLeased,
              .due = kNever - Millis(1),
              .trigger = Trigger::kEither,
              .count_left = kMost,
              .attempt = kMost,
              .max_attempts = kMost,
              .reason = reason,
              .token = {.slot = kSlotsMax - 1, .handle = ~0ULL, .fence = ~0ULL},
              .lease_deadline = kNever - Millis(1),
              .created = kNever - Millis(1),
              .last_attempt = kNever - Millis(1),
              .died = kNever - Millis(1),
              .finished = kNever - Millis(1),
              .leased = kNever - Millis(1),
              .extensions = kMost,
              .holder = std::string_view(long_name).substr(0, kHolderBytesMax)};
  for (int i = 0; i < 32; ++i) job.headers.push_back({long_name, ""});
  JobBatch batch;
  batch.jobs.push_back(job);
  EXPECT_LE(In(Protocol::kResp2, [&](Writer& w) { WriteAll(w, batch); }).size(), shared::BytesMax(batch));
  EXPECT_LE(In(Protocol::kResp2, [&](Writer& w) { shared::Show(w, job); }).size(), shared::BytesMax(batch));
  // Without what is counted by its size: the rest has to fit as well.
  batch.jobs.front().own_id = batch.jobs.front().key = {};
  batch.jobs.front().headers.clear();
  batch.jobs.front().reason = "r";
  EXPECT_LE(In(Protocol::kResp2, [&](Writer& w) { shared::Show(w, batch.jobs.front()); }).size(),
            shared::BytesMax(batch));
}

TEST(EncodeTest, ATopic) {
  Topic topic;
  topic.name = "t";
  topic.paused = true;
  const auto settings = [&](Writer& w) { shared::Show(w, topic); };
  const Reply three = ReadReply(In(Protocol::kResp3, settings)).reply;
  EXPECT_THAT(NamesIn(three),
              ElementsAre("topic", "slots", "capacity_jobs", "capacity_bytes", "lease_ms", "max_attempts",
                          "backoff_base_ms", "backoff_max_ms", "count_limit", "retention_ms", "paused",
                          "alert_due_jobs", "alert_late_ms", "alert_stalled_ms", "alert_attempts",
                          "alert_push_failures", "alert_dead_jobs", "alert_future_jobs", "alerts_off", "delivery"));
  EXPECT_EQ(three.items[21].type, '#');
  EXPECT_THAT(NamesIn(three.items.back()), ElementsAre("sink"));
  const Reply two = ReadReply(In(Protocol::kResp2, settings)).reply;
  EXPECT_EQ(two.items.size(), three.items.size());
  EXPECT_EQ(two.items[21].text, "1");

  TopicReport report;
  report.figures.topic = topic;
  report.lateness = {.count = 3, .p50 = 0.0015, .p99 = 0.25, .p999 = 1, .max = 2};
  const std::string text = In(Protocol::kResp3, [&](Writer& w) { shared::Show(w, report, true); });
  EXPECT_THAT(text, HasSubstr("$3\r\np50\r\n,1.500\r\n$3\r\np99\r\n,250.000\r\n"));
  EXPECT_THAT(NamesIn(ReadReply(text).reply), testing::IsSupersetOf({"figures", "lateness_ms", "paused"}));
}

TEST(EncodeTest, ATopicThatPushes) {
  Topic topic;
  topic.delivery = {.sink = "webhook", .settings = {{"url", "https://example.com"}, {"retry_4xx", "true"}}};
  const auto settings = [&](Writer& w) { shared::Show(w, topic); };
  const Reply delivery = ReadReply(In(Protocol::kResp3, settings)).reply.items.back();
  std::map<std::string, Reply> fields;
  for (size_t i = 0; i + 1 < delivery.items.size(); i += 2) fields[delivery.items[i].text] = delivery.items[i + 1];
  EXPECT_EQ(fields.size(), 1 + DeliveryFieldsOf("webhook").size());
  EXPECT_EQ(fields["sink"].text, "webhook");
  EXPECT_EQ(fields["url"].text, "https://example.com");
  EXPECT_EQ(fields["retry_4xx"].type, '#');
  EXPECT_EQ(fields["in_flight"].text, "64") << "a default";
  topic.name.assign(256, 'n');
  for (const std::string& url :
       {std::string(2048, 'x'), "https://a/" + std::string(2038, 'x'), std::string("a://b?")}) {
    topic.delivery.settings["url"] = url;
    TopicReport report;
    report.figures.topic = topic;
    for (const Protocol protocol : {Protocol::kResp2, Protocol::kResp3}) {
      for (const bool whole_urls : {true, false}) {
        const std::string shown = In(protocol, [&](Writer& w) { shared::Show(w, report, whole_urls); });
        EXPECT_LE(shown.size(), shared::BytesMax(topic));
      }
    }
  }
}

TEST(EncodeTest, AProbe) {
  const auto names = [](const Delivered& delivered) {
    return NamesIn(
        ReadReply(In(Protocol::kResp3, [&](Writer& w) { shared::Show(w, Probed{delivered, Millis(7)}); })).reply);
  };
  EXPECT_THAT(names({}), ElementsAre("outcome", "took_ms"));
  EXPECT_THAT(names({.outcome = DeliverOutcome::kRetry, .delay = {}, .reason = "503"}),
              ElementsAre("outcome", "reason", "took_ms"));
}

TEST(EncodeTest, AClusterHasTheNamesOfHttp) {
  ClusterReport report{.store = "redis", .node = "a"};
  report.members = {{.member = {.id = "a", .http = "h:1", .resp = "h:2", .joined = FromMs(1), .heard = FromMs(2)},
                     .self = true,
                     .groups = 3,
                     .slots = 4}};
  report.groups = {{.group = 1, .owner = "a", .epoch = 7, .slots = 4, .next_due = FromMs(9)}, {.group = 2}};
  report.lost = {{.id = "b"}};
  report.servers = {{.endpoint = "r:6379", .role = "master", .connected = true, .state = "connected"}};
  const auto write = [&](Writer& w) { shared::Show(w, report); };
  const Reply three = ReadReply(In(Protocol::kResp3, write)).reply;
  EXPECT_THAT(NamesIn(three), ElementsAre("store", "node", "members", "lost", "groups", "coordinator", "servers"));
  EXPECT_THAT(NamesIn(three[5][0]),
              ElementsAre("id", "http", "resp", "version", "joined_ms", "heard_ms", "groups", "slots", "self"));
  EXPECT_THAT(NamesIn(three[7][0]), ElementsAre("id", "http", "resp", "version", "joined_ms", "heard_ms"));
  EXPECT_THAT(NamesIn(three[9][0]), ElementsAre("group", "owner", "epoch", "slots", "next_due_ms"));
  EXPECT_EQ(three[9][0][9].text, "9");
  for (const size_t unknown : {3, 5, 7, 9}) EXPECT_TRUE(three[9][1][unknown].null) << unknown;
  EXPECT_THAT(NamesIn(three[11]), ElementsAre("kind", "connected", "state"));
  EXPECT_THAT(NamesIn(three[13][0]), ElementsAre("endpoint", "role", "connected", "state", "round_trip_ms"));
  In(Protocol::kResp2, write);
}

}  // namespace
}  // namespace tocsin::resp
