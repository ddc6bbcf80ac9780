#include "cli/resp_calls.h"

#include <gmock/gmock.h>

#include "cli/api.h"

namespace tocsin::cli {
namespace {

using testing::HasSubstr;

constexpr std::string_view kToken = "AAABAAAAAAAAAAEAAAAAAQAA";

json::object Parse(std::string_view text) { return json::parse({text.data(), text.size()}).as_object(); }

std::vector<RespValue> Values(std::string_view wire) {
  RespReader reader;
  reader.Append(wire);
  std::vector<RespValue> values;
  while (auto value = reader.Next().value()) values.push_back(*std::move(value));
  return values;
}

/// The commands of a call, a line each, their words separated by spaces; or the error.
std::string Commands(std::string_view method, const std::string& target, std::string_view body = "{}") {
  const json::object object = Parse(body);
  const auto plan = PlanCall(method, target, object);
  if (!plan) return plan.error().message;
  std::string text;
  for (const RespValue& command : Values(plan->request.bytes)) {
    for (const RespValue& word : command.items) text += word.text + ' ';
    text.back() = '\n';
  }
  EXPECT_EQ(Values(plan->request.bytes).size(), plan->request.count);
  EXPECT_EQ(plan->reads, method == "GET");
  return text.substr(0, text.size() - 1);
}

/// The answer to a call whose replies these are, as JSON; or the error.
std::string Answer(std::string_view method, const std::string& target, std::string_view body, std::string_view wire) {
  const json::object object = Parse(body);
  const auto plan = PlanCall(method, target, object);
  if (!plan) return plan.error().message;
  const auto answer = AnswerOf(*plan, Values(wire));
  return answer ? json::serialize(*answer) : answer.error().message;
}

TEST(RespCalls, EveryCallHasItsCommand) {
  EXPECT_EQ(Commands("GET", "/v1/topics"), "TOPIC.LIST");
  EXPECT_EQ(Commands("GET", TopicPath("a b")), "TOPIC.GET a b");
  EXPECT_EQ(Commands("PUT", TopicPath("t"), R"({"slots":4,"paused":true,"lease_ms":5})"),
            "TOPIC.SET t slots 4 lease_ms 5 paused true");
  EXPECT_EQ(Commands("PUT", TopicPath("t"),
                     R"({"delivery":{"sink":"webhook","url":"http://a b","in_flight":7,"retry_4xx":true},"slots":4})"),
            "TOPIC.SET t slots 4 sink webhook url http://a b in_flight 7 retry_4xx true");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/test")), "TOPIC.TEST t");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/pause")), "TOPIC.PAUSE t");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/resume")), "TOPIC.RESUME t");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/purge")), "TOPIC.PURGE t");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/dead/purge")), "TOPIC.PURGE t DEAD");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/dead/redrive")), "JOB.REDRIVE t");
  EXPECT_EQ(Commands("DELETE", TopicPath("t")), "TOPIC.DROP t");
  EXPECT_EQ(Commands("GET", "/v1/stats"), "INFO");
  EXPECT_EQ(Commands("GET", "/v1/cluster"), "NODES");
  EXPECT_EQ(Commands("POST", "/v1/clock/advance", R"({"ms":9})"), "CLOCK.ADVANCE 9");
  EXPECT_EQ(Commands("GET", TopicPath("t", "/jobs?state=dead&limit=7&cursor=5f%3A4")),
            "JOB.LIST t STATE dead LIMIT 7 CURSOR 5f:4");
  EXPECT_EQ(Commands("GET", TopicPath("t", "/jobs?state=dead&reason=not%20found")),
            "JOB.LIST t STATE dead REASON not found");
  EXPECT_EQ(Commands("GET", JobPath("t", "cart/1", "ann lee")), "JOB.GET t cart/1 KEY ann lee");
  EXPECT_EQ(Commands("GET", JobPath("t", "1", "")), "JOB.GET t 1");
  EXPECT_EQ(Commands("DELETE", JobPath("t", "1", "k")), "JOB.CANCEL t 1 KEY k");
  EXPECT_EQ(Commands("POST", JobPath("t", "1", "k", "/fire")), "JOB.FIRE t 1 KEY k");
  EXPECT_EQ(Commands("POST", JobPath("t", "1", "k", "/count"), R"({"by":2,"event":"e"})"),
            "JOB.COUNT t 1 e BY 2 KEY k");
  EXPECT_EQ(Commands("PATCH", JobPath("t", "1", ""), R"({"delay_ms":5,"payload":""})"),
            "JOB.AMEND t 1 DELAY 5 PAYLOAD ");
  EXPECT_EQ(Commands("PATCH", JobPath("t", "1", ""), R"({"due_ms":5})"), "JOB.AMEND t 1 AT 5");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/reserve"), R"({"max":2,"wait_ms":3,"lease_ms":4})"),
            "JOB.RESERVE t MAX 2 WAIT 3 LEASE 4");
  EXPECT_THAT(Commands("POST", "/v1/elsewhere"), HasSubstr("no command for"));
}

