#include "frontend/http/encode.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "base/text.h"
#include "frontend/http/json_writer.h"
#include "frontend/shared/views.h"
#include "model/names.h"

namespace tocsin::http {
namespace {

template <class T>
std::string Shown(const T& value) {
  JsonWriter out;
  shared::Show(out, value);
  return out.Take();
}

TEST(EncodeSubmitted, ShowsOneOutcomeForEachJob) {
  const Submitted jobs[] = {
      {.outcome = SubmitOutcome::kAccepted, .uid = 1, .due = FromMs(1'000)},
      {.outcome = SubmitOutcome::kDuplicate, .uid = 2, .due = kNever},
      {.outcome = SubmitOutcome::kOverCapacity, .uid = 0},
      {.outcome = SubmitOutcome::kConflict, .uid = 3},
      {.outcome = SubmitOutcome::kOverloaded, .uid = 0},
  };
  const std::string_view own_ids[] = {"", "a\"b", "", "c", ""};
  EXPECT_EQ(EncodeSubmitted(jobs, own_ids),
            R"({"jobs":[{"id":"j0000000000001","due_ms":1000,"outcome":"accepted"},)"
            R"({"id":"a\"b","due_ms":null,"outcome":"duplicate"},{"id":null,"outcome":"over_capacity"},)"
            R"({"id":"c","outcome":"conflict"},{"id":null,"outcome":"overloaded"}]})");
}

TEST(EncodeSubmitted, IsNoLongerThanWasAskedFor) {
  const std::string awkward(256, '"');
  for (const auto outcome : {SubmitOutcome::kAccepted, SubmitOutcome::kOverCapacity}) {
    const std::vector<Submitted> jobs(10, {.outcome = outcome, .uid = ~0ULL, .due = kNever - Millis(1)});
    for (const std::string_view id : {std::string_view(), std::string_view("x"), std::string_view(awkward)}) {
      const std::vector<std::string_view> own_ids(jobs.size(), id);
      EXPECT_LE(EncodeSubmitted(jobs, own_ids).size(), SubmittedBytesMax(own_ids));
    }
  }
  const std::vector<Token> tokens(10);
  for (const auto outcome : {SettleOutcome::kStale, SettleOutcome::kUnavailable}) {
    const std::vector<SettleOutcome> outcomes(tokens.size(), outcome);
    EXPECT_LE(EncodeSettled(tokens, outcomes).size(), SettledBytesMax(tokens.size()));
  }
}

std::string Encoded(const JobBatch& batch) {
  JsonWriter out;
  size_t next = 0;
  while (!EncodeDelivered(out, batch, next)) {
  }
  return out.Take();
}

TEST(EncodeDelivered, ShowsTextAsTextAndBytesAsBase64) {
  JobBatch batch;
  batch.jobs.push_back({.uid = 1, .due = FromMs(5), .attempt = 1, .payload = "hällo"});
  batch.jobs.push_back({.own_id = "x",
                        .key = "k",
                        .due = FromMs(6),
                        .attempt = 2,
                        .headers = {{"h", "1"}, {"i", ""}},
                        .payload = std::string_view("\xFF\0", 2)});
  const auto root = boost::json::parse(Encoded(batch));
  const auto& jobs = root.at("jobs").as_array();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].at("id").as_string(), "j0000000000001");
  EXPECT_EQ(jobs[0].at("token").as_string(), TokenText({}));
  EXPECT_EQ(jobs[0].at("attempt").as_int64(), 1);
  EXPECT_EQ(jobs[0].at("due_ms").as_int64(), 5);
  EXPECT_EQ(jobs[0].at("payload").as_string(), "hällo");
  EXPECT_FALSE(jobs[0].as_object().contains("key"));
  EXPECT_FALSE(jobs[0].as_object().contains("headers"));
  EXPECT_EQ(jobs[1].at("id").as_string(), "x");
  EXPECT_EQ(jobs[1].at("key").as_string(), "k");
  EXPECT_EQ(jobs[1].at("headers").at("i").as_string(), "");
  EXPECT_EQ(jobs[1].at("payload_base64").as_string(), "/wA=");
  EXPECT_FALSE(jobs[1].as_object().contains("payload"));
}

