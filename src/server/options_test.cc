// From the configuration to the options of back ends: passwords, Redis, ZooKeeper, Kafka and RabbitMQ.
#include "server/options.h"

#include <gmock/gmock.h>

#include "server/server_test_site.h"

namespace tocsin {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using OptionsTest = ServerTest;

TEST_F(OptionsTest, APasswordIsTheOneLineOfItsFile) {
  EXPECT_EQ(PasswordOf("redis.password_file", "").value(), "") << "no file, no password";
  for (const char* const text : {"open sesame", "open sesame\n", "open sesame\r\n"}) {
    EXPECT_EQ(PasswordOf("redis.password_file", folder_.Write("pw", text)).value(), "open sesame");
  }
  for (const char* const text : {"", "\n", "open\nsesame\n"}) {
    const auto refused = PasswordOf("redis.password_file", folder_.Write("pw", text));
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_EQ(refused.error().field, "redis.password_file");
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr(folder_.At("pw")), Not(HasSubstr("sesame"))));
  }
}

TEST_F(OptionsTest, APasswordThatOthersCanReadIsRefusedWithItsOption) {
  const auto refused = PasswordOf("kafka.password_file", folder_.Write("pw", "open sesame", 0644));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("kafka.password_file"), HasSubstr("chmod 600")));
}

