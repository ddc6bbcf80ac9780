// What the contract does not ask: keys and partitions, names by template, sizes, TLS and SASL; on a real broker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "real/kafka_server.h"
#include "sinks/kafka/kafka_test_site.h"

namespace tocsin::kafka {
namespace {

using testing::HasSubstr;
using testing::Not;
using Headers = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kPassword = "correct horse";

class KafkaBroker : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!real::WhyNoKafka().empty()) return;
    folder_ = std::make_unique<real::Folder>();
    auto made = real::MakeCertificates(folder_->path());
    ASSERT_TRUE(made) << made.error().message;
    certificates_ = *made;
    auto server = real::KafkaServer::Make({.tls = certificates_, .password = std::string(kPassword)});
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  static void TearDownTestSuite() {
    server_.reset();
    folder_.reset();
  }

  void SetUp() override {
    if (const std::string why = real::WhyNoKafka(); !why.empty()) GTEST_SKIP() << why;
    Options options;
    options.brokers = server_->Brokers();
    sinks_ = Factory::Make(options, loop_.clock()).value();
  }

  static Options SecureOptions(const std::string& mechanism = "PLAIN") {
    Options options;
    options.brokers = server_->SecureBrokers();
    options.tls = true;
    options.sasl_mechanism = mechanism;
    options.username = "tocsin";
    options.password = kPassword;
    options.ca_file = certificates_.ca_file;
    return options;
  }

  std::vector<Taken> Read(const std::string& topic) {
    auto taken = ReadTopic(server_->Brokers(), topic);
    EXPECT_TRUE(taken) << taken.error().message;
    return taken ? std::move(*taken) : std::vector<Taken>();
  }

  static inline std::unique_ptr<real::Folder> folder_;
  static inline real::Certificates certificates_;
  static inline std::unique_ptr<real::KafkaServer> server_;
  TestLoop loop_;
  std::unique_ptr<Factory> sinks_;
};

TEST_F(KafkaBroker, KeysKeepTheirPartitionAndTheirOrder) {
  constexpr int kKeys = 20;
  constexpr int kJobs = 2'000;
  ASSERT_TRUE(CreateTopic(server_->Brokers(), "ready_keyed", 4));
  TestSink sink(loop_, *sinks_, KafkaTopic("keyed"));
  for (int i = 0; i < kJobs; i += 100) {
    std::vector<TestJob> jobs;
    for (int j = i; j < i + 100; ++j) {
      jobs.push_back({.id = std::to_string(j), .key = fmt::format("key-{}", j % kKeys)});
    }
    sink.Deliver(jobs);
  }
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kConfirmed), kJobs);
  const std::vector<Taken> taken = Read("ready_keyed");
  EXPECT_EQ(taken.size(), kJobs);
  std::map<std::string, int> last;
  std::map<std::string, int32_t> partitions;
  std::map<int32_t, int> used;
  for (const Taken& one : taken) {
    const std::string key = one.key.value();
    const int number = std::stoi(one.Header("tocsin-job-id"));
    EXPECT_GT(number, last.try_emplace(key, -1).first->second) << key;
    last[key] = number;
    EXPECT_EQ(partitions.try_emplace(key, one.partition).first->second, one.partition) << key;
    ++used[one.partition];
  }
  EXPECT_EQ(last.size(), kKeys);
  EXPECT_EQ(used.size(), 4);
}

TEST_F(KafkaBroker, HeadersAreTheJobsOwnAndThenOurs) {
  TestSink sink(loop_, *sinks_, KafkaTopic("heads"));
  sink.Deliver({{.id = "a", .key = "k", .headers = {{"trace", "1"}, {"none", ""}}},
                {.id = "b", .headers = {{"tocsin-probe", "true"}}, .payload = ""}});
  ASSERT_TRUE(sink.Await());
  const std::vector<Taken> taken = Read("ready_heads");
  ASSERT_EQ(taken.size(), 2);
  const std::string token = TokenText(Token());
  EXPECT_EQ(taken[0].headers, (Headers{{"trace", "1"},
                                       {"none", ""},
                                       {"tocsin-topic", "heads"},
                                       {"tocsin-job-id", "a"},
                                       {"tocsin-attempt", "1"},
                                       {"tocsin-due-ms", "1700000000123"},
                                       {"tocsin-token", token},
                                       {"tocsin-key", "k"}}));
  EXPECT_EQ(taken[0].key, "k");
  EXPECT_EQ(taken[1].Header("tocsin-probe"), "true");
  EXPECT_EQ(taken[1].Header("tocsin-key"), "");
  EXPECT_EQ(taken[1].key, std::nullopt) << "no key, rather than an empty one";
  EXPECT_EQ(taken[1].payload, "") << "an empty value, rather than a tombstone";
}

