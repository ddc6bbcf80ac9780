#include "frontend/http/step_parser.h"

#include <map>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

constexpr size_t kStep = StepParser::kStepBytes;

/// {"jobs":[JOB,JOB,...]}
std::string Batch(std::string_view job, size_t count) {
  std::string body = R"({"jobs":[)";
  for (size_t i = 0; i < count; ++i) (i > 0 ? body += ',' : body) += job;
  return body + "]}";
}

/// `count` members of an object, whose keys all come into one place of a table of Boost's with so many places (a power
/// of two). Such a table hashes with FNV-1a, with its own address as the salt.
std::string CollidingMembers(uint64_t count, uint64_t salt) {
  constexpr uint64_t kPrime = 0x100000001B3;
  constexpr uint64_t kOffset = 0xCBF29CE484222325;
  const uint64_t mask = count - 1;
  uint64_t inverse = 1;
  for (int i = 0; i < 6; ++i) inverse *= 2 - kPrime * inverse;
  std::string letters;
  for (char c = '!'; c <= '~'; ++c) {
    if (c != '"' && c != ',' && c != '\\') letters += c;
  }
  const auto step = [&](uint64_t hash, char c) { return (static_cast<uint64_t>(c) ^ hash) * kPrime & mask; };
  std::multimap<uint64_t, std::string> starts;  // by the hash after two letters
  for (const char a : letters) {
    for (const char b : letters) starts.emplace(step(step(kOffset + salt, a), b), std::string{a, b});
  }
  std::string members;
  for (uint64_t found = 0; const char d : letters) {
    for (const char c : letters) {
      const uint64_t before = ((static_cast<uint64_t>(d) * inverse) & mask) ^ static_cast<uint64_t>(c);
      const auto [begin, end] = starts.equal_range(before);
      for (auto at = begin; at != end && found < count; ++at, ++found) {
        members += fmt::format("{}\"{}{}{}\":0", found > 0 ? "," : "", at->second, c, d);
      }
    }
  }
  return members;
}

class StepParserTest : public testing::Test {
 protected:
  Result<std::shared_ptr<Document>> Parse(std::string_view body, const BodyLimits& limits = {}) {
    StepParser parser(body, limits);
    for (steps_ = 1; !parser.Step(); ++steps_) EXPECT_LE(parser.parsed(), steps_ * kStep);
    parsed_ = parser.parsed();
    return parser.Take();
  }

  size_t steps_ = 0;
  size_t parsed_ = 0;
};

