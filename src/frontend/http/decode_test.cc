#include "frontend/http/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

using testing::HasSubstr;

constexpr size_t kFewJobs = 3;

Result<std::shared_ptr<Document>> Parse(std::string_view body) {
  static const auto parser = MakeParser();
  return Document::Parse(parser, body);
}

Result<SubmitRequest> Submit(std::string_view body) {
  auto document = Parse(body);
  if (!document) return std::unexpected(document.error());
  return DecodeSubmit("mail", *document, kFewJobs);
}

Error SubmitError(std::string_view body) {
  auto request = Submit(body);
  EXPECT_FALSE(request) << body;
  return request ? Error{} : request.error();
}

/// What a call of the verb with this body says.
Result<Decoded> Decode(api::VerbId id, std::string_view body) {
  static std::vector<std::shared_ptr<Document>> kept;
  const auto fields = VerbOf(id).fields;
  auto document = Parse(body);
  if (!document) return std::unexpected(document.error());
  kept.push_back(*document);
  Decoded decoded;
  TOCSIN_TRY(DecodeBody(**document, (*document)->root(), fields, decoded));
  TOCSIN_TRY(CheckTogether(fields, api::Wire::kJson, decoded.arguments));
  return decoded;
}

Error ReserveError(std::string_view body) {
  const auto decoded = Decode(api::VerbId::kReserveJobs, body);
  EXPECT_FALSE(decoded) << body;
  return decoded ? Error{} : decoded.error();
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

// Not a digit or a blank of it changes: a double would not hold all of these.
TEST(DecodeSubmit, APayloadOfJsonIsTheTextThatWasSent) {
  for (const std::string_view payload :
       {"{}", "[]", "{\"a\" : [1, 2.50,\t{\"payload\":\"}\"}]}", "12345678901234567890123", "-0.10", "1e400", "true",
        "false", "[\"\\\"]\",{}]"}) {
    const auto one =
        Submit(fmt::format(R"( {{ "headers" : {{"payload":"no"}}, "payload" : {} , "id":"x" }} )", payload));
    ASSERT_TRUE(one) << payload << one.error().message;
    EXPECT_EQ(one->jobs[0].payload, payload);
    EXPECT_EQ(one->jobs[0].headers.back().value, "application/json");
    const auto many = Submit(fmt::format(
        R"({{"jobs":[{{"id":"a","payload":"\"{{"}},{{"payload":{0}}},{{"pay\u006coad": {0}}}]}})", payload));
    ASSERT_TRUE(many) << payload << many.error().message;
    EXPECT_EQ(many->jobs[0].payload, "\"{");
    EXPECT_TRUE(many->jobs[0].headers.empty());
    EXPECT_EQ(many->jobs[1].payload, payload);
    EXPECT_EQ(many->jobs[2].payload, payload);
  }
}