TEST(RespCalls, ASubmitSaysAllOfAJob) {
  EXPECT_EQ(Commands("POST", TopicPath("t", "/jobs"), "{}"), "JOB.SUBMIT t ") << "a job may be empty";
  EXPECT_EQ(Commands("POST", TopicPath("t", "/jobs"),
                     R"({"id":"i","key":"k","delay_ms":1,"payload":"p","headers":{"a":"1","b":""},"trigger":"either",)"
                     R"("count":3,"max_attempts":4,"on_conflict":"replace"})"),
            "JOB.SUBMIT t p ID i KEY k DELAY 1 TRIGGER either COUNT 3 ATTEMPTS 4 REPLACE HEADER a 1 HEADER b ");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/jobs"), R"({"on_conflict":"keep","due_ms":18446744073709551615})"),
            "JOB.SUBMIT t  AT 18446744073709551615 KEEP");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/jobs"), R"({"on_conflict":"reject"})"), "JOB.SUBMIT t ");
  EXPECT_EQ(Commands("POST", TopicPath("t", "/jobs"), R"({"payload_base64":"/wD+"})"),
            std::string("JOB.SUBMIT t \xFF\0\xFE", 16));
  EXPECT_EQ(Commands("POST", TopicPath("t", "/jobs"), R"({"jobs":[{"payload":"a"},{"payload":"b","id":"2"}]})"),
            "JOB.SUBMIT t a\nJOB.SUBMIT t b ID 2");
}

TEST(RespCalls, WhatHttpWouldRefuseIsRefusedWithTheSameCode) {
  const auto submit = [](std::string_view job) { return Commands("POST", TopicPath("t", "/jobs"), job); };
  EXPECT_EQ(submit(R"({"dealy_ms":5})"),
            R"(unknown_field: unknown field "dealy_ms"; did you mean "delay_ms"? (dealy_ms))");
  EXPECT_EQ(submit(R"({"delay_ms":"5"})"), "invalid_argument: delay_ms takes an integer (delay_ms)");
  for (const char* job :
       {R"({"delay_ms":1.0})", R"({"delay_ms":null})", R"({"id":5})", R"({"payload":5})", R"({"payload_base64":"?"})",
        R"({"payload":"","payload_base64":""})", R"({"headers":[]})", R"({"headers":{"a":1}})",
        R"({"on_conflict":"maybe"})", R"({"on_conflict":1})", R"({"jobs":[{},5]})", R"({"jobs":[{},{"count":"1"}]})"}) {
    EXPECT_THAT(submit(job), testing::StartsWith("invalid_argument: ")) << job;
  }
  EXPECT_THAT(Commands("PUT", TopicPath("t"), R"({"paused":1})"), testing::StartsWith("invalid_argument: "));
  EXPECT_THAT(Commands("PUT", TopicPath("t"), R"({"delivery":"pull"})"), testing::StartsWith("invalid_argument: "));
  EXPECT_THAT(Commands("PUT", TopicPath("t"), R"({"delivery":{"url":null}})"), HasSubstr("url takes"));
  EXPECT_THAT(Commands("POST", JobPath("t", "1", "", "/count")), HasSubstr("event is missing"));
}