TEST_F(KafkaBroker, TopicAndKeyFollowTheirTemplates) {
  TestSink sink(loop_, *sinks_,
                KafkaTopic("routed", {{"kafka_topic", "{header:region}.{topic}"}, {"kafka_key", "{id}:{key}"}}));
  sink.Deliver({{.id = "1", .key = "k", .headers = {{"region", "eu"}}},
                {.id = "2", .headers = {{"region", "us"}}},
                {.id = "3", .headers = {{"region", "e u"}}},
                {.id = "4", .headers = {{"region", "eu"}}}});
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.answers()[2]->outcome, DeliverOutcome::kRefused);
  EXPECT_THAT(sink.answers()[2]->reason, HasSubstr("\"e u.routed\" is not a valid name of a Kafka topic"));
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kConfirmed), 3);
  const std::vector<Taken> eu = Read("eu.routed");
  ASSERT_EQ(eu.size(), 2);
  EXPECT_EQ(eu[0].key, "1:k");
  EXPECT_EQ(eu[1].key, "4:");
  ASSERT_EQ(Read("us.routed").size(), 1);
}

TEST_F(KafkaBroker, WhatIsTooLargeForItsTopicIsRefusedWhereItIsAlone) {
  ASSERT_TRUE(CreateTopic(server_->Brokers(), "ready_narrow", 1, {{"max.message.bytes", "10000"}}));
  TestSink sink(loop_, *sinks_, KafkaTopic("narrow"));
  sink.Deliver({{.id = "large", .payload = std::string(20'000, 'x')}});
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.answers()[0]->outcome, DeliverOutcome::kRefused) << sink.answers()[0]->reason;
  // Small ones that only their batch makes too large: none of them may become a dead letter.
  sink.Deliver(std::vector<TestJob>(200, {.id = "small", .payload = std::string(100, 'x')}));
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.CountOf(DeliverOutcome::kRefused), 1);
  EXPECT_THAT(sink.answers()[1]->reason, HasSubstr("kafka.message_size"));
}

TEST_F(KafkaBroker, ARecordThatIsTooLargeForItsTopicCostsItsNeighboursNoAttempt) {
  ASSERT_TRUE(CreateTopic(server_->Brokers(), "ready_mixed", 1, {{"max.message.bytes", "10000"}}));
  TestSink sink(loop_, *sinks_, KafkaTopic("mixed"));
  constexpr size_t kBad = 25;
  std::vector<TestJob> jobs;
  for (size_t i = 0; i < 50; ++i) jobs.push_back({.id = "x", .payload = std::string(i == kBad ? 20'000 : 10, 'x')});
  sink.Deliver(jobs);
  ASSERT_TRUE(sink.Await());
  EXPECT_NE(sink.answers()[kBad]->outcome, DeliverOutcome::kConfirmed);
  EXPECT_FALSE(sink.answers()[kBad]->unsent) << "it would come again for ever";
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Delivered& delivered = *sink.answers()[i];
    if (i == kBad || delivered.outcome == DeliverOutcome::kConfirmed) continue;
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry) << delivered.reason;
    EXPECT_TRUE(delivered.unsent) << i << ": " << delivered.reason;
  }
}

TEST_F(KafkaBroker, ARecordWithoutAKeyInACompactedTopicCostsItsNeighboursNoAttempt) {
  ASSERT_TRUE(CreateTopic(server_->Brokers(), "ready_compact", 1, {{"cleanup.policy", "compact"}}));
  TestSink sink(loop_, *sinks_, KafkaTopic("compact"));
  std::vector<TestJob> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back({.id = std::to_string(i), .key = i == 50 ? "" : fmt::format("k{}", i)});
  constexpr size_t kBad = 50;
  sink.Deliver(jobs);
  ASSERT_TRUE(sink.Await());
  EXPECT_NE(sink.answers()[kBad]->outcome, DeliverOutcome::kConfirmed);
  EXPECT_FALSE(sink.answers()[kBad]->unsent) << "it would come again for ever";
  for (size_t i = 0; i < jobs.size(); ++i) {
    const Delivered& delivered = *sink.answers()[i];
    if (i == kBad || delivered.outcome == DeliverOutcome::kConfirmed) continue;
    EXPECT_EQ(delivered.outcome, DeliverOutcome::kRetry) << delivered.reason;
    EXPECT_TRUE(delivered.unsent) << i << ": " << delivered.reason;
  }
  jobs.erase(jobs.begin() + kBad);
  TestSink after(loop_, *sinks_, KafkaTopic("compact"));
  after.Deliver(jobs);
  ASSERT_TRUE(after.Await());
  EXPECT_EQ(after.CountOf(DeliverOutcome::kConfirmed), jobs.size());
}

TEST_F(KafkaBroker, WhileTheBrokerIsAwayJobsCostNoAttempt) {
  TestSink sink(loop_, *sinks_, KafkaTopic("away", {{"timeout_ms", "1000"}}));
  sink.Deliver({{.id = "before"}});
  ASSERT_TRUE(sink.Await());
  server_->Kill();
  sink.Deliver(std::vector<TestJob>(20, {.id = "meanwhile"}));
  ASSERT_TRUE(sink.Await());
  ASSERT_TRUE(server_->Start());
  for (size_t i = 1; i < sink.answers().size(); ++i) {
    EXPECT_EQ(sink.answers()[i]->outcome, DeliverOutcome::kRetry);
    EXPECT_TRUE(sink.answers()[i]->unsent) << sink.answers()[i]->reason;
  }
}

class KafkaLogin : public KafkaBroker, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Mechanisms, KafkaLogin, testing::Values("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"));

TEST_P(KafkaLogin, SpeaksTlsAndProvesAPassword) {
  const auto secure = Factory::Make(SecureOptions(GetParam()), loop_.clock());
  ASSERT_TRUE(secure) << secure.error().message;
  const std::string topic = fmt::format("secure-{}", GetParam());
  TestSink sink(loop_, **secure, KafkaTopic(topic));
  sink.Deliver({{.id = "1"}});
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.answers()[0]->outcome, DeliverOutcome::kConfirmed) << sink.answers()[0]->reason;
  EXPECT_EQ(Read("ready_" + topic).size(), 1);
}

TEST_P(KafkaLogin, AWrongPasswordIsSaidWithoutIt) {
  Options options = SecureOptions(GetParam());
  options.password = "wrong-battery-staple";
  const auto secure = Factory::Make(options, loop_.clock());
  ASSERT_TRUE(secure) << secure.error().message;
  TestSink sink(loop_, **secure, KafkaTopic("wrong", {{"timeout_ms", "3000"}}));
  sink.Deliver({{.id = "1"}});
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.answers()[0]->outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(sink.answers()[0]->reason, HasSubstr("uthentication"));
  EXPECT_THAT(sink.answers()[0]->reason, Not(HasSubstr("battery")));
}

TEST_F(KafkaBroker, ACertificateOfAnotherAuthorityIsNotBelieved) {
  Options options = SecureOptions();
  options.ca_file = certificates_.wrong_ca_file;
  const auto secure = Factory::Make(options, loop_.clock());
  ASSERT_TRUE(secure) << secure.error().message;
  TestSink sink(loop_, **secure, KafkaTopic("distrusted", {{"timeout_ms", "3000"}}));
  sink.Deliver({{.id = "1"}});
  ASSERT_TRUE(sink.Await());
  EXPECT_EQ(sink.answers()[0]->outcome, DeliverOutcome::kRetry);
  EXPECT_THAT(sink.answers()[0]->reason, HasSubstr("certificate"));
  EXPECT_TRUE(Read("ready_distrusted").empty());
}

}  // namespace
}  // namespace tocsin::kafka
