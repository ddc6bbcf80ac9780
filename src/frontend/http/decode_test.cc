#include "frontend/http/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/http/fields.h"

namespace tocsin::http {
namespace {

using testing::HasSubstr;

constexpr size_t kBatchMax = 3;

Result<std::shared_ptr<Document>> Parse(std::string_view body) {
  static boost::json::parser parser = MakeParser();
  return Document::Parse(parser, body);
}

Result<SubmitRequest> Submit(std::string_view body) {
  auto document = Parse(body);
  if (!document) return std::unexpected(document.error());
  return DecodeSubmit("mail", *document, kBatchMax);
}

Error SubmitError(std::string_view body) {
  auto request = Submit(body);
  EXPECT_FALSE(request) << body;
  return request ? Error{} : request.error();
}

TEST(DecodeSubmit, TakesEveryField) {
  const auto request =
      Submit(R"({"id":"order-7","key":"user-3","due_ms":1800000000123,"payload":"hällo","trigger":"either",
      "headers":{"a":"1","b":""},"count":3,"max_attempts":5,"on_conflict":"keep"})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->topic, "mail");
  ASSERT_EQ(request->jobs.size(), 1U);
  const NewJob& job = request->jobs[0];
  EXPECT_EQ(job.id, "order-7");
  EXPECT_EQ(job.key, "user-3");
  EXPECT_EQ(job.timeline, Timeline::kUtc);
  EXPECT_EQ(ToMs(job.due), 1800000000123);
  EXPECT_EQ(job.payload, "hällo");
  EXPECT_EQ(job.trigger, Trigger::kEither);
  ASSERT_EQ(job.headers.size(), 2U);
  EXPECT_EQ(job.headers[0].name, "a");
  EXPECT_EQ(job.headers[0].value, "1");
  EXPECT_EQ(job.headers[1].value, "");
  EXPECT_EQ(job.count, 3U);
  EXPECT_EQ(job.max_attempts, 5U);
  EXPECT_EQ(job.on_conflict, OnConflict::kKeep);
}

