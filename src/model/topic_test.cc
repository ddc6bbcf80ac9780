#include "model/topic.h"

#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using ::testing::HasSubstr;

struct Bound {
  const char* field;
  const char* limit;
  std::function<void(Topic&)> inside_low;
  std::function<void(Topic&)> inside_high;
  std::function<void(Topic&)> below;
  std::function<void(Topic&)> above;
};

template <class T>
std::function<void(Topic&)> Set(T Topic::* member, T value) {
  return [=](Topic& topic) { topic.*member = value; };
}

std::function<void(Topic&)> SetBackoff(Millis base, Millis max) {
  return [=](Topic& topic) {
    topic.backoff_base = base;
    topic.backoff_max = max;
  };
}

TEST(Topic, EveryLimitHoldsAtItsEdgeAndNamesItsField) {
  const Bound bounds[] = {
      {"slots", "1024", Set(&Topic::slots, 1U), Set(&Topic::slots, 1024U), Set(&Topic::slots, 0U),
       Set(&Topic::slots, 2048U)},
      {"slots", "power of two", Set(&Topic::slots, 2U), Set(&Topic::slots, 512U), Set(&Topic::slots, 3U),
       Set(&Topic::slots, 1023U)},
      {"lease_ms", "1 to 43200000", Set(&Topic::lease, Millis(1)), Set(&Topic::lease, Millis(43'200'000)),
       Set(&Topic::lease, Millis(0)), Set(&Topic::lease, Millis(43'200'001))},
      {"max_attempts", "1 to 1000", Set(&Topic::max_attempts, 1U), Set(&Topic::max_attempts, 1000U),
       Set(&Topic::max_attempts, 0U), Set(&Topic::max_attempts, 1001U)},
      {"backoff_base_ms", "0 to 86400000", SetBackoff(Millis(0), Millis(0)),
       SetBackoff(Millis(86'400'000), Millis(86'400'000)), Set(&Topic::backoff_base, Millis(-1)),
       SetBackoff(Millis(86'400'001), Millis(86'400'001))},
      {"backoff_max_ms", "below backoff_base_ms, 5", SetBackoff(Millis(5), Millis(5)), SetBackoff(Millis(5), Millis(6)),
       SetBackoff(Millis(5), Millis(4)), SetBackoff(Millis(5), Millis(0))},
      {"backoff_max_ms", "0 to 2592000000", SetBackoff(Millis(0), Millis(0)),
       SetBackoff(Millis(5), Millis(2'592'000'000)), Set(&Topic::backoff_max, Millis(-1)),
       SetBackoff(Millis(5), Millis(2'592'000'001))},
      {"count_limit", "1 to 100000", Set(&Topic::count_limit, 1U), Set(&Topic::count_limit, kCountMax),
       Set(&Topic::count_limit, 0U), Set(&Topic::count_limit, kCountMax + 1)},
      {"retention_ms", "0 to 31536000000", Set(&Topic::retention, Millis(0)),
       Set(&Topic::retention, Millis(31'536'000'000)), Set(&Topic::retention, Millis(-1)),
       Set(&Topic::retention, Millis(31'536'000'001))},
  };
  for (const Bound& bound : bounds) {
    SCOPED_TRACE(bound.field);
    for (const auto& good : {bound.inside_low, bound.inside_high}) {
      Topic topic = DefaultTopic("t");
      good(topic);
      EXPECT_TRUE(Validate(topic));
    }
    for (const auto& bad : {bound.below, bound.above}) {
      Topic topic = DefaultTopic("t");
      bad(topic);
      const Status status = Validate(topic);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, Code::kInvalidArgument);
      EXPECT_EQ(status.error().field, bound.field);
      EXPECT_THAT(status.error().message, HasSubstr(bound.field));
      EXPECT_THAT(status.error().message, HasSubstr(bound.limit));
    }
  }
}

TEST(Topic, EverySettingIsNamedOnceAndKeepsWhatItIsGiven) {
  std::set<std::string_view> names;
  std::set<std::string_view> flags;
  for (const TopicSetting& setting : TopicSettings()) {
    SCOPED_TRACE(setting.name);
    EXPECT_TRUE(names.insert(setting.name).second && flags.insert(setting.flag).second);
    EXPECT_EQ(setting.kind == SettingKind::kMillis, setting.name.ends_with("_ms"));
    EXPECT_EQ(FindTopicSetting(setting.name), &setting);
    EXPECT_TRUE(CheckRange(setting, setting.get(Topic{}))) << "the default is in range";
    for (const uint64_t value : {setting.min, setting.max}) {
      Topic topic;
      Apply(TopicChange().Set(setting.name, value), topic);
      EXPECT_EQ(setting.get(topic), value);
      for (const TopicSetting& other : TopicSettings()) {
        if (&other != &setting) EXPECT_EQ(other.get(topic), other.get(Topic{})) << other.name;
      }
    }
  }
  EXPECT_EQ(FindTopicSetting("lease"), nullptr);
}

TEST(Topic, NamesOfTopicsHaveNoSlashBraceOrSpace) {
  for (const char* bad : {"a/b", "a{b", "a}b", "a b", " ", "/"}) {
    const Status status = Validate(DefaultTopic(bad));
    ASSERT_FALSE(status) << bad;
    EXPECT_EQ(status.error().field, "topic");
    EXPECT_TRUE(ValidateName("id", bad)) << "ids and keys may have them";
  }
  EXPECT_TRUE(Validate(DefaultTopic("order.timeout-v2:eu_west")));
}

TEST(Topic, NamesAreOneTo256BytesOfUtf8WithoutControlCharacters) {
  using namespace std::string_literals;
  for (const std::string& good : {"a"s, std::string(256, 'x'), "caf\xC3\xA9"s, "\xE4\xBD\xA0"s, "\xF0\x9F\x94\x94"s,
                                  "\xED\x9F\xBF"s, "\xF4\x8F\xBF\xBF"s, "\xC2\xA0"s}) {
    EXPECT_TRUE(ValidateName("key", good));
  }
  for (const std::string& bad : {""s,
                                 std::string(257, 'x'),
                                 "a\nb"s,
                                 "\0"s,
                                 "\x7F"s,
                                 "\xC2\x80"s,
                                 "\xC2\x9F"s,
                                 "\x80"s,
                                 "\xC0\xAF"s,
                                 "\xC1\xBF"s,
                                 "\xE0\x9F\xBF"s,
                                 "\xED\xA0\x80"s,
                                 "\xF0\x8F\xBF\xBF"s,
                                 "\xF4\x90\x80\x80"s,
                                 "\xF5\x80\x80\x80"s,
                                 "\xFF"s,
                                 "\xC3"s,
                                 "\xE4\xBD"s,
                                 "\xF0\x9F\x94"s,
                                 "\xC3("s}) {
    const Status status = ValidateName("key", bad);
    ASSERT_FALSE(status) << testing::PrintToString(bad);
    EXPECT_EQ(status.error().field, "key");
  }
  EXPECT_THAT(ValidateName("key", std::string(257, 'x')).error().message, HasSubstr("256"));
}

TEST(BackOff, DoublesFromTheBaseUpToTheMaximumWithAtMostAQuarterMore) {
  Topic topic = DefaultTopic("t");
  topic.backoff_base = Millis(1000);
  topic.backoff_max = Millis(60'000);
  int64_t plain_ms = 1000;
  for (uint32_t attempt = 1; attempt <= 1000; ++attempt) {
    bool differs = false;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const Millis rest = BackOff(topic, attempt, seed);
      EXPECT_GE(rest.count(), plain_ms);
      EXPECT_LE(rest.count(), plain_ms + plain_ms / 4);
      EXPECT_EQ(rest, BackOff(topic, attempt, seed)) << "a replay waits as long";
      differs |= rest != BackOff(topic, attempt, seed + 1);
    }
    EXPECT_TRUE(differs) << "jobs that failed together do not all come back together";
    plain_ms = std::min<int64_t>(60'000, plain_ms * 2);
  }
}

// Scripts of stores compute it too: the values are fixed.
TEST(BackOff, HasTheValuesThatEveryStoreComputes) {
  const Topic topic = DefaultTopic("t");
  EXPECT_EQ(BackOff(topic, 1, 0), Millis(1000 + 69'621 % 251));
  EXPECT_EQ(BackOff(topic, 2, 1), Millis(2000 + (48'271 + 2 * 69'621) % 501));
  EXPECT_EQ(BackOff(topic, 3, 2'147'483'648), Millis(4000 + (48'271 + 3 * 69'621) % 1001));
  // 2^64 - 1 is 3 modulo 2^31 - 1.
  EXPECT_EQ(BackOff(topic, 1000, UINT64_MAX), Millis(3'600'000 + (3 * 48'271 + 1000 * 69'621) % 900'001));
}

TEST(BackOff, NeitherTheLargestNorTheSmallestSettingsOverflow) {
  Topic topic = DefaultTopic("t");
  topic.backoff_base = std::chrono::hours(24);
  topic.backoff_max = std::chrono::days(30);
  EXPECT_GE(BackOff(topic, 1, 1), topic.backoff_base);
  EXPECT_GE(BackOff(topic, 1000, 1), topic.backoff_max);
  EXPECT_LE(BackOff(topic, 1000, 1), topic.backoff_max + topic.backoff_max / 4);
  topic.backoff_base = topic.backoff_max = Millis(0);
  EXPECT_EQ(BackOff(topic, 1000, 1), Millis(0));
  topic.backoff_base = Millis(1);
  topic.backoff_max = std::chrono::days(30);
  EXPECT_GE(BackOff(topic, 1000, 1), topic.backoff_max);
}

}  // namespace
}  // namespace tocsin