TEST(RespCalls, TokensCannotBeTakenForOptions) {
  EXPECT_EQ(Commands("POST", TopicPath("t", "/nack"),
                     fmt::format(R"({{"reason":"r s","delay_ms":0,"tokens":["{0}","{0}"]}})", kToken)),
            fmt::format("JOB.NACK t {0} {0} DELAY 0 REASON r s", kToken));
  EXPECT_EQ(Commands("POST", TopicPath("t", "/ack"), fmt::format(R"({{"tokens":["{}"]}})", kToken)),
            fmt::format("JOB.ACK t {}", kToken));
  EXPECT_EQ(Commands("POST", TopicPath("t", "/extend"), fmt::format(R"({{"tokens":["{}"],"lease_ms":1}})", kToken)),
            fmt::format("JOB.EXTEND t {} LEASE 1", kToken));
  EXPECT_THAT(Commands("POST", TopicPath("t", "/nack"), fmt::format(R"({{"tokens":["{}","DELAY","5"]}})", kToken)),
              HasSubstr("(tokens[1])"));
  EXPECT_THAT(Commands("POST", TopicPath("t", "/ack"), R"({"tokens":[]})"), HasSubstr("tokens is missing"));
}

TEST(RespCalls, AnswersToASubmitAreItsOutcomes) {
  const std::string target = TopicPath("t", "/jobs");
  EXPECT_EQ(Answer("POST", target, "{}", "*3\r\n$2\r\nj1\r\n+accepted\r\n:5\r\n"),
            R"({"jobs":[{"id":"j1","due_ms":5,"outcome":"accepted"}]})");
  EXPECT_EQ(Answer("POST", target, R"({"id":"a"})", "*3\r\n$1\r\na\r\n+duplicate\r\n_\r\n"),
            R"({"jobs":[{"id":"a","due_ms":null,"outcome":"duplicate"}]})");
  EXPECT_EQ(Answer("POST", target, R"({"id":"a"})", "-CONFLICT conflict: it is stored\r\n"),
            R"({"jobs":[{"id":"a","outcome":"conflict"}]})");
  EXPECT_EQ(Answer("POST", target, "{}", "-STORAGEFULL storage_full: no room\r\n"),
            R"({"jobs":[{"id":null,"outcome":"storage_full"}]})");
  EXPECT_EQ(Answer("POST", target, "{}", "-OVERCAPACITY 10000 topics exist\r\n"), "over_capacity: 10000 topics exist");
  EXPECT_EQ(Answer("POST", target, "{}", "-INVALID DELAY is -5\r\n"), "invalid_argument: DELAY is -5 (delay_ms)");
}

TEST(RespCalls, OneBadJobOfABatchLeavesTheOthers) {
  const std::string target = TopicPath("t", "/jobs");
  constexpr std::string_view kBatch = R"({"jobs":[{"id":"a"},{"id":"b"},{"id":"c"}]})";
  EXPECT_EQ(
      Answer("POST", target, kBatch,
             "*3\r\n$1\r\na\r\n+accepted\r\n:5\r\n-INVALID delay is -5\r\n-CONFLICT in_flight: taken\r\n"),
      R"-({"jobs":[{"id":"a","due_ms":5,"outcome":"accepted"},{"outcome":"invalid_argument: delay is -5 (delay_ms)"},)-"
      R"({"id":"c","outcome":"in_flight"}]})");
  EXPECT_EQ(Answer("POST", target, kBatch, "-NOPERM a\r\n-NOPERM b\r\n-NOPERM c\r\n"), "forbidden: a")
      << "what is not about one job fails the call";
}

