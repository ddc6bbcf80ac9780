#include "base/result.h"
#include "real/kafka_server.h"
#include "sinks/kafka/kafka_test_site.h"
#include "spi/contract/sink_contract.h"

namespace tocsin::kafka {
namespace {

ReceivedJob ReceivedOf(Taken taken) {
  ReceivedJob job{.topic = taken.Header("tocsin-topic"),
                  .id = taken.Header("tocsin-job-id"),
                  .key = taken.key.value_or(""),
                  .attempt = static_cast<uint32_t>(std::stoul(taken.Header("tocsin-attempt"))),
                  .due_ms = std::stoll(taken.Header("tocsin-due-ms")),
                  .token = taken.Header("tocsin-token"),
                  .headers = {},
                  .payload = taken.payload.value()};
  EXPECT_EQ(taken.Header("tocsin-key"), job.key);
  for (auto& [name, value] : taken.headers) {
    if (!name.starts_with("tocsin-") || name == "tocsin-probe") job.headers.emplace(std::move(name), std::move(value));
  }
  return job;
}

/// One broker for all tests, since it starts slowly; each has a topic of its own.
class KafkaWorld final : public SinkWorld {
 public:
  explicit KafkaWorld(real::KafkaServer& server) : server_(server) {
    Options options;
    options.brokers = server.Brokers();
    auto sinks = Factory::Make(options, loop_.clock());
    TOCSIN_CHECK(sinks.has_value());
    sinks_ = std::move(*sinks);
  }

  static Result<std::unique_ptr<SinkWorld>> Make() {
    if (const std::string why = real::WhyNoKafka(); !why.empty()) return Fail(Code::kUnavailable, "{}", why);
    static const auto server = real::KafkaServer::Make();
    if (!server) return Fail(Code::kInternal, "{}", server.error().message);
    // As a test may have left it that failed.
    (*server)->Continue();
    if (!(*server)->running()) TOCSIN_TRY((*server)->Start());
    return std::make_unique<KafkaWorld>(**server);
  }

  Loop& loop() override { return loop_.loop(); }
  bool RunUntil(const std::function<bool()>& holds, Millis within) override { return loop_.RunUntil(holds, within); }
  Topic MakeTopic() override { return KafkaTopic(name_); }
  Result<std::unique_ptr<Sink>> Open(const Topic& topic) override { return sinks_->Open(topic, loop_.loop()); }

  void KillReceiver() override { server_.Kill(); }
  Status StartReceiver() override { return server_.Start(); }
  void HangReceiver() override { server_.Pause(); }
  void ResumeReceiver() override { server_.Continue(); }
  Result<std::vector<ReceivedJob>> Received() override {
    Result<std::vector<Taken>> taken = ReadTopic(server_.Brokers(), "ready_" + name_);
    if (!taken) return std::unexpected(std::move(taken).error());
    std::vector<ReceivedJob> jobs;
    for (Taken& one : *taken) jobs.push_back(ReceivedOf(std::move(one)));
    return jobs;
  }

  bool MakeRefused(ContractJob& job) override {
    job.payload = std::string(Options().message_size, 'x');
    return true;
  }
  Millis short_timeout() const override { return Millis(2'000); }
  size_t payload_max() const override { return 1'000'000; }

 private:
  static inline int worlds = 0;

  real::KafkaServer& server_;
  const std::string name_ = fmt::format("contract-{}", ++worlds);
  TestLoop loop_;
  std::unique_ptr<Factory> sinks_;
};

INSTANTIATE_TEST_SUITE_P(Kafka, SinkContract, testing::Values(SinkWorldMaker(&KafkaWorld::Make)));

}  // namespace
}  // namespace tocsin::kafka
