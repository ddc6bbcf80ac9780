// Options that contradict each other. Those of the addresses and sizes are in load_test.cc.
#include <gmock/gmock.h>

#include "config/load.h"
#include "config/options.h"

namespace tocsin {
namespace {

using testing::HasSubstr;

Result<Loaded> LoadWith(std::vector<std::string> arguments, int cores = 6) {
  return LoadConfig({.arguments = std::move(arguments),
                     .environment = {},
                     .read_file = {},
                     .machine = {.cores = cores, .memory_bytes = 10ULL << 30, .host = "rack-7"}});
}

/// "field: message", or "no error".
std::string ErrorOf(std::vector<std::string> arguments) {
  const Result<Loaded> loaded = LoadWith(std::move(arguments));
  return loaded ? "no error" : loaded.error().field + ": " + loaded.error().message;
}

std::string OnRedis(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--store", "redis"});
  return ErrorOf(std::move(arguments));
}

TEST(Check, TheEmbeddedStoreHasNoUseForOptionsOfRedis) {
  EXPECT_EQ(ErrorOf({}), "no error");
  EXPECT_EQ(ErrorOf({"--redis-endpoints", "10.0.0.1:6379"}),
            "redis.endpoints: redis.endpoints is set, but has no effect with store = journal: add store = redis");
  for (const char* flag : {"--redis-tls=true", "--coordination=zookeeper", "--session-timeout=3s",
                           "--zookeeper-path=/x", "--redis-checks=warn"}) {
    EXPECT_THAT(ErrorOf({flag}), HasSubstr("store = journal")) << flag;
  }
  EXPECT_EQ(ErrorOf({"--redis-endpoints", "127.0.0.1:6379"}), "no error") << "the default says nothing";
  EXPECT_EQ(ErrorOf({"--node-name", "x"}), "no error");
}

TEST(Check, RedisHasNoUseForOptionsOfTheEmbeddedStore) {
  EXPECT_EQ(OnRedis({}), "no error");
  EXPECT_EQ(OnRedis({"--data-dir", "/d"}), "no error");
  EXPECT_THAT(OnRedis({"--durability", "os"}), HasSubstr("durability: durability is of the embedded store"));
  EXPECT_THAT(OnRedis({"--durability-interval", "1s"}), HasSubstr("durability_interval is of the embedded store"));
  EXPECT_THAT(OnRedis({"--journal-segment-size", "8MiB"}), HasSubstr("journal.segment_size is of"));
  EXPECT_EQ(OnRedis({"--limits-payload-size", "16MiB"}), "no error") << "a segment need not hold five of them";
}

TEST(Check, GroupsAreAPowerOfTwo) {
  EXPECT_EQ(OnRedis({"--redis-groups", "96"}),
            "redis.groups: redis.groups is 96: it takes a power of two from 64 to 4096");
  EXPECT_EQ(OnRedis({"--redis-groups", "4096"}), "no error");
  EXPECT_THAT(OnRedis({"--redis-groups", "32"}), HasSubstr("redis.groups"));
}

TEST(Check, ShardsOnRedisAreAPowerOfTwo) {
  EXPECT_EQ(OnRedis({"--shards", "3"}), "shards: shards is 3: with store = redis it takes a power of two from 1 to 64");
  EXPECT_EQ(OnRedis({"--shards", "64"}), "no error");
  EXPECT_EQ(ErrorOf({"--shards", "3"}), "no error");
  EXPECT_EQ(LoadWith({"--store", "redis"}, 6)->config.shards, 2) << "half of the cores, rounded down";
  EXPECT_EQ(LoadWith({"--store", "redis"}, 1)->config.shards, 1);
  EXPECT_EQ(LoadWith({"--store", "redis"}, 128)->config.shards, 64);
  EXPECT_EQ(LoadWith({}, 6)->config.shards, 3);
}

TEST(Check, ANodeIsCalledAsItsMachineUnlessItHasAName) {
  EXPECT_EQ(LoadWith({})->config.node_name, "rack-7");
  EXPECT_EQ(LoadWith({"--node-name", "a"})->config.node_name, "a");
}

TEST(Check, ASingleServerHasOneAddress) {
  EXPECT_THAT(OnRedis({"--redis-endpoints", "a:1,b:2"}), HasSubstr("redis.endpoints has 2 addresses"));
  EXPECT_EQ(OnRedis({"--redis-endpoints", "a:1,b:2", "--redis-mode", "cluster"}), "no error");
}

TEST(Check, SentinelsNeedTheNameOfTheMaster) {
  EXPECT_THAT(OnRedis({"--redis-mode", "sentinel"}), HasSubstr("redis.master is empty"));
  EXPECT_EQ(OnRedis({"--redis-mode", "sentinel", "--redis-master", "m"}), "no error");
  EXPECT_THAT(OnRedis({"--redis-master", "m"}), HasSubstr("only with redis.mode = sentinel"));
  EXPECT_THAT(OnRedis({"--redis-sentinel-password-file", "/p"}), HasSubstr("only with redis.mode = sentinel"));
  EXPECT_THAT(OnRedis({"--redis-mode", "sentinel", "--redis-master", "m", "--redis-sentinel-username", "u"}),
              HasSubstr("needs redis.sentinel_password_file"));
}

TEST(Check, AUserNeedsAPasswordAndAKeyItsCertificate) {
  EXPECT_THAT(OnRedis({"--redis-username", "u"}), HasSubstr("needs redis.password_file"));
  EXPECT_EQ(OnRedis({"--redis-username", "u", "--redis-password-file", "/p"}), "no error");
  EXPECT_THAT(OnRedis({"--redis-tls-ca-file", "/c"}), HasSubstr("add redis.tls = true"));
  EXPECT_EQ(OnRedis({"--redis-tls", "true", "--redis-tls-ca-file", "/c"}), "no error");
  EXPECT_THAT(OnRedis({"--redis-tls", "true", "--redis-tls-key-file", "/k"}),
              HasSubstr("redis.tls_cert_file is empty"));
  EXPECT_THAT(OnRedis({"--redis-tls", "true", "--redis-tls-cert-file", "/c"}),
              HasSubstr("redis.tls_key_file is empty"));
}

std::string WithKafka(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--kafka-brokers", "a:9092,b:9092"});
  return ErrorOf(std::move(arguments));
}

TEST(Check, TheServersOwnTlsIsWhole) {
  const std::vector<std::string> tls{"--tls-certificate", "c", "--tls-key", "k"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tls.begin(), tls.end());
    return ErrorOf(std::move(more));
  };
  EXPECT_EQ(with({}), "no error");
  EXPECT_EQ(with({"--http-tls", "off"}), "no error");
  EXPECT_EQ(ErrorOf({"--http-tls", "off"}), "no error") << "clear text that is meant";
  EXPECT_THAT(with({"--http-tls", "off", "--resp-tls", "off"}), HasSubstr("tls.certificate is set, but has no effect"));
  EXPECT_THAT(ErrorOf({"--tls-certificate", "c"}), HasSubstr("tls.key is empty"));
  EXPECT_THAT(ErrorOf({"--tls-client-ca", "ca"}), HasSubstr("tls.certificate is not"));
  EXPECT_THAT(with({"--tls-client-auth", "optional"}), HasSubstr("tls.client_ca is not"));
  EXPECT_THAT(with({"--tls-client-ca", "ca", "--tls-client-auth", "optional"}),
              HasSubstr("auth.token_file is not set"));
  EXPECT_EQ(with({"--tls-client-ca", "ca"}), "no error");
}

TEST(Check, OptionsOfKafkaNeedItsBrokers) {
  EXPECT_TRUE(LoadWith({})->config.kafka_brokers.empty());
  EXPECT_EQ(LoadWith({"--kafka-brokers", "a:1,b:2"})->config.kafka_brokers.size(), 2);
  EXPECT_EQ(ErrorOf({"--kafka-brokers", ""}), "no error");
  EXPECT_EQ(ErrorOf({"--kafka-compression", "lz4"}),
            "kafka.compression: kafka.compression is set, but kafka.brokers is not: there is no Kafka");
  EXPECT_EQ(WithKafka({"--kafka-compression", "lz4", "--kafka-message-size", "4MiB"}), "no error");
}

TEST(Check, WhatKafkaIsToldFitsHowItIsSpokenTo) {
  EXPECT_THAT(WithKafka({"--kafka-tls-ca-file", "/c"}), HasSubstr("kafka.tls_ca_file is set, but kafka.security"));
  EXPECT_EQ(WithKafka({"--kafka-security", "tls", "--kafka-tls-ca-file", "/c"}), "no error");
  EXPECT_THAT(WithKafka({"--kafka-security", "tls", "--kafka-tls-key-file", "/k"}),
              HasSubstr("kafka.tls_cert_file is empty"));
  EXPECT_THAT(WithKafka({"--kafka-security", "tls", "--kafka-username", "u"}), HasSubstr("has no SASL"));
  EXPECT_THAT(WithKafka({"--kafka-password-file", "/p"}), HasSubstr("has no SASL"));
  EXPECT_THAT(WithKafka({"--kafka-security", "sasl_tls", "--kafka-password-file", "/p"}),
              HasSubstr("kafka.username is empty"));
  EXPECT_THAT(WithKafka({"--kafka-security", "sasl_plaintext", "--kafka-username", "u"}),
              HasSubstr("kafka.password_file is empty"));
  EXPECT_EQ(WithKafka({"--kafka-security", "sasl_tls", "--kafka-username", "u", "--kafka-password-file", "/p",
                       "--kafka-sasl-mechanism", "scram-sha-512", "--kafka-tls-ca-file", "/c"}),
            "no error");
}

TEST(Check, OptionsOfRabbitmqNeedItsAddress) {
  EXPECT_EQ(ErrorOf({"--rabbitmq-url", "amqp://127.0.0.1:5672"}), "no error");
  EXPECT_EQ(ErrorOf({"--rabbitmq-url", "amqp://guest@[::1]:5672/%2F"}), "no error");
  EXPECT_EQ(ErrorOf({"--rabbitmq-password-file", "/p"}),
            "rabbitmq.password_file: rabbitmq.password_file is set, but rabbitmq.url is not: there is no RabbitMQ");
  EXPECT_THAT(ErrorOf({"--rabbitmq-url", "amqp://tocsin@rabbit"}), HasSubstr("rabbitmq.password_file is empty"));
  EXPECT_EQ(ErrorOf({"--rabbitmq-url", "amqp://tocsin@rabbit/jobs", "--rabbitmq-password-file", "/p"}), "no error");
  EXPECT_THAT(ErrorOf({"--rabbitmq-url", "amqp://rabbit", "--rabbitmq-ca-file", "/c"}), HasSubstr("has no TLS"));
  EXPECT_EQ(ErrorOf({"--rabbitmq-url", "amqps://rabbit", "--rabbitmq-ca-file", "/c"}), "no error");
}

TEST(Check, APasswordInTheAddressOfRabbitmqIsRefusedAndNotShown) {
  for (const char* url : {"amqp://tocsin:hidden@rabbit", "amqps://tocsin:hidden@@rabbit:5671/v", "http://u:hidden@h"}) {
    const std::string error = ErrorOf({"--rabbitmq-url", url, "--rabbitmq-password-file", "/p"});
    EXPECT_THAT(error, HasSubstr("rabbitmq.url ")) << url;
    EXPECT_EQ(error.find("hidden"), std::string::npos) << error;
  }
}

TEST(Check, OptionsOfZookeeperNeedIt) {
  EXPECT_THAT(OnRedis({"--zookeeper-hosts", "a:1"}), HasSubstr("add coordination = zookeeper"));
  EXPECT_EQ(OnRedis({"--coordination", "zookeeper", "--zookeeper-hosts", "a:1,b:2"}), "no error");
  for (const char* path : {"tocsin", "/tocsin/"}) {
    EXPECT_THAT(OnRedis({"--coordination", "zookeeper", "--zookeeper-path", path}), HasSubstr("zookeeper.path is"));
  }
}

TEST(Check, TheOutboxNeedsAUrlThatHoldsNoPassword) {
  EXPECT_EQ(ErrorOf({"--outbox-url", "mysql://shop@db/orders"}), "no error");
  EXPECT_EQ(ErrorOf({"--outbox-prefix", "shop."}),
            "outbox.prefix: outbox.prefix is set, but outbox.url is not: there is no outbox");
  EXPECT_THAT(ErrorOf({"--outbox-url", "http://db/orders"}), HasSubstr("outbox.url does not begin with mysql://"));
  EXPECT_THAT(ErrorOf({"--outbox-url", "mysql://db/orders", "--outbox-tls-ca-file", "/c"}), HasSubstr("has no TLS"));
  EXPECT_THAT(ErrorOf({"--outbox-url", "mysqls://db/orders", "--outbox-tls-cert-file", "/c"}),
              HasSubstr("outbox.tls_key_file is empty"));
  const std::string error = ErrorOf({"--outbox-url", "mysql://shop:horse@db/orders"});
  EXPECT_THAT(error, HasSubstr("outbox.url holds a password"));
  EXPECT_THAT(error, testing::Not(HasSubstr("horse")));
}

}  // namespace
}  // namespace tocsin