TEST(DecodeSubmit, ADelayIsOnTheSteadyTimelineAndTheDefaultIsNow) {
  EXPECT_EQ(Submit(R"({"delay_ms":5000})")->jobs[0].delay, Millis(5'000));
  EXPECT_EQ(Submit(R"({"delay_ms":5000})")->jobs[0].timeline, Timeline::kSteady);
  EXPECT_EQ(Submit(R"({"payload":"x"})")->jobs[0].delay, Millis(0));
}

TEST(DecodeSubmit, ViewsOutliveTheParserAndItsNextUse) {
  auto request = Submit(R"({"jobs":[{"id":"first","payload":"one"},{"payload_base64":"/wD+"}]})");
  ASSERT_TRUE(request);
  ASSERT_TRUE(Submit(R"({"jobs":[{"id":"other","payload":"two"}]})"));
  ASSERT_EQ(request->jobs.size(), 2U);
  EXPECT_EQ(request->jobs[0].id, "first");
  EXPECT_EQ(request->jobs[0].payload, "one");
  EXPECT_EQ(request->jobs[1].payload, std::string_view("\xFF\0\xFE", 3));
}

TEST(DecodeSubmit, NamesTheFieldThatIsWrong) {
  const std::pair<std::string_view, std::string_view> wrong[] = {
      {R"({"id":7})", "id"},
      {R"({"id":""})", "id"},
      {R"({"key":null})", "key"},
      {R"({"key":""})", "key"},
      {R"({"delay_ms":"5"})", "delay_ms"},
      {R"({"delay_ms":1.5})", "delay_ms"},
      {R"({"delay_ms":1e3})", "delay_ms"},
      {R"({"delay_ms":-1})", "delay_ms"},
      {R"({"delay_ms":315619200001})", "delay_ms"},
      {R"({"delay_ms":18446744073709551615})", "delay_ms"},
      {R"({"due_ms":-1})", "due_ms"},
      {R"({"delay_ms":1,"due_ms":1})", "due_ms"},
      {R"({"payload":{}})", "payload"},
      {R"({"payload":"a","payload_base64":"YQ=="})", "payload_base64"},
      {R"({"payload_base64":"YQ"})", "payload_base64"},
      {R"({"headers":[]})", "headers"},
      {R"({"headers":{"a":1}})", "headers.a"},
      {R"({"trigger":"never"})", "trigger"},
      {R"({"trigger":"either"})", "delay_ms"},
      {R"({"count":0})", "count"},
      {R"({"count":4294967296})", "count"},
      {R"({"max_attempts":0})", "max_attempts"},
      {R"({"on_conflict":"Keep"})", "on_conflict"},
      {R"({"jobs":{}})", "jobs"},
      {R"({"jobs":[]})", "jobs"},
      {R"({"jobs":[{},{},{},{}]})", "jobs"},
      {R"({"jobs":[{}],"id":"a"})", "id"},
      {R"({"jobs":[{},7]})", "jobs[1]"},
      {R"({"jobs":[{},{"delay_ms":-1}]})", "jobs[1].delay_ms"},
  };
  for (const auto& [body, field] : wrong) {
    const Error error = SubmitError(body);
    EXPECT_EQ(error.code, Code::kInvalidArgument) << body;
    EXPECT_EQ(error.field, field) << body;
    EXPECT_FALSE(error.message.empty());
  }
}

TEST(DecodeSubmit, MessagesGiveTheLimit) {
  EXPECT_THAT(SubmitError(R"({"delay_ms":-1})").message, HasSubstr("0 to 315619200000"));
  EXPECT_THAT(SubmitError(R"({"jobs":[{},{},{},{}]})").message, HasSubstr("1 to 3"));
  EXPECT_THAT(SubmitError(R"({"trigger":"never"})").message, HasSubstr("time, count, either"));
  EXPECT_THAT(SubmitError(R"({"count":0})").message, HasSubstr(fmt::format("1 to {}", kCountMax)));
  EXPECT_THAT(SubmitError(R"({"max_attempts":0})").message, HasSubstr("the least is 1"));
  EXPECT_THAT(DecodeReserve("mail", **Parse(R"({"wait_ms":-1})"), Limits{}).error().message, HasSubstr("0 to 60000"));
}

TEST(DecodeSubmit, LeavesBoundsThatOnlyTheServiceKnowsToIt) {
  EXPECT_EQ(ToMs(Submit(R"({"due_ms":18446744073709551615})")->jobs[0].due), ToMs(kNever) - 1);
  EXPECT_EQ(Submit(R"({"max_attempts":4294967297})")->jobs[0].max_attempts, 4294967295U);
}

TEST(DecodeSubmit, LongNamesAreCutShortInErrors) {
  const std::string name(100'000, 'n');
  for (const std::string& body :
       {fmt::format(R"({{"headers":{{"{}":1}}}})", name), fmt::format(R"({{"jobs":[{{}}],"{}":1}})", name),
        fmt::format(R"({{"{}":1}})", name)}) {
    const Error error = SubmitError(body);
    EXPECT_LT(error.message.size(), 400U);
    EXPECT_LT(error.field.size(), 100U);
    EXPECT_THAT(error.field, HasSubstr("nnn..."));
  }
}

TEST(OnTheWire, HasTheNamesAndPathsOfTheWire) {
  const Error one = OnTheWire({Code::kInvalidArgument, "delay is -5 ms: the range is 0 to 9 ms", "delay"});
  EXPECT_EQ(one.field, "delay_ms");
  EXPECT_EQ(one.message, "delay_ms is -5 ms: the range is 0 to 9 ms");
  const Error in_batch = OnTheWire({Code::kInvalidArgument, "jobs[2]: due is -5 ms: the range is 0 to 9 ms", "due"});
  EXPECT_EQ(in_batch.field, "jobs[2].due_ms");
  EXPECT_EQ(in_batch.message, "jobs[2]: due_ms is -5 ms: the range is 0 to 9 ms");
  EXPECT_EQ(OnTheWire({Code::kTooLarge, "payload has 2 bytes: the most is 1", "payload"}).field, "payload");
}

TEST(DecodeSubmit, AnUnknownFieldIsNamedWithTheNearestKnownOne) {
  const Error error = SubmitError(R"({"jobs":[{"delay_sm":1}]})");
  EXPECT_EQ(error.code, Code::kUnknownField);
  EXPECT_EQ(error.field, "jobs[0].delay_sm");
  EXPECT_THAT(error.message, HasSubstr("\"delay_ms\""));
}

TEST(Document, RefusesWhatIsNotAnObject) {
  for (const char* body : {"", "{", "[]", "1", "{} x", "{\"a\":}", "\"\xFF\"", "{\"payload\":\"\xC3\"}"}) {
    const auto document = Parse(body);
    ASSERT_FALSE(document) << body;
    EXPECT_EQ(document.error().code, Code::kInvalidArgument);
  }
  EXPECT_TRUE(Parse("{}")) << "the parser is of use after errors";
}

/// Counts what is allocated and not yet given back.
class CountingResource : public boost::json::memory_resource {
 public:
  size_t held = 0;

 private:
  void* do_allocate(size_t bytes, size_t) override {
    held += bytes;
    return ::operator new(bytes);
  }
  void do_deallocate(void* at, size_t bytes, size_t) override {
    held -= bytes;
    ::operator delete(at);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

std::string ManyZeros(size_t count) {
  std::string body = R"({"jobs":[0)";
  for (size_t i = 1; i < count; ++i) body += ",0";
  return body + "]}";
}

TEST(Document, ALargeBodyLeavesNothingInTheParser) {
  CountingResource memory;
  boost::json::parser parser(&memory);
  ASSERT_TRUE(Document::Parse(parser, ManyZeros(100)));
  const size_t small = memory.held;
  EXPECT_GT(small, 0U);
  ASSERT_TRUE(Document::Parse(parser, ManyZeros(100'000)));
  EXPECT_FALSE(Document::Parse(parser, ManyZeros(100'000) + "x"));
  EXPECT_EQ(memory.held, small);
}

TEST(Document, RefusesMoreValuesThanABatchNeedsBeforeItParsesThem) {
  const auto refused = Parse(ManyZeros(2'000'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
  EXPECT_THAT(refused.error().message, HasSubstr("1048576"));
  EXPECT_TRUE(Parse(ManyZeros(1'000'000)));
  EXPECT_EQ(Parse(R"({"payload":"\"","a":)" + ManyZeros(2'000'000) + "}").error().code, Code::kTooLarge);
  EXPECT_TRUE(Parse(R"({"payload":"\\\")" + std::string(2'000'000, ',') + R"("})"))
      << "commas in strings are no values";
}

TEST(Document, NestsThirtyTwoDeep) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth - 1, '[') + std::string(depth - 1, ']') + "}";
  };
  EXPECT_TRUE(Parse(nested(32)));
  const auto deep = Parse(nested(33));
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().message, HasSubstr("32"));
}

TEST(DecodeReserve, TakesItsFields) {
  const auto request = DecodeReserve("mail", **Parse(R"({"max":10,"wait_ms":20000,"lease_ms":30000})"), Limits{});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->max, 10U);
  EXPECT_EQ(request->wait, Millis(20'000));
  EXPECT_EQ(request->lease, Millis(30'000));
  EXPECT_EQ(DecodeReserve("mail", **Parse("{}"), Limits{})->max, 1U);
}

TEST(DecodeReserve, NamesTheFieldThatIsWrong) {
  for (const auto& [body, field] : {std::pair(R"({"max":0})", "max"), std::pair(R"({"wait_ms":-1})", "wait_ms"),
                                    std::pair(R"({"lease_ms":0})", "lease_ms"), std::pair(R"({"wait":1})", "wait")}) {
    const auto request = DecodeReserve("mail", **Parse(body), Limits{});
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().field, field);
  }
}

TEST(DecodeAck, TakesTokens) {
  const Token token{.slot = 3, .handle = 77, .fence = 12345678901234};
  const auto request = DecodeAck("mail", **Parse(fmt::format(R"({{"tokens":["{}"]}})", TokenText(token))), kBatchMax);
  ASSERT_TRUE(request);
  ASSERT_EQ(request->settlements.size(), 1U);
  EXPECT_EQ(request->settlements[0].token, token);
  EXPECT_EQ(request->settlements[0].kind, SettleKind::kAck);
}

TEST(DecodeAck, NamesTheTokenThatIsNone) {
  const std::string good = TokenText({.slot = 1, .handle = 2, .fence = 3});
  const auto request = DecodeAck("mail", **Parse(fmt::format(R"({{"tokens":["{}","x"]}})", good)), kBatchMax);
  ASSERT_FALSE(request);
  EXPECT_EQ(request.error().field, "tokens[1]");
  EXPECT_EQ(DecodeAck("mail", **Parse("{}"), kBatchMax).error().field, "tokens");
  EXPECT_EQ(DecodeAck("mail", **Parse(R"({"tokens":[]})"), kBatchMax).error().field, "tokens");
}

TEST(DecodeAdvance, TakesMilliseconds) {
  EXPECT_EQ(*DecodeAdvance(**Parse(R"({"ms":2592000000})")), std::chrono::days(30));
  EXPECT_EQ(DecodeAdvance(**Parse(R"({"ms":-1})")).error().field, "ms");
  EXPECT_EQ(DecodeAdvance(**Parse("{}")).error().field, "ms");
}

}  // namespace
}  // namespace tocsin::http