TEST(DecodeSubmit, APayloadOfJsonKeepsAContentTypeOfItsOwn) {
  const auto request = Submit(R"({"payload":[1],"headers":{"Content-Type":"application/x"}})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->jobs[0].headers.size(), 1U);
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
      {R"({"payload":null})", "payload"},
      {R"({"payload":{},"payload_base64":"YQ=="})", "payload_base64"},
      {R"({"past":"ignore"})", "past"},
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
  EXPECT_THAT(SubmitError(R"({"max_attempts":0})").message, HasSubstr("1 to 1000"));
  EXPECT_THAT(ReserveError(R"({"wait_ms":-1})").message, HasSubstr("0 to 60000"));
}

TEST(DecodeSubmit, LeavesBoundsThatOnlyTheServiceKnowsToIt) {
  EXPECT_EQ(ToMs(Submit(R"({"due_ms":9223372036854775806})")->jobs[0].due), ToMs(kNever) - 1);
  EXPECT_EQ(Submit(R"({"due_ms":18446744073709551615})").error().message,
            "due_ms is 18446744073709551615: the range is 0 to 9223372036854775806");
}

TEST(DecodeSubmit, AnIntegerOfMoreThan64BitsIsToldTheLimit) {
  EXPECT_EQ(SubmitError(R"({"delay_ms":18446744073709551616})").message,
            "delay_ms is too large: the range is 0 to 315619200000");
  EXPECT_EQ(SubmitError(R"({"count":-99999999999999999999})").message, "count is too small: the range is 1 to 100000");
  EXPECT_EQ(SubmitError(R"({"id":18446744073709551616})").message,
            "id is a number of more than 64 bits: it takes a string");
  EXPECT_EQ(SubmitError(R"({"delay_ms":1.5})").message,
            "delay_ms is a number with a fraction or an exponent: it takes an integer");
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
  const auto parser = MakeParser(&memory);
  ASSERT_TRUE(Document::Parse(parser, ManyZeros(100)));
  const size_t small = memory.held;
  EXPECT_GT(small, 0U);
  ASSERT_TRUE(Document::Parse(parser, ManyZeros(100'000)));
  EXPECT_FALSE(Document::Parse(parser, ManyZeros(100'000) + "x"));
  EXPECT_EQ(memory.held, small);
}

TEST(Document, RefusesMoreValuesThanABatchNeedsBeforeItParsesThem) {
  const auto refused = Parse(ManyZeros(200'000));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kTooLarge);
  EXPECT_THAT(refused.error().message, HasSubstr("the body has more than 182097 values"));
  EXPECT_TRUE(Parse(ManyZeros(100'000)));
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

TEST(DecodeBody, TakesTheFieldsOfItsVerb) {
  const auto decoded = Decode(api::VerbId::kReserveJobs, R"({"max":10,"wait_ms":20000,"lease_ms":30000})");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->arguments.max, 10);
  EXPECT_EQ(decoded->arguments.wait_ms, 20'000);
  EXPECT_EQ(decoded->arguments.lease_ms, 30'000);
  EXPECT_EQ(Decode(api::VerbId::kReserveJobs, "{}")->arguments.max, std::nullopt);
}

TEST(DecodeBody, NamesTheFieldThatIsWrong) {
  for (const auto& [body, field] : {std::pair(R"({"max":0})", "max"), std::pair(R"({"wait_ms":-1})", "wait_ms"),
                                    std::pair(R"({"lease_ms":0})", "lease_ms"), std::pair(R"({"wait":1})", "wait")}) {
    EXPECT_EQ(ReserveError(body).field, field);
  }
  EXPECT_EQ(Decode(api::VerbId::kPurgeTopic, R"({"dead":true})").error().code, Code::kUnknownField) << "RESP's alone";
}

TEST(DecodeQuery, TakesTheFieldsOfItsVerb) {
  const auto fields = VerbOf(api::VerbId::kListJobs).fields;
  api::Arguments arguments;
  const Query query{{"state", "dead"}, {"limit", "7"}, {"cursor", "c"}, {"reason", "r"}};
  ASSERT_TRUE(DecodeQuery(query, fields, arguments));
  EXPECT_EQ(arguments.where.states, StateSet::Of(State::kDead));
  EXPECT_EQ(arguments.limit, 7);
  EXPECT_EQ(arguments.cursor, "c");
  EXPECT_EQ(arguments.where.reason, "r");
  for (const Query& wrong : {Query{{"state", "Dead"}}, Query{{"limit", "0"}}, Query{{"limit", "1001"}},
                             Query{{"limit", "1x"}}, Query{{"limit", ""}}}) {
    const Status status = DecodeQuery(wrong, fields, arguments);
    ASSERT_FALSE(status) << wrong[0].second;
    EXPECT_EQ(status.error().field, wrong[0].first);
  }
}

Result<SettleRequest> Settle(SettleKind kind, std::string_view body) {
  const auto verb = kind == SettleKind::kAck    ? api::VerbId::kAckJobs
                    : kind == SettleKind::kNack ? api::VerbId::kNackJobs
                                                : api::VerbId::kExtendJobs;
  return DecodeSettle(VerbOf(verb), kind, "mail", *Parse(body), kFewJobs);
}

TEST(DecodeQuery, AnEmptyKeyIsNoKey) {
  api::Arguments arguments;
  const Status status = DecodeQuery({{"key", ""}}, VerbOf(api::VerbId::kCancelJob).fields, arguments);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "key is empty: it takes 1 to 256 bytes");
}

TEST(DecodeSettle, TakesTokens) {
  const Token token{.slot = 3, .handle = 77, .fence = 12345678901234};
  const auto request = Settle(SettleKind::kAck, fmt::format(R"({{"tokens":["{}"]}})", TokenText(token)));
  ASSERT_TRUE(request);
  ASSERT_EQ(request->settlements.size(), 1U);
  EXPECT_EQ(request->settlements[0].token, token);
  EXPECT_EQ(request->settlements[0].kind, SettleKind::kAck);
}

TEST(DecodeSettle, NackAndExtendSayMoreOfEveryToken) {
  const std::string token = TokenText({.slot = 1, .handle = 2, .fence = 3});
  const auto nack =
      Settle(SettleKind::kNack, fmt::format(R"({{"tokens":["{0}","{0}"],"delay_ms":0,"reason":"later"}})", token));
  ASSERT_TRUE(nack);
  ASSERT_EQ(nack->settlements.size(), 2U);
  for (const Settlement& each : nack->settlements) {
    EXPECT_EQ(each.kind, SettleKind::kNack);
    EXPECT_EQ(each.delay, Millis(0));
    EXPECT_EQ(each.reason, "later");
  }
  const auto bare = Settle(SettleKind::kNack, fmt::format(R"({{"tokens":["{}"]}})", token));
  EXPECT_EQ(bare->settlements[0].delay, std::nullopt) << "the topic's back-off";
  const auto extend = Settle(SettleKind::kExtend, fmt::format(R"({{"tokens":["{}"],"lease_ms":7}})", token));
  EXPECT_EQ(extend->settlements[0].lease, Millis(7));
}

TEST(DecodeSettle, ANackThatSaysDeadBuries) {
  const std::string token = TokenText({.slot = 1, .handle = 2, .fence = 3});
  const auto dead = Settle(SettleKind::kNack, fmt::format(R"({{"tokens":["{}"],"dead":true,"reason":"no"}})", token));
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->settlements[0].kind, SettleKind::kBury);
  EXPECT_EQ(dead->settlements[0].reason, "no");
  const auto alive = Settle(SettleKind::kNack, fmt::format(R"({{"tokens":["{}"],"dead":false}})", token));
  EXPECT_EQ(alive->settlements[0].kind, SettleKind::kNack);
  const auto both = Settle(SettleKind::kNack, fmt::format(R"({{"tokens":["{}"],"dead":true,"delay_ms":5}})", token));
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().message, "delay_ms and dead exclude each other: give one of them");
  EXPECT_EQ(Settle(SettleKind::kAck, R"({"tokens":[],"dead":true})").error().code, Code::kUnknownField);
}

TEST(DecodeSettle, NamesTheFieldThatIsWrong) {
  const std::string good = TokenText({.slot = 1, .handle = 2, .fence = 3});
  EXPECT_EQ(Settle(SettleKind::kAck, fmt::format(R"({{"tokens":["{}","x"]}})", good)).error().field, "tokens[1]");
  EXPECT_EQ(Settle(SettleKind::kAck, "{}").error().field, "tokens");
  EXPECT_EQ(Settle(SettleKind::kAck, R"({"tokens":[]})").error().field, "tokens");
  EXPECT_EQ(Settle(SettleKind::kAck, R"({"tokens":[],"reason":""})").error().code, Code::kUnknownField);
  EXPECT_EQ(Settle(SettleKind::kNack, R"({"tokens":[],"lease_ms":1})").error().code, Code::kUnknownField);
  EXPECT_EQ(Settle(SettleKind::kNack, R"({"tokens":[],"delay_ms":-1})").error().field, "delay_ms");
  EXPECT_EQ(Settle(SettleKind::kExtend, R"({"tokens":[],"lease_ms":0})").error().field, "lease_ms");
}

Result<Amendment> Amend(std::string_view body) {
  const auto decoded = Decode(api::VerbId::kAmendJob, body);
  if (!decoded) return std::unexpected(decoded.error());
  return AmendmentOf(api::Wire::kJson, decoded->arguments);
}

TEST(DecodeAmendment, TakesADueTimeAPayloadOrBoth) {
  EXPECT_EQ(Amend(R"({"delay_ms":5})")->kind, AmendKind::kReschedule);
  EXPECT_EQ(Amend(R"({"delay_ms":5})")->delay, Millis(5));
  EXPECT_EQ(Amend(R"({"delay_ms":5})")->payload, std::nullopt);
  EXPECT_EQ(Amend(R"({"due_ms":5})")->timeline, Timeline::kUtc);
  EXPECT_EQ(ToMs(Amend(R"({"due_ms":5})")->due), 5);
  EXPECT_EQ(Amend(R"({"payload":""})")->kind, AmendKind::kPayload);
  EXPECT_TRUE(Amend(R"({"payload":""})")->payload.has_value()) << "an empty payload is one";
  const auto both = Amend(R"({"delay_ms":5,"payload_base64":"YQ=="})");
  EXPECT_EQ(both->kind, AmendKind::kReschedule);
  EXPECT_TRUE(both->payload.has_value());
}

TEST(DecodeAmendment, RefusesNothingAndContradictions) {
  EXPECT_THAT(Amend("{}").error().message, HasSubstr("nothing to change"));
  EXPECT_EQ(Amend(R"({"delay_ms":5,"due_ms":5})").error().field, "due_ms");
  EXPECT_EQ(Amend(R"({"payload":"","payload_base64":""})").error().field, "payload_base64");
  EXPECT_EQ(Amend(R"({"id":"x"})").error().code, Code::kUnknownField);
}

TEST(DecodeCount, TakesAnEvent) {
  const CountEvent event = EventOf(Decode(api::VerbId::kCountJob, R"({"event":"e","by":3})")->arguments);
  EXPECT_EQ(event.event, "e");
  EXPECT_EQ(event.by, 3U);
  const auto error = [](std::string_view body) { return Decode(api::VerbId::kCountJob, body).error(); };
  EXPECT_EQ(error(R"({"by":3})").field, "event");
  EXPECT_THAT(error(R"({"by":3})").message, HasSubstr("event is missing"));
  EXPECT_EQ(error(R"({"event":"e","by":0})").field, "by");
}

TEST(DecodeTopicChange, TakesEveryField) {
  const auto change = DecodeTopicChange(
      **Parse(R"({"slots":4,"capacity_jobs":5,"capacity_bytes":6,"lease_ms":7,"max_attempts":8,"backoff_base_ms":9,
      "backoff_max_ms":10,"count_limit":11,"retention_ms":12,"paused":true})"));
  ASSERT_TRUE(change) << change.error().message;
  Topic topic = DefaultTopic("t");
  Apply(*change, topic);
  EXPECT_EQ(topic, (Topic{.name = "t",
                          .slots = 4,
                          .capacity_jobs = 5,
                          .capacity_bytes = 6,
                          .lease = Millis(7),
                          .max_attempts = 8,
                          .backoff_base = Millis(9),
                          .backoff_max = Millis(10),
                          .count_limit = 11,
                          .retention = Millis(12),
                          .paused = true,
                          .alerts = {}}));
  Topic untouched = DefaultTopic("t");
  Apply(*DecodeTopicChange(**Parse("{}")), untouched);
  EXPECT_EQ(untouched, DefaultTopic("t"));
}

TEST(DecodeTopicChange, TakesADelivery) {
  const auto change = DecodeTopicChange(**Parse(
      R"({"delivery":{"sink":"webhook","url":"https://example.com","in_flight":64,"retry_4xx":true,"secret":""}})"));
  ASSERT_TRUE(change) << change.error().message;
  Topic topic = DefaultTopic("t");
  Apply(*change, topic);
  EXPECT_EQ(topic.delivery.sink, "webhook");
  EXPECT_EQ(topic.delivery.settings,
            (std::map<std::string, std::string, std::less<>>{
                {"url", "https://example.com"}, {"in_flight", "64"}, {"retry_4xx", "true"}, {"secret", ""}}));
  Apply(*DecodeTopicChange(**Parse(R"({"delivery":{"in_flight":7}})")), topic);
  EXPECT_EQ(topic.delivery.Number("in_flight"), 7U);
  Apply(*DecodeTopicChange(**Parse(R"({"delivery":{"sink":"pull"}})")), topic);
  EXPECT_EQ(topic.delivery, Delivery{});
}

TEST(DecodeTopicChange, ANumberOutOfRangeIsToldWithTheRangeOfItsSink) {
  for (const std::string_view number : {"-1", "18446744073709551615"}) {
    Topic topic = DefaultTopic("orders");
    Apply(*DecodeTopicChange(**Parse(
              fmt::format(R"({{"delivery":{{"sink":"webhook","url":"https://example.com","rate":{}}}}})", number))),
          topic);
    const Status refused = Validate(topic);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              fmt::format("delivery.rate is \"{}\": it takes a number from 0 to 10000000", number));
  }
}

TEST(DecodeTopicChange, NamesTheFieldOfADeliveryThatIsWrong) {
  const auto error = [](std::string_view delivery) {
    return DecodeTopicChange(**Parse(fmt::format(R"({{"delivery":{}}})", delivery))).error();
  };
  EXPECT_EQ(error(R"("pull")").field, "delivery");
  EXPECT_EQ(error(R"({"sink":7})").field, "delivery.sink");
  EXPECT_EQ(error(R"({"sink":""})").field, "delivery.sink") << "pull has a name";
  EXPECT_THAT(error(R"({"sink":"webhok"})").message, testing::HasSubstr(R"(did you mean "webhook"?)"));
  EXPECT_EQ(error(R"({"urls":"x"})").code, Code::kUnknownField);
  EXPECT_EQ(error(R"({"urls":"x"})").field, "delivery.urls");
  EXPECT_THAT(error(R"({"urls":"x"})").message, testing::HasSubstr(R"(did you mean "url"?)"));
  EXPECT_EQ(error(R"({"url":7})").field, "delivery.url");
  EXPECT_EQ(error(R"({"in_flight":"64"})").field, "delivery.in_flight");
  EXPECT_EQ(error(R"({"in_flight":1.5})").field, "delivery.in_flight");
  EXPECT_EQ(error(R"({"retry_4xx":"true"})").field, "delivery.retry_4xx");
  EXPECT_EQ(error(R"({"secret":null})").field, "delivery.secret");
}

TEST(DecodeTopicChange, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(DecodeTopicChange(**Parse(R"({"slots":-1})")).error().field, "slots");
  EXPECT_EQ(DecodeTopicChange(**Parse(R"({"paused":1})")).error().field, "paused");
  EXPECT_EQ(DecodeTopicChange(**Parse(R"({"lease":1})")).error().code, Code::kUnknownField);
  const auto message = [](std::string_view body) { return DecodeTopicChange(**Parse(body)).error().message; };
  EXPECT_EQ(message(R"({"slots":1099511627776})"), "slots is 1099511627776: the range is 1 to 1024");
  EXPECT_EQ(message(R"({"max_attempts":4294967300})"), "max_attempts is 4294967300: the range is 1 to 1000");
  EXPECT_EQ(message(R"({"capacity_jobs":9223372036854775808})"),
            "capacity_jobs is 9223372036854775808: the range is 0 to 9223372036854775807");
  EXPECT_EQ(message(R"({"lease_ms":9223372036854775808})"),
            "lease_ms is 9223372036854775808: the range is 1 to 43200000");
}

TEST(DecodeAdvance, TakesMillisecondsOrAMoment) {
  const auto decode = [](std::string_view body) { return Decode(api::VerbId::kAdvanceClock, body); };
  EXPECT_EQ(decode(R"({"ms":2592000000})")->arguments.advance_ms, Millis(std::chrono::days(30)).count());
  EXPECT_EQ(decode(R"({"ms":-1})").error().field, "ms");
  EXPECT_EQ(decode(R"({"to_ms":1800000000000})")->arguments.advance_to_ms, 1'800'000'000'000);
  EXPECT_EQ(decode(R"({"ms":1,"to_ms":1800000000000})").error().field, "to_ms");
}

}  // namespace
}  // namespace tocsin::http
