// The contract of sinks, with a real broker that is killed, stopped and started again.
#include "sinks/rabbitmq/rabbitmq_test_site.h"
#include "spi/contract/sink_contract.h"

namespace tocsin {
namespace {

using rabbitmq::Publisher;
using rabbitmq::Receiver;

constexpr const char* kQueue = "contract";
constexpr const char* kOurs[] = {"tocsin-topic",  "tocsin-job-id", "tocsin-attempt",
                                 "tocsin-due-ms", "tocsin-token",  "tocsin-key"};

ReceivedJob JobOf(rabbitmq::Received message) {
  auto& headers = message.headers;
  ReceivedJob job{.topic = headers["tocsin-topic"],
                  .id = headers["tocsin-job-id"],
                  .key = headers["tocsin-key"],
                  .attempt = static_cast<uint32_t>(std::stoul(headers["tocsin-attempt"])),
                  .due_ms = std::stoll(headers["tocsin-due-ms"]),
                  .token = headers["tocsin-token"],
                  .headers = {},
                  .payload = std::move(message.body)};
  EXPECT_EQ(message.message_id, job.id);
  EXPECT_EQ(message.delivery_mode, 2);
  for (const char* name : kOurs) headers.erase(name);
  EXPECT_EQ(message.content_type, headers.contains("content-type") ? headers["content-type"] : "");
  job.headers = std::move(headers);
  return job;
}

class RabbitmqWorld final : public SinkWorld {
 public:
  explicit RabbitmqWorld(real::RabbitMqServer& server)
      : server_(server), publisher_(Publisher::Make(rabbitmq::OptionsFor(server)).value()) {
    Receiver(server_).MakeQueue(kQueue);
    // RabbitMQ answers before that is on the disk: killed in the seconds after, it has neither the queue nor what it
    // has confirmed in it.
    EXPECT_TRUE(server_.Control({"eval", "mnesia:sync_log()."}).has_value());
  }

  static Result<std::unique_ptr<SinkWorld>> Make() {
    auto server = rabbitmq::SharedServer();
    if (!server) return std::unexpected(std::move(server).error());
    return std::make_unique<RabbitmqWorld>(**server);
  }

  Loop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& holds, Millis within) override {
    const auto end = std::chrono::steady_clock::now() + within;
    while (!holds()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      loop_.io().run_one_for(Millis(20));
    }
    return true;
  }

  Topic MakeTopic() override {
    Topic topic = DefaultTopic("orders");
    topic.delivery = {.sink = "rabbitmq", .settings = {{"routing_key", "contract{header:wrong}"}}};
    return topic;
  }
  Result<std::unique_ptr<Sink>> Open(const Topic& topic) override { return publisher_->Open(topic, loop_); }

  void KillReceiver() override { server_.Kill(); }
  Status StartReceiver() override { return server_.Start(); }
  void HangReceiver() override { server_.Pause(); }
  void ResumeReceiver() override { server_.Continue(); }
  Result<std::vector<ReceivedJob>> Received() override {
    for (rabbitmq::Received& message : Receiver(server_).Take(kQueue)) received_.push_back(JobOf(std::move(message)));
    return received_;
  }
  bool MakeRefused(ContractJob& job) override {
    job.headers["wrong"] = "-way";  // no queue has that name
    return true;
  }
  std::vector<std::string> secrets() const override { return {real::RabbitMqServer::kPassword}; }

 private:
  real::RabbitMqServer& server_;
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  std::unique_ptr<Publisher> publisher_;
  std::vector<ReceivedJob> received_;
};

INSTANTIATE_TEST_SUITE_P(Rabbitmq, SinkContract, testing::Values(SinkWorldMaker(&RabbitmqWorld::Make)));

}  // namespace
}  // namespace tocsin