TEST(EncodeDelivered, NothingIsAnEmptyArray) { EXPECT_EQ(Encoded({}), R"({"jobs":[]})"); }

TEST(EncodeDelivered, ManyJobsTakeManySteps) {
  const std::string payload(1'000, 'x');
  JobBatch batch;
  batch.jobs.resize(10'000, {.payload = payload});
  JsonWriter out;
  size_t steps = 1;
  size_t before = 0;
  for (size_t next = 0; !EncodeDelivered(out, batch, next); ++steps) {
    EXPECT_LT((next - before) * payload.size(), 400'000U);
    before = next;
  }
  EXPECT_GT(steps, 20U);
  const auto root = boost::json::parse(out.Take());
  EXPECT_EQ(root.at("jobs").as_array().size(), batch.jobs.size());
  EXPECT_EQ(root.at("jobs").as_array().back().at("payload").as_string(), payload);
}

TEST(EncodeSettled, ShowsEachToken) {
  const Token tokens[] = {{.slot = 1, .handle = 2, .fence = 3}, {}};
  const SettleOutcome outcomes[] = {SettleOutcome::kOk, SettleOutcome::kStale};
  EXPECT_EQ(EncodeSettled(tokens, outcomes),
            fmt::format(R"({{"results":[{{"token":"{}","outcome":"ok"}},{{"token":"{}","outcome":"stale"}}]}})",
                        TokenText(tokens[0]), TokenText(tokens[1])));
}

TEST(EncodeDelivered, ShowsControlCharactersAsBase64WhereThatIsShorter) {
  const std::string zeros(1000, '\0');
  JobBatch batch;
  batch.jobs.push_back({.uid = 1, .payload = zeros});
  batch.jobs.push_back({.uid = 2, .payload = "one\nline"});
  const std::string text = Encoded(batch);
  EXPECT_LT(text.size(), 1700U);
  const auto root = boost::json::parse(text);
  EXPECT_EQ(DecodeBase64(root.at("jobs").at(0).at("payload_base64").as_string()), zeros);
  EXPECT_EQ(root.at("jobs").at(1).at("payload").as_string(), "one\nline");
}

TEST(Show, AJobWithAllThatIsKnown) {
  const JobView job{.own_id = "x",
                    .state = State::kLeased,
                    .due = kNever,
                    .trigger = Trigger::kEither,
                    .count_left = 3,
                    .attempt = 2,
                    .max_attempts = 5,
                    .reason = "\xFF",
                    .lease_deadline = FromMs(9)};
  EXPECT_EQ(Shown(job),
            R"({"id":"x","state":"leased","trigger":"either","count_left":3,"reason":"not valid UTF-8",)"
            R"("attempt":2,"max_attempts":5,"due_ms":null,"lease_deadline_ms":9,"extensions":0,"payload":""})");
}

TEST(EncodeAmended, HasADefiniteWordForEachOutcome) {
  EXPECT_EQ(EncodeAmended({AmendOutcome::kDone, {}}, "cancelled"), R"({"outcome":"cancelled"})");
  EXPECT_EQ(EncodeAmended({AmendOutcome::kDone, FromMs(7)}, "fired"), R"({"outcome":"fired","due_ms":7})");
  EXPECT_EQ(EncodeAmended({AmendOutcome::kInFlight, {}}, "fired"), R"({"outcome":"in_flight"})");
  EXPECT_EQ(EncodeAmended({AmendOutcome::kFinished, {}}, "fired"), R"({"outcome":"finished"})");
  EXPECT_EQ(EncodeAmended({AmendOutcome::kUnknown, {}}, "fired"), R"({"outcome":"unknown"})");
}

TEST(EncodeStats, ShowsTheTotalsAndTheConservation) {
  const Totals totals{.topics = 2,
                      .figures = {.scheduled = 2, .leased = 3, .recovered = 1, .accepted = 6, .acked = 1},
                      .lateness = {.count = 4, .p50 = 0.001, .p99 = 0.002, .p999 = 0.003, .max = 0.004}};
  const auto root = boost::json::parse(EncodeStats({.version = "1"}, totals));
  EXPECT_EQ(root.at("topics").as_int64(), 2);
  EXPECT_EQ(root.at("totals").at("accepted").as_int64(), 6);
  EXPECT_EQ(root.at("conservation").at("in").as_int64(), 7);
  EXPECT_EQ(root.at("conservation").at("out").as_int64(), 6);
  EXPECT_EQ(root.at("conservation").at("difference").as_int64(), 1);
  EXPECT_EQ(root.at("lateness_ms").at("p99").as_double(), 2);
  EXPECT_EQ(root.at("totals").at("leased").as_int64(), 3);
}

TEST(Show, ATopicShowsTheDeliveryWithItsDefaults) {
  Topic topic = DefaultTopic("t");
  EXPECT_EQ(boost::json::parse(Shown(topic)).at("delivery"), boost::json::parse(R"({"sink":"pull"})"));
  topic.delivery = {.sink = "webhook", .settings = {{"url", "https://a/\"b\""}, {"retry_4xx", "true"}}};
  const auto delivery = boost::json::parse(Shown(topic)).at("delivery").as_object();
  EXPECT_EQ(delivery.at("sink"), "webhook");
  EXPECT_EQ(delivery.at("url"), "https://a/\"b\"");
  EXPECT_EQ(delivery.at("retry_4xx"), true);
  EXPECT_EQ(delivery.at("in_flight"), 64);
  EXPECT_EQ(delivery.at("secret"), "");
  EXPECT_EQ(delivery.size(), 1 + DeliveryFieldsOf("webhook").size());
}

TEST(Show, WithoutItsPathAUrlIsASchemeAHostAndAPort) {
  TopicReport report;
  report.figures.topic = DefaultTopic("t");
  report.figures.topic.delivery.sink = "webhook";
  const std::pair<std::string, std::string> urls[] = {
      {"https://hooks.example.com/T1/secret", "https://hooks.example.com/..."},
      {"https://hooks.example.com:8443?key=secret", "https://hooks.example.com:8443/..."},
      {"http://[2001:db8::1]:80/a/b?c=http://d", "http://[2001:db8::1]:80/..."},
      {"http://a/#secret", "http://a/..."},
      {"https://a/", "https://a/"},
      {"https://a:1", "https://a:1"},
      {"https://me:secret@a/", "..."},
      {"secret", "..."}};
  for (const auto& [url, origin] : urls) {
    report.figures.topic.delivery.settings["url"] = url;
    for (const bool whole_urls : {true, false}) {
      JsonWriter out;
      shared::Show(out, report, whole_urls);
      const auto delivery = boost::json::parse(out.Take()).at("delivery").as_object();
      EXPECT_EQ(delivery.at("url").as_string(), whole_urls ? url : origin);
      EXPECT_EQ(delivery.size(), 1 + DeliveryFieldsOf("webhook").size());
    }
  }
}

TEST(Show, AProbeSaysWhatBecameOfIt) {
  EXPECT_EQ(Shown(Probed{.delivered = {}, .took = Millis(7)}), R"({"outcome":"confirmed","took_ms":7})");
  EXPECT_EQ(
      Shown(Probed{.delivered = {.outcome = DeliverOutcome::kRefused, .reason = "410 \"Gone\""}, .took = Millis(0)}),
      R"({"outcome":"refused","reason":"410 \"Gone\"","took_ms":0})");
  EXPECT_NO_THROW(boost::json::parse(
      Shown(Probed{.delivered = {.outcome = DeliverOutcome::kRetry, .reason = "\xFF"}, .took = Millis(0)})));
}

TEST(Show, AClusterShowsWhatIsKnownAndNullForTheRest) {
  ClusterReport report{.store = "redis", .node = "a"};
  report.members = {
      {.member = {.id = "a", .http = "h:1", .resp = "h:2", .version = "1.2", .joined = FromMs(1), .heard = FromMs(2)},
       .self = true,
       .groups = 3,
       .slots = 4}};
  report.lost = {{.id = "b", .http = "h:3", .resp = "h:4", .joined = FromMs(1), .heard = FromMs(3)}};
  report.groups = {{.group = 0, .owner = "a", .epoch = 7, .slots = 4, .next_due = FromMs(9)}, {.group = 1}};
  report.coordinator = {.kind = "redis", .connected = false, .state = "\xFF"};
  report.servers = {
      {.endpoint = "r:6379", .role = "master", .connected = true, .state = "connected", .round_trip = Millis(2)}};
  EXPECT_EQ(
      Shown(report),
      R"({"store":"redis","node":"a","members":[{"id":"a","http":"h:1","resp":"h:2","version":"1.2","joined_ms":1,)"
      R"("heard_ms":2,"groups":3,"slots":4,"self":true}],)"
      R"("lost":[{"id":"b","http":"h:3","resp":"h:4","version":null,"joined_ms":1,"heard_ms":3}],)"
      R"("groups":[{"group":0,"owner":"a","epoch":7,"slots":4,)"
      R"("next_due_ms":9},{"group":1,"owner":null,"epoch":null,"slots":null,"next_due_ms":null}],)"
      R"("coordinator":{"kind":"redis","connected":false,"state":"not valid UTF-8"},)"
      R"("servers":[{"endpoint":"r:6379","role":"master","connected":true,"state":"connected",)"
      R"("round_trip_ms":2}]})");
}

TEST(EncodeError, NamesTheFieldWhereThereIsOne) {
  EXPECT_EQ(EncodeError({Code::kUnknownField, "no \"x\"", "x"}),
            R"({"error":{"code":"unknown_field","message":"no \"x\"","field":"x"}})");
  EXPECT_EQ(EncodeError({Code::kOverloaded, "busy", ""}), R"({"error":{"code":"overloaded","message":"busy"}})");
  EXPECT_NO_THROW(boost::json::parse(EncodeError({Code::kNotFound, "\xFF", "\xFF"})));
}

