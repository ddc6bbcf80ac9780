#include "sinks/webhook/batch.h"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sinks/webhook/sink_test_site.h"

namespace tocsin::webhook {
namespace {

using testing::HasSubstr;

class BatchTest : public testing::Test {
 protected:
  BatchTest() {
    jobs_ = {Job("a"), Job("b"), Job("c")};
    for (const JobView& job : jobs_) views_.push_back(&job);
  }
  std::vector<Delivered> Read(std::string_view body) { return ReadOutcomes(body, views_); }
  void ExpectAllRetried(std::string_view body) {
    for (const Delivered& delivered : Read(body)) {
      EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry) << body;
      EXPECT_THAT(delivered.reason, HasSubstr("not a list of outcomes")) << body;
    }
  }

  std::vector<JobView> jobs_;
  std::vector<const JobView*> views_;
};

TEST_F(BatchTest, JobsAreAList) {
  jobs_[0].payload = "\"\\\n\x01 \xc3\xb6";
  jobs_[0].headers = {{"n\"", "v\t"}, {"m", ""}};
  jobs_[0].key = "k";
  jobs_[1].payload = "\xff\0x";
  jobs_[1].own_id = {};
  jobs_[2].due = kNever;
  jobs_[2].payload = std::string_view("\x01\x02\x03\x04", 4);
  std::string text;
  AppendBatch(text, "orders", views_);
  EXPECT_EQ(
      boost::json::parse(text),
      boost::json::parse(fmt::format(
          R"({{"jobs":[{{"id":"a","topic":"orders","attempt":1,"due_ms":1700000000000,"token":"{0}","key":"k",)"
          R"("headers":{{"n\"":"v\t","m":""}},"payload":"\"\\\n\u0001 \u00f6"}},)"
          R"({{"id":"{1}","topic":"orders","attempt":1,"due_ms":1700000000000,"token":"{0}","payload_base64":"/w=="}},)"
          R"({{"id":"c","topic":"orders","attempt":1,"token":"{0}",)"
          R"("payload":"\u0001\u0002\u0003\u0004"}}]}})",
          TokenText(jobs_[0].token), UidText(jobs_[1].uid))));
}

TEST_F(BatchTest, APayloadOfControlCharactersIsBase64) {
  const std::string payload(300, '\x01');
  jobs_[0].payload = payload;
  std::string text;
  AppendBatch(text, "orders", std::span(views_).first(1));
  EXPECT_THAT(text, HasSubstr("payload_base64"));
}