TEST_F(OptionsTest, RedisIsReachedAsConfigured) {
  const auto options =
      RedisOptionsOf(
          ConfigWith({"--store=redis", "--shards=1", "--redis-mode=sentinel", "--redis-master=main",
                      "--redis-endpoints=10.0.0.1:26379,[::1]:26380", "--redis-username=queue",
                      "--redis-password-file=" + folder_.Write("pw", "first\n"), "--redis-sentinel-username=watcher",
                      "--redis-sentinel-password-file=" + folder_.Write("spw", "second\n"), "--redis-tls=true",
                      "--redis-tls-ca-file=/ca", "--redis-tls-cert-file=/cert", "--redis-tls-key-file=/key",
                      "--redis-timeout=7s", "--redis-wait-replicas=2"}))
          .value();
  EXPECT_EQ(options.mode, redis::Mode::kSentinel);
  ASSERT_EQ(options.endpoints.size(), 2);
  EXPECT_EQ(options.endpoints[0].Text(), "10.0.0.1:26379");
  EXPECT_EQ(options.endpoints[1].Text(), "[::1]:26380");
  EXPECT_EQ(options.master, "main");
  EXPECT_EQ(options.username + "/" + options.password, "queue/first");
  EXPECT_EQ(options.sentinel_username + "/" + options.sentinel_password, "watcher/second");
  EXPECT_TRUE(options.tls.on && options.tls.verify);
  EXPECT_EQ(options.tls.ca_file + options.tls.cert_file + options.tls.key_file, "/ca/cert/key");
  EXPECT_EQ(options.command_timeout, Millis(7'000));
  EXPECT_EQ(options.wait_replicas, 2);
  for (const auto& [text, mode] : {std::pair("single", redis::Mode::kSingle), {"cluster", redis::Mode::kCluster}}) {
    const auto config = ConfigWith({"--store=redis", "--shards=1", fmt::format("--redis-mode={}", text)});
    EXPECT_EQ(RedisOptionsOf(config)->mode, mode);
  }
}

TEST_F(OptionsTest, EachPasswordFileOfRedisNamesItsOwnOption) {
  const std::string missing = folder_.At("missing");
  auto config = ConfigWith({});
  config.redis_password_file = missing;
  EXPECT_THAT(RedisOptionsOf(config).error().message, HasSubstr("redis.password_file"));
  config.redis_password_file.clear();
  config.redis_sentinel_password_file = missing;
  EXPECT_THAT(RedisOptionsOf(config).error().message, HasSubstr("redis.sentinel_password_file"));
}

TEST_F(OptionsTest, TheFileOfZookeeperHoldsUserAndPassword) {
  const auto with = [&](const std::string& text) {
    return ZookeeperOptionsOf(
        ConfigWith({"--store=redis", "--shards=1", "--coordination=zookeeper", "--zookeeper-hosts=a:2181,b:2182",
                    "--zookeeper-path=/queue", "--session-timeout=9s",
                    "--zookeeper-password-file=" + folder_.Write("zpw", text)}));
  };
  const auto options = with("me:a:b").value();
  EXPECT_EQ(options.hosts, "a:2181,b:2182");
  EXPECT_EQ(options.path, "/queue");
  EXPECT_EQ(options.session, Millis(9'000));
  EXPECT_EQ(options.username, "me");
  EXPECT_EQ(options.password, "a:b") << "a password may have a colon";
  for (const char* const text : {"me", ":secret"}) {
    const auto refused = with(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().field, "zookeeper.password_file");
    EXPECT_THAT(refused.error().message, Not(HasSubstr("secret")));
  }
}

TEST_F(OptionsTest, KafkaIsReachedAsConfigured) {
  const std::string password = "--kafka-password-file=" + folder_.Write("kpw", "sesame\n");
  const auto options =
      KafkaOptionsOf(
          ConfigWith({"--kafka-brokers=a:9092,b:9093", "--kafka-security=sasl_tls", "--kafka-username=me", password,
                      "--kafka-sasl-mechanism=scram-sha-256", "--kafka-tls-ca-file=/ca", "--kafka-tls-cert-file=/cert",
                      "--kafka-tls-key-file=/key", "--kafka-compression=lz4", "--kafka-message-size=2MiB"}))
          .value();
  EXPECT_EQ(options.brokers, "a:9092,b:9093");
  EXPECT_TRUE(options.tls);
  EXPECT_EQ(options.sasl_mechanism, "SCRAM-SHA-256");
  EXPECT_EQ(options.username + "/" + options.password, "me/sesame");
  EXPECT_EQ(options.ca_file + options.cert_file + options.key_file, "/ca/cert/key");
  EXPECT_EQ(options.compression, "lz4");
  EXPECT_EQ(options.message_size, 2U << 20);
}

TEST_F(OptionsTest, EachSecurityOfKafkaHasTlsAndALoginOrNot) {
  const std::string password = "--kafka-password-file=" + folder_.Write("kpw", "sesame\n");
  const auto with = [&](const std::string& security, bool login, const char* mechanism = "plain") {
    std::vector<std::string> arguments{"--kafka-brokers=a:1", "--kafka-security=" + security};
    if (login) arguments.insert(arguments.end(), {"--kafka-username=me", password});
    if (login) arguments.push_back(fmt::format("--kafka-sasl-mechanism={}", mechanism));
    const auto options = KafkaOptionsOf(ConfigWith(std::move(arguments))).value();
    return fmt::format("{}{}", options.tls ? "tls " : "", options.sasl_mechanism);
  };
  EXPECT_EQ(with("plaintext", false), "");
  EXPECT_EQ(with("tls", false), "tls ");
  EXPECT_EQ(with("sasl_plaintext", true), "PLAIN");
  EXPECT_EQ(with("sasl_tls", true, "scram-sha-512"), "tls SCRAM-SHA-512");
}

TEST_F(OptionsTest, RabbitmqIsReachedAsConfigured) {
  const auto options =
      RabbitmqOptionsOf(ConfigWith({"--rabbitmq-url=amqps://me@broker:5679/shop", "--rabbitmq-ca-file=/ca",
                                    "--rabbitmq-password-file=" + folder_.Write("rpw", "sesame\n"), "--node-name=n7"}))
          .value();
  EXPECT_EQ(options.Where(), "RabbitMQ at broker:5679");
  EXPECT_TRUE(options.tls);
  EXPECT_EQ(options.vhost, "shop");
  EXPECT_EQ(options.username + "/" + options.password, "me/sesame");
  EXPECT_EQ(options.ca_file, "/ca");
  EXPECT_EQ(options.connection_name, "tocsin n7");
  EXPECT_EQ(RabbitmqOptionsOf(ConfigWith({"--rabbitmq-url=amqp://broker"}))->password, "guest") << "RabbitMQ's default";
}

TEST_F(OptionsTest, TheOutboxIsReachedAsConfigured) {
  const std::string certificate = folder_.Write("cert", "x");
  const auto config = [&](const std::string& ca_file) {
    return ConfigWith({"--outbox-url=mysqls://me@db:3307/shop", "--outbox-tls-ca-file=" + ca_file,
                       "--outbox-tls-cert-file=" + certificate, "--outbox-tls-key-file=" + certificate,
                       "--outbox-password-file=" + folder_.Write("opw", "sesame\n"), "--outbox-timeout=9s"});
  };
  const auto options = OutboxOptionsOf(config(certificate)).value();
  EXPECT_EQ(options.Where(), "MySQL at db:3307, database shop");
  EXPECT_TRUE(options.tls);
  EXPECT_EQ(options.username + "/" + options.password, "me/sesame");
  EXPECT_EQ(options.ca_file, certificate);
  EXPECT_EQ(options.cert_file, certificate);
  EXPECT_EQ(options.key_file, certificate);
  EXPECT_EQ(options.timeout, Millis(9'000));
  const auto missing = OutboxOptionsOf(config(folder_.At("missing")));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().field, "outbox.tls_ca_file");
  EXPECT_THAT(missing.error().message, HasSubstr("cannot read " + folder_.At("missing")));
}

}  // namespace
}  // namespace tocsin