TEST(CodeOf, HasAnErrorForEachRefusal) {
  EXPECT_EQ(CodeOf(SubmitOutcome::kConflict), Code::kConflict);
  EXPECT_EQ(CodeOf(SubmitOutcome::kInFlight), Code::kConflict);
  EXPECT_EQ(CodeOf(SubmitOutcome::kOverCapacity), Code::kOverCapacity);
  EXPECT_EQ(CodeOf(SubmitOutcome::kStorageFull), Code::kStorageFull);
  EXPECT_EQ(CodeOf(SubmitOutcome::kOverloaded), Code::kOverloaded);
}

TEST(ShowJob, ShowsWhatTheJobRemembersAndNothingThatItDoesNotHave) {
  const JobView leased{.own_id = "a",
                       .state = State::kLeased,
                       .lease_deadline = FromMs(9),
                       .created = FromMs(1),
                       .last_attempt = FromMs(2),
                       .leased = FromMs(2),
                       .extensions = 3,
                       .holder = "w-1"};
  const auto shown = boost::json::parse(Shown(leased)).as_object();
  for (const auto& [name, value] : {std::pair("created_ms", 1), std::pair("last_attempt_ms", 2),
                                    std::pair("leased_ms", 2), std::pair("extensions", 3)}) {
    EXPECT_EQ(shown.at(name).as_int64(), value) << name;
  }
  EXPECT_EQ(shown.at("holder").as_string(), "w-1");
  EXPECT_FALSE(shown.contains("died_ms"));
  EXPECT_FALSE(shown.contains("finished_ms"));
  const JobView dead{.own_id = "a", .state = State::kDead, .died = FromMs(7), .leased = FromMs(2), .holder = "w-1"};
  const auto of_dead = boost::json::parse(Shown(dead)).as_object();
  EXPECT_EQ(of_dead.at("died_ms").as_int64(), 7);
  for (const char* name : {"created_ms", "last_attempt_ms", "leased_ms", "extensions", "holder"}) {
    EXPECT_FALSE(of_dead.contains(name)) << name;
  }
}

TEST(ShowLease, SaysWhoHasItAndNotWhatIsInIt) {
  JsonWriter out;
  shared::ShowLease(out, "t",
                    {.own_id = "a",
                     .state = State::kLeased,
                     .attempt = 2,
                     .max_attempts = 16,
                     .headers = {{"h", "v"}},
                     .payload = "secret",
                     .lease_deadline = FromMs(9),
                     .leased = FromMs(2),
                     .extensions = 1,
                     .holder = "w-1"});
  EXPECT_EQ(out.Take(),
            R"({"topic":"t","id":"a","attempt":2,"max_attempts":16,"lease_deadline_ms":9,"leased_ms":2,"extensions":1,)"
            R"("holder":"w-1"})");
}

}  // namespace
}  // namespace tocsin::http