TEST_F(BatchTest, EachJobGetsItsOutcome) {
  const auto outcomes =
      Read(R"({"outcomes":[{"id":"c","outcome":"refuse","reason":"gone\nfor good"},{"id":"a","outcome":"ok"},)"
           R"({"id":"b","outcome":"retry","delay_ms":1500}]})");
  EXPECT_EQ(outcomes[0].outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(outcomes[0].reason, "");
  EXPECT_EQ(outcomes[1].outcome, DeliverOutcome::kRetry);
  EXPECT_EQ(outcomes[1].delay, Millis(1'500));
  EXPECT_EQ(outcomes[1].reason, "the receiver asked for another try");
  EXPECT_EQ(outcomes[2].outcome, DeliverOutcome::kRefused);
  EXPECT_EQ(outcomes[2].reason, "the receiver says: gone for good");
}

TEST_F(BatchTest, AnEmptyBodyConfirmsAll) {
  for (const char* body : {"", " \r\n"}) {
    for (const Delivered& delivered : Read(body)) EXPECT_EQ(delivered.outcome, DeliverOutcome::kConfirmed);
  }
}

TEST_F(BatchTest, WhatIsNoListRetriesAll) {
  for (const char* body : {"OK", "{}", "[]", "{\"outcomes\":{}}", "{\"outcomes\":[", "null", "\xff"}) {
    ExpectAllRetried(body);
  }
  ExpectAllRetried(std::string(100'000, '['));
}

TEST_F(BatchTest, OnlyOneListIsRead) {
  ExpectAllRetried(R"({"outcomes":[{"id":"a","outcome":"ok"}],"outcomes":[]})");
  ExpectAllRetried(R"({"outcomes":1,"outcomes":[{"id":"a","outcome":"ok"}]})");
  ExpectAllRetried(R"([{"outcomes":[{"id":"a","outcome":"ok"}]}])");
  ExpectAllRetried(R"({"a":{"outcomes":[{"id":"a","outcome":"ok"}]}})");
  ExpectAllRetried(R"({"outcomes":[{"id":"a","outcome":"ok"}]} x)");
  const auto outcomes =
      Read(R"({"n":{"outcomes":[]},"outcomes":[["id","a"],{"x":{"id":"c"},"id":["a"],"outcome":"ok"},)"
           R"({"id":7,"\u0069d":"b","outcome":"retry","outcome":"o\u006b","more":[{"id":"a"}]}],"z":[]})");
  EXPECT_EQ(outcomes[0].outcome, DeliverOutcome::kRetry);
  EXPECT_EQ(outcomes[1].outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(outcomes[2].outcome, DeliverOutcome::kRetry);
}

TEST_F(BatchTest, AListThatRepeatsAnIdIsReadQuickly) {
  for (size_t i = 0; i < 500; ++i) jobs_.push_back(Job("a"));
  views_.clear();
  for (const JobView& job : jobs_) views_.push_back(&job);
  std::string body = R"({"outcomes":[)";
  while (body.size() < kBatchBytesMax) body += R"({"id":"a","outcome":"ok"},)";
  const auto began = std::chrono::steady_clock::now();
  const auto outcomes = Read(body + "{}]}");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1));
  EXPECT_EQ(std::ranges::count(outcomes, DeliverOutcome::kConfirmed, &Delivered::outcome), 501);
}

TEST_F(BatchTest, AJobThatIsNotInTheListIsRetried) {
  const auto outcomes =
      Read(R"({"outcomes":[7,{"id":7},{"id":"x","outcome":"ok"},{"outcome":"ok"},{"id":"b","outcome":"ok"}]})");
  EXPECT_EQ(outcomes[0].outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(outcomes[0].reason, HasSubstr("lacks the job"));
  EXPECT_EQ(outcomes[1].outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(outcomes[2].outcome, DeliverOutcome::kRetry);
}

TEST_F(BatchTest, AnOutcomeThatIsNoneIsRetried) {
  const auto outcomes = Read(R"({"outcomes":[{"id":"a","outcome":"OK"},{"id":"b"},{"id":"c","outcome":true}]})");
  for (const Delivered& delivered : outcomes) {
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry);
    EXPECT_THAT(delivered.reason, HasSubstr("not ok, retry or refuse"));
  }
}

TEST_F(BatchTest, JobsOfTheSameIdAreAnsweredInOrder) {
  jobs_[2].own_id = "a";
  const auto outcomes =
      Read(R"({"outcomes":[{"id":"a","outcome":"ok"},{"id":"b","outcome":"ok"},{"id":"a","outcome":"refuse"}]})");
  EXPECT_EQ(outcomes[0].outcome, DeliverOutcome::kConfirmed);
  EXPECT_EQ(outcomes[2].outcome, DeliverOutcome::kRefused);
}

TEST_F(BatchTest, ATokenTellsJobsOfTheSameIdApart) {
  jobs_[1].own_id = "a";
  for (size_t i = 0; i < jobs_.size(); ++i) jobs_[i].token.handle = 10 + i;
  const auto outcomes = Read(fmt::format(
      R"({{"outcomes":[{{"id":"a","token":"{}","outcome":"refuse"}},{{"token":"{}","outcome":"ok"}},{{"id":"a","outcome":"ok"}},)"
      R"({{"id":"c","token":"{}","outcome":"ok"}}]}})",
      TokenText(jobs_[1].token), TokenText(jobs_[1].token), TokenText(Token{.slot = 9, .handle = 9, .fence = 9})));
  EXPECT_EQ(outcomes[1].outcome, DeliverOutcome::kRefused);
  EXPECT_EQ(outcomes[0].outcome, DeliverOutcome::kConfirmed) << "the other one of that id";
  EXPECT_EQ(outcomes[2].outcome, DeliverOutcome::kRetry) << "no token of the batch";
}

TEST_F(BatchTest, AnAnswerMayHaveAsMuchAsItsJobsNeed) {
  EXPECT_EQ(OutcomesBytesMax(1), 6 << 10);
  EXPECT_EQ(OutcomesBytesMax(100), 204 << 10);
  EXPECT_EQ(OutcomesBytesMax(1'000), 1 << 20);
  // The longest that a job's outcome can be: two bytes of UTF-8 as six of JSON.
  const std::string escaped_id(256 / 2 * 6, 'i');
  const std::string escaped_reason(200 / 2 * 6, 'r');
  const std::string outcome =
      fmt::format(R"({{"id":"{}","token":"{}","outcome":"retry","delay_ms":{},"reason":"{}"}},)", escaped_id,
                  TokenText({}), kRetryDelayMax.count(), escaped_reason);
  EXPECT_LT(outcome.size(), OutcomesBytesMax(2) - OutcomesBytesMax(1));
}

TEST_F(BatchTest, WhatAReceiverAsksForHasBounds) {
  const auto outcomes = Read(fmt::format(
      R"({{"outcomes":[{{"id":"a","outcome":"retry","delay_ms":99999999999}},{{"id":"b","outcome":"retry","delay_ms":-1}},)"
      R"({{"id":"c","outcome":"retry","delay_ms":"x","reason":"{}"}}]}})",
      std::string(199, 'r') + "\xc3\xb6rest"));
  EXPECT_EQ(Read(R"({"outcomes":[{"id":"a","outcome":"retry","delay_ms":1.5e3}]})")[0].delay, Millis(1'500));
  EXPECT_EQ(Read(R"({"outcomes":[{"id":"a","outcome":"retry","delay_ms":1.5}]})")[0].delay, std::nullopt);
  EXPECT_EQ(outcomes[0].delay, std::chrono::days(1));
  EXPECT_EQ(outcomes[1].delay, std::nullopt);
  EXPECT_EQ(outcomes[2].delay, std::nullopt);
  EXPECT_EQ(outcomes[2].reason, "the receiver says: " + std::string(199, 'r'));
}

}  // namespace
}  // namespace tocsin::webhook