TEST_F(StepParserTest, TakesOneStepAfterAnother) {
  const std::string body = Batch(R"({"payload":"x"})", 100'000);
  ASSERT_GT(body.size(), 4 * kStep);
  const auto document = Parse(body);
  ASSERT_TRUE(document) << document.error().message;
  EXPECT_EQ((*document)->root().at("jobs").as_array().size(), 100'000U);
  EXPECT_EQ(steps_, (body.size() + kStep - 1) / kStep);
}

TEST_F(StepParserTest, StopsAtTheFirstJobThatIsTooMany) {
  const std::string body = Batch(R"({"payload":"x","headers":{"a":[1,2,3]}})", 400'000);
  const auto document = Parse(body, {.batch = 1'000});
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::kInvalidArgument);
  EXPECT_EQ(document.error().field, "jobs");
  EXPECT_EQ(document.error().message, "jobs has more than 1000 elements: the range is 1 to 1000");
  EXPECT_EQ(steps_, 1U);
  EXPECT_LE(parsed_, body.size() / 300) << "the rest is not looked at";
  EXPECT_TRUE(Parse(Batch("[10000000,20000000,30000000]", 1'000), {.batch = 1'000})) << "only the batch itself counts";
}

TEST_F(StepParserTest, StopsInAStringThatIsLargerThanAnyPayload) {
  const std::string job = R"({"id":"a","payload":")" + std::string(4 << 20, 'x') + "\"}";
  const std::string body = Batch(job, 4);
  const auto document = Parse(body, {.payload_bytes = 1 << 20});
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::kTooLarge);
  EXPECT_EQ(document.error().field, "jobs[0].payload");
  EXPECT_LE(parsed_, 3U << 20);
  EXPECT_TRUE(Parse(body, {.payload_bytes = 4 << 20}));
  const std::string base64 = R"({"payload_base64":")" + std::string((3 << 20) / 3 * 4, 'A') + "\"}";
  EXPECT_TRUE(Parse(base64, {.payload_bytes = 3 << 20})) << "Base64 takes more";
}

TEST_F(StepParserTest, StopsAtTooManyValues) {
  const auto document = Parse(R"({"a":[)" + Batch("1", 1 << 20) + "]}", {.batch = 10'000});
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::kTooLarge);
  EXPECT_EQ(document.error().message, "the body has more than 273170 values");
  EXPECT_LE(parsed_, 1U << 20);
}

TEST_F(StepParserTest, AnObjectHasFewKeysSoThatNoneCollideForLong) {
  constexpr uint64_t kPlaces = 4096;
  for (uint64_t salt = 0; salt < kPlaces; salt += 128) {
    const std::string members = CollidingMembers(kPlaces, salt);
    EXPECT_EQ(std::ranges::count(members, ','), kPlaces - 1);
    const auto refused = Parse(R"({"jobs":[{},{"headers":{)" + members + "}}]}");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kTooLarge);
    EXPECT_EQ(refused.error().field, "jobs[1].headers");
    EXPECT_EQ(refused.error().message, "jobs[1].headers has more than 64 keys; only a payload may have more");
    EXPECT_LE(parsed_, 1'000U) << "the rest is not looked at";
    EXPECT_EQ(Parse("{" + members + "}").error().message,
              "the body has more than 64 keys; only a payload may have more");

    const std::string inner = R"({"payload":{"a":[{)" + members + "}]}}";
    const auto document = Parse(inner);
    ASSERT_TRUE(document) << document.error().message;
    EXPECT_TRUE((*document)->root().at("payload").as_object().empty()) << "it has no table";
    EXPECT_EQ((*document)->PayloadSource(0), std::string_view(inner).substr(11, inner.size() - 12));
  }
}

TEST_F(StepParserTest, OnlyAPayloadMayHaveAnyKeys) {
  std::string many = "{";
  for (int i = 0; i < 65; ++i) many += fmt::format("{}\"k{}\":[]", i > 0 ? "," : "", i);
  many += '}';
  for (const char* body : {R"({{"payload":{}}})", R"({{"id":"a","payload":[{}]}})",
                           R"({{"jobs":[{{"payload":{0}}},{{"pay\u006coad":{0}}}]}})"}) {
    EXPECT_TRUE(Parse(fmt::format(fmt::runtime(body), many))) << body;
  }
  for (const auto& [body, field] : std::vector<std::pair<const char*, std::string>>{
           {R"({{"payloads":{}}})", "payloads"},
           {R"({{"where":{{"payload":{}}}}})", "where.payload"},
           {R"({{"jobs":[[{{"payload":{}}}]]}})", "jobs[0][0].payload"},
           {R"({{"job":[{{"payload":{}}}]}})", "job[0].payload"},
           {R"({{"jobs":{{"a":{{"payload":{}}}}}}})", "jobs.a.payload"},
           {R"([[{{"payload":{}}}]])", "[0][0].payload"},
           {R"({{"payload":{{}},"headers":{}}})", "headers"},
       }) {
    const auto document = Parse(fmt::format(fmt::runtime(body), many));
    ASSERT_FALSE(document) << body;
    EXPECT_EQ(document.error().field, field);
  }
}

TEST_F(StepParserTest, StopsInAPayloadThatIsTooLarge) {
  for (const char* element : {R"({"abc":0},)", R"("abcd",)", "1,", "[],"}) {
    std::string body = R"({"jobs":[{"payload":[)";
    for (int i = 0; i < 1'000'000; ++i) body += element;
    const auto document = Parse(body + "0]}]}", {.payload_bytes = 1 << 18});
    ASSERT_FALSE(document) << element;
    EXPECT_EQ(document.error().code, Code::kTooLarge);
    EXPECT_EQ(document.error().field, "jobs[0].payload");
    EXPECT_EQ(document.error().message, "jobs[0].payload has more bytes than any payload: the most is 262144");
    EXPECT_LE(parsed_, 1U << 20);
  }
}

TEST_F(StepParserTest, ChargesWhatItTakesBeyondTheText) {
  metrics::Registry metrics;
  net::Budget budget(64 << 20, metrics);
  const std::string zeros = R"({"a":[)" + Batch("0", 20'000) + "]}";  // 16 KiB of text for every 200 KiB of memory
  {
    StepParser parser(zeros, {.budget = &budget});
    while (!parser.Step()) {
    }
    const auto document = parser.Take();
    ASSERT_TRUE(document) << document.error().message;
    EXPECT_GE(budget.bytes(), 20'000 * sizeof(boost::json::value));
    EXPECT_LE(budget.bytes(), 30'000 * sizeof(boost::json::value)) << "the parser's stack is given back";
  }
  EXPECT_EQ(budget.bytes(), 0U);

  const std::string text = R"({"payload":")" + std::string(1 << 20, 'x') + "\"}";
  {
    const auto document = Parse(text, {.budget = &budget});
    ASSERT_TRUE(document) << document.error().message;
    EXPECT_LE(budget.bytes(), 1'000U) << "the text is charged as the body";
  }
  std::string keys = R"({"payload":{)";
  for (int i = 0; i < 100'000; ++i) keys += fmt::format("\"{}\":0,", i);
  keys += R"("x":0}})";
  StepParser half(keys, {.budget = &budget});
  half.Step();
  EXPECT_GE(budget.bytes(), 20'000U * 16) << "keys that are compared";
}

TEST_F(StepParserTest, StopsIfThereIsNoMemory) {
  metrics::Registry metrics;
  net::Budget budget(1 << 20, metrics);
  const auto document = Parse(R"({"a":[)" + Batch("0", 100'000) + "]}", {.budget = &budget});
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::kOverloaded);
  EXPECT_LE(parsed_, 100'000U);
  EXPECT_EQ(budget.bytes(), 0U);
}

TEST_F(StepParserTest, NamesTheByteThatIsNoJson) {
  const std::string good = Batch(R"({"payload":"x"})", 50'000);
  const auto document = Parse(good + "x");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::kInvalidArgument);
  EXPECT_NE(document.error().message.find(fmt::format("at byte {};", good.size())), std::string::npos)
      << document.error().message;
  EXPECT_TRUE(Parse(good + " \n"));
  EXPECT_FALSE(Parse(good.substr(0, good.size() - 1)));
  EXPECT_FALSE(Parse(std::string(40, '[') + good));
  EXPECT_EQ(steps_, 1U) << "too deep";
  EXPECT_FALSE(Parse("[" + good + "]")) << "no object";
  EXPECT_EQ(Parse(R"({"a":1,"b":{"c":1,"c":2}})").error().field, "b.c");
}

TEST_F(StepParserTest, AnythingMayBeAtTheEndOfAStep) {
  const std::string element = R"({"k\u00e9y":[-12.5e3,true,null,"\ud83d\ude00\n"],"":{},"n":18446744073709551615})";
  for (size_t shift = 0; shift < element.size() + 2; ++shift) {
    const std::string body = Batch(element, kStep / element.size() + 10).insert(1, shift, ' ');
    ASSERT_GT(body.size(), kStep);
    const auto document = Parse(body);
    ASSERT_TRUE(document) << shift << document.error().message;
    EXPECT_EQ(steps_, 2U);
    ASSERT_EQ((*document)->root(), boost::json::parse(body).as_object()) << shift;
  }
}

}  // namespace
}  // namespace tocsin::http