TEST(RespCalls, DeliveredJobsLookAsOverHttp) {
  EXPECT_EQ(
      Answer("POST", TopicPath("t", "/reserve"), R"({"max":2})",
             "*2\r\n"
             "*9\r\n$1\r\na\r\n$2\r\nT1\r\n$2\r\nhi\r\n:1\r\n:16\r\n:5\r\n:9\r\n_\r\n%0\r\n"
             "*9\r\n$1\r\nb\r\n$2\r\nT2\r\n$1\r\n\xFF\r\n:2\r\n:3\r\n:6\r\n:10\r\n$1\r\nk\r\n%1\r\n+h\r\n$1\r\nv\r\n"),
      R"({"jobs":[{"id":"a","token":"T1","attempt":1,"max_attempts":16,"due_ms":5,"lease_deadline_ms":9,)"
      R"("payload":"hi"},{"id":"b","token":"T2","attempt":2,"max_attempts":3,"due_ms":6,"lease_deadline_ms":10,)"
      R"("key":"k","headers":{"h":"v"},"payload_base64":"/w=="}]})");
  EXPECT_EQ(Answer("POST", TopicPath("t", "/reserve"), "{}", "*0\r\n"), R"({"jobs":[]})");
}

TEST(RespCalls, PayloadsThatAreLongerEscapedAreBase64) {
  const auto payload = [](const std::string& bytes) {
    return Answer("GET", JobPath("t", "1", ""), "{}",
                  fmt::format("%2\r\n+headers\r\n%1\r\n+payload\r\n$1\r\n\x01\r\n+payload\r\n${}\r\n{}\r\n",
                              bytes.size(), bytes));
  };
  EXPECT_THAT(payload("ab\n"), HasSubstr(R"("payload":"ab\n")"));
  EXPECT_THAT(payload(std::string(100, '\x01')), HasSubstr("payload_base64")) << "six bytes each as text";
  EXPECT_THAT(payload(std::string(8, '\x01')), HasSubstr(R"("payload":"\u0001)"));
  EXPECT_THAT(payload("x"), HasSubstr(R"("headers":{"payload":"\u0001"})")) << "a header is not a payload";
}

TEST(RespCalls, TextsThatAreNoUtf8AreNamedAsSuch) {
  EXPECT_EQ(Answer("GET", JobPath("t", "1", ""), "{}", "%2\r\n$1\r\n\xFF\r\n:1\r\n+reason\r\n$2\r\n\xC3(\r\n"),
            R"({"not valid UTF-8":1,"reason":"not valid UTF-8"})");
  EXPECT_THAT(Answer("GET", "/v1/stats", "{}", "$10\r\ntotals_\xFF:\xFF\r\n"),
              HasSubstr(R"("totals":{"not valid UTF-8":"not valid UTF-8"})"));
}

TEST(RespCalls, OtherAnswersLookAsOverHttp) {
  EXPECT_EQ(Answer("GET", JobPath("t", "1", ""), "{}", "_\r\n"), "not_found: no job 1 is stored (id)");
  EXPECT_EQ(Answer("GET", TopicPath("t", "/jobs"), "{}", "*2\r\n$3\r\n5:4\r\n*1\r\n%1\r\n+id\r\n+a\r\n"),
            R"({"jobs":[{"id":"a"}],"cursor":"5:4"})");
  EXPECT_EQ(Answer("GET", TopicPath("t", "/jobs"), "{}", "*2\r\n_\r\n*0\r\n"), R"({"jobs":[]})");
  EXPECT_EQ(Answer("PATCH", JobPath("t", "1", ""), "{}", "*2\r\n+amended\r\n_\r\n"), R"({"outcome":"amended"})");
  EXPECT_EQ(Answer("POST", JobPath("t", "1", "", "/fire"), "{}", "*2\r\n+fired\r\n:7\r\n"),
            R"({"outcome":"fired","due_ms":7})");
  EXPECT_EQ(Answer("DELETE", JobPath("t", "1", ""), "{}", "+unknown\r\n"), R"({"outcome":"unknown"})");
  EXPECT_EQ(Answer("POST", JobPath("t", "1", "", "/count"), R"({"event":"e"})", "*2\r\n+counted\r\n:2\r\n"),
            R"({"outcome":"counted","left":2})");
  EXPECT_EQ(Answer("POST", TopicPath("t", "/ack"), fmt::format(R"({{"tokens":["{}"]}})", kToken), "*1\r\n+stale\r\n"),
            fmt::format(R"({{"results":[{{"token":"{}","outcome":"stale"}}]}})", kToken));
  EXPECT_EQ(Answer("POST", TopicPath("t", "/purge"), "{}", ":3\r\n"), R"({"purged":3})");
  EXPECT_EQ(Answer("POST", TopicPath("t", "/dead/redrive"), "{}", ":3\r\n"), R"({"redriven":3})");
  EXPECT_EQ(Answer("DELETE", TopicPath("t"), "{}", "+OK\r\n"), R"({"outcome":"dropped"})");
  EXPECT_EQ(Answer("POST", "/v1/clock/advance", R"({"ms":1})", ":12\r\n"), R"({"now_ms":12})");
  EXPECT_EQ(Answer("GET", "/v1/topics", "{}", "*1\r\n%2\r\n+topic\r\n+t\r\n+paused\r\n#f\r\n"),
            R"({"topics":[{"topic":"t","paused":false}]})");
  EXPECT_THAT(Answer("GET", "/v1/topics", "{}", "+OK\r\n"), HasSubstr("something else than it should"));
  EXPECT_EQ(Answer("GET", "/v1/topics", "{}", "-NOPERM it needs admin\r\n"), "forbidden: it needs admin");
  EXPECT_EQ(Answer("GET", TopicPath("t", "/jobs"), "{}", "-INVALID cursor is too old\r\n"),
            "invalid_argument: cursor is too old (cursor)");
  EXPECT_EQ(Answer("GET", TopicPath("t"), "{}", "-NOTOPIC no topic t\r\n"), "topic_not_found: no topic t (topic)");
  EXPECT_EQ(Answer("GET", TopicPath("t", "/jobs"), "{}", "-OVERLOADED\r\n"), "overloaded: ");
}

TEST(RespCalls, InfoLooksAsTheStatsOfHttp) {
  constexpr std::string_view kInfo =
      "# server\r\ntocsin_version:0.1.0\r\nredis_mode:standalone\r\nnow_ms:18\r\nuptime_ms:2\r\nshards:1\r\n"
      "connections:3\r\ntopics:4\r\n\r\n# totals\r\ntotals_scheduled:5\r\ntotals_purged:0\r\n\r\n"
      "# lateness\r\nlateness_ms_count:3\r\nlateness_ms_p50:0.125\r\n\r\n# conservation\r\nconservation_in:6\r\n"
      "conservation_out:6\r\nconservation_difference:0\r\n";
  EXPECT_EQ(Answer("GET", "/v1/stats", "{}", fmt::format("${}\r\n{}\r\n", kInfo.size(), kInfo)),
            R"({"version":"0.1.0","now_ms":18,"uptime_ms":2,"shards":1,"connections":3,"topics":4,)"
            R"("totals":{"scheduled":5,"purged":0},"conservation":{"in":6,"out":6,"difference":0},)"
            R"("lateness_ms":{"count":3,"p50":1.25E-1}})");
  EXPECT_THAT(Answer("GET", "/v1/stats", "{}", "$8\r\nnow_ms:1\r\n"), testing::StartsWith("forbidden: "))
      << "who may not see all topics gets no figures";
}

}  // namespace
}  // namespace tocsin::cli
