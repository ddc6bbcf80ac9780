#include <set>

#include <gmock/gmock.h>

#include "config/options.h"

namespace tocsin {
namespace {

using testing::HasSubstr;

/// What `text` becomes when it is set and shown again, or the error.
std::string Through(std::string_view key, std::string_view text) {
  Config config;
  const Option& option = *FindOption(key);
  const Status set = SetOption(option, text, config);
  return set ? ShowOption(option, config) : "error: " + set.error().message;
}

TEST(Value, DurationsNeedAUnit) {
  EXPECT_EQ(Through("durability_interval", "50ms"), "50ms");
  EXPECT_EQ(Through("durability_interval", "1s"), "1s");
  EXPECT_EQ(Through("durability_interval", "2000ms"), "2s");
  EXPECT_THAT(Through("durability_interval", "50"), HasSubstr("units ms, s, m, h, d"));
  EXPECT_THAT(Through("durability_interval", "50 ms"), HasSubstr("units"));
  EXPECT_THAT(Through("durability_interval", "-5s"), HasSubstr("not a whole number"));
  EXPECT_THAT(Through("durability_interval", "1.5s"), HasSubstr("units"));
  EXPECT_THAT(Through("durability_interval", ""), HasSubstr("not a whole number"));
}

TEST(Value, SizesAreBytesWhereNoUnitIsGiven) {
  EXPECT_EQ(Through("journal.segment_size", "64MiB"), "64MiB");
  EXPECT_EQ(Through("journal.segment_size", "8388608"), "8MiB");
  EXPECT_EQ(Through("journal.segment_size", "65536kib"), "64MiB");
  EXPECT_EQ(Through("limits.payload_size", "1000001B"), "1000001B");
  EXPECT_THAT(Through("journal.segment_size", "64MB"), HasSubstr("units B, KiB, MiB, GiB, TiB"));
}

TEST(Value, BoundsAreIncluded) {
  EXPECT_EQ(Through("durability_interval", "1ms"), "1ms");
  EXPECT_EQ(Through("durability_interval", "10s"), "10s");
  EXPECT_EQ(Through("durability_interval", "10001ms"), "error: is out of range: 1ms to 10s");
  EXPECT_EQ(Through("durability_interval", "0ms"), "error: is out of range: 1ms to 10s");
  EXPECT_EQ(Through("shards", "64"), "64");
  EXPECT_EQ(Through("shards", "65"), "error: is out of range: 1 to 64; 0 means half of the cores, at least 1");
  EXPECT_THAT(Through("shards", "-1"), HasSubstr("out of range"));
}

TEST(Value, WhatOverflowsIsTooLarge) {
  EXPECT_THAT(Through("journal.segment_size", "9223372036854775807TiB"), HasSubstr("too large"));
  EXPECT_THAT(Through("durability_interval", "99999999999999999999ms"), HasSubstr("too large"));
  EXPECT_THAT(Through("limits.batch", "99999999999999999999"), HasSubstr("too large"));
  EXPECT_THAT(Through("limits.batch", "4294967297"), HasSubstr("out of range"));
}

TEST(Value, AddressesAreNamesOrNumbersWithAPort) {
  EXPECT_EQ(Through("http.listen", "127.0.0.1:0"), "127.0.0.1:0");
  EXPECT_EQ(Through("http.listen", "localhost:65535"), "localhost:65535");
  EXPECT_EQ(Through("http.listen", "[::1]:7420"), "[::1]:7420");
  for (const char* wrong :
       {"", ":", "7420", ":7420", "localhost", "::1:7420", "[]:1", "[::1:80", "a b:1", "http://x:1", "a/b:1"}) {
    EXPECT_THAT(Through("http.listen", wrong), HasSubstr("is not an address")) << wrong;
  }
  for (const char* wrong :
       {"localhost:", "127.0.0.1:80x", "localhost:65536", "localhost:-1", "localhost:http", "localhost:1 "}) {
    EXPECT_THAT(Through("http.listen", wrong), HasSubstr("port from 0 to 65535")) << wrong;
  }
}

TEST(Value, ListsOfAddressesHaveCommasBetweenThem) {
  EXPECT_EQ(Through("redis.endpoints", "a:1"), "a:1");
  EXPECT_EQ(Through("redis.endpoints", "a:1,[::1]:2,10.0.0.1:3"), "a:1,[::1]:2,10.0.0.1:3");
  for (const char* wrong : {"", ",", "a:1,", ",a:1", "a:1,,b:2", "a:1;b:2", "a:1, b:2", "a"}) {
    EXPECT_THAT(Through("redis.endpoints", wrong), testing::StartsWith("error: ")) << wrong;
  }
  EXPECT_THAT(Through("redis.endpoints", "a:0"), HasSubstr("port 0"));
  std::string many = "a:1";
  for (int i = 1; i < 64; ++i) many += ",a:1";
  EXPECT_EQ(Through("redis.endpoints", many), many);
  EXPECT_THAT(Through("redis.endpoints", many + ",a:1"), HasSubstr("the most is 64"));
}

TEST(Value, TextsHaveTheirLettersAndTheirLength) {
  EXPECT_EQ(Through("redis.prefix", "a-z.0_9"), "a-z.0_9");
  for (const std::string& wrong : {std::string(), std::string("A"), std::string("a b"), std::string("{a}"),
                                   std::string("\xC3\xA9"), std::string(65, 'a')}) {
    EXPECT_THAT(Through("redis.prefix", wrong), HasSubstr("is not 1 to 64 characters of a-z")) << wrong;
  }
  EXPECT_EQ(Through("redis.prefix", std::string(64, 'a')), std::string(64, 'a'));
  EXPECT_EQ(Through("node.name", "Rack-7/a:b"), "Rack-7/a:b");
  EXPECT_EQ(Through("node.name", ""), "");
  EXPECT_THAT(Through("node.name", "a b"), HasSubstr("printable ASCII without spaces"));
  EXPECT_THAT(Through("node.name", "a\n"), HasSubstr("printable ASCII without spaces"));
}

TEST(Value, ChoicesAreTheEnumeratorsInOrder) {
  Config config;
  ASSERT_TRUE(SetOption(*FindOption("durability"), "interval", config));
  EXPECT_EQ(config.durability, Durability::kInterval);
  ASSERT_TRUE(SetOption(*FindOption("durability"), "os", config));
  EXPECT_EQ(config.durability, Durability::kOs);
  ASSERT_TRUE(SetOption(*FindOption("clock"), "virtual", config));
  EXPECT_EQ(config.clock, ClockKind::kVirtual);
  ASSERT_TRUE(SetOption(*FindOption("log.level"), "error", config));
  EXPECT_EQ(config.log_level, LogLevel::kError);
  ASSERT_TRUE(SetOption(*FindOption("store"), "redis", config));
  EXPECT_EQ(config.store, StoreKind::kRedis);
  ASSERT_TRUE(SetOption(*FindOption("redis.mode"), "cluster", config));
  EXPECT_EQ(config.redis_mode, RedisMode::kCluster);
  ASSERT_TRUE(SetOption(*FindOption("redis.checks"), "warn", config));
  EXPECT_EQ(config.redis_checks, RedisChecks::kWarn);
  ASSERT_TRUE(SetOption(*FindOption("coordination"), "zookeeper", config));
  EXPECT_EQ(config.coordination, CoordinationKind::kZookeeper);
  EXPECT_EQ(Through("durability", "Fsync"), "error: is not fsync, interval or os");
}

TEST(Value, AWrongValueChangesNothing) {
  Config config;
  config.shards = 3;
  EXPECT_FALSE(SetOption(*FindOption("shards"), "many", config));
  EXPECT_EQ(config.shards, 3);
}

TEST(Options, DefaultsAreValidAndShownAsWritten) {
  for (const Option& option : Options()) {
    Config config;
    ASSERT_TRUE(SetOption(option, option.fallback, config)) << option.key;
    const std::string shown = ShowOption(option, config);
    EXPECT_EQ(shown == "0B" ? "0" : shown, option.fallback) << option.key;
  }
}

TEST(Options, EveryRowHasItsOwnNamesAndAText) {
  std::set<std::string> names;
  for (const Option& option : Options()) {
    EXPECT_TRUE(names.insert(FlagOf(option.key)).second) << option.key;
    EXPECT_TRUE(names.insert(VariableOf(option.key)).second) << option.key;
    EXPECT_THAT(std::string(option.doc), testing::EndsWith(".")) << option.key;
  }
  EXPECT_EQ(FlagOf("journal.segment_size"), "--journal-segment-size");
  EXPECT_EQ(VariableOf("journal.segment_size"), "TOCSIN_JOURNAL_SEGMENT_SIZE");
}

}  // namespace
}  // namespace tocsin
