#include "sinks/kafka/kafka_test_site.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <ranges>

#include "base/result.h"
#include "real/process.h"

namespace tocsin::kafka {
namespace {

constexpr int kAskMs = 5'000;
constexpr Millis kTurn{20};

struct ClientEnd {
  void operator()(rd_kafka_t* client) const { rd_kafka_destroy(client); }
};
using Native = std::unique_ptr<rd_kafka_t, ClientEnd>;

Native MakeNative(rd_kafka_type_t type, const std::string& brokers) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  std::array<char, 256> why{};
  const std::pair<const char*, const char*> settings[] = {{"bootstrap.servers", brokers.c_str()},
                                                          {"group.id", "tests"},
                                                          {"enable.auto.commit", "false"},
                                                          {"allow.auto.create.topics", "false"},
                                                          {"reconnect.backoff.max.ms", "500"}};
  for (const auto& [name, value] : settings) {
    TOCSIN_CHECK(rd_kafka_conf_set(conf, name, value, why.data(), why.size()) == RD_KAFKA_CONF_OK);
  }
  Native native(rd_kafka_new(type, conf, why.data(), why.size()));
  TOCSIN_CHECK(native != nullptr);
  return native;
}

/// The partitions of a topic; 0 if there is none.
Result<int> CountPartitions(rd_kafka_t* client, const std::string& topic) {
  rd_kafka_topic_t* handle = rd_kafka_topic_new(client, topic.c_str(), nullptr);
  const rd_kafka_metadata_t* found = nullptr;
  const rd_kafka_resp_err_t error = rd_kafka_metadata(client, 0, handle, &found, kAskMs);
  rd_kafka_topic_destroy(handle);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return Fail(Code::kUnavailable, "metadata: {}", rd_kafka_err2str(error));
  const rd_kafka_resp_err_t of_topic = found->topics[0].err;
  const int partitions = found->topics[0].partition_cnt;
  rd_kafka_metadata_destroy(found);
  if (of_topic == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) return 0;
  if (of_topic != RD_KAFKA_RESP_ERR_NO_ERROR) return Fail(Code::kUnavailable, "{}", rd_kafka_err2str(of_topic));
  return partitions;
}

std::string Bytes(const void* bytes, size_t size) { return {static_cast<const char*>(bytes), size}; }

Taken TakenOf(const rd_kafka_message_t& message) {
  Taken taken{.partition = message.partition};
  if (message.key != nullptr) taken.key = Bytes(message.key, message.key_len);
  if (message.payload != nullptr) taken.payload = Bytes(message.payload, message.len);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return taken;
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    taken.headers.emplace_back(name, Bytes(value, size));
  }
  return taken;
}

/// Reads one partition from its beginning up to where its end is now.
Status ReadPartition(rd_kafka_t* client, const std::string& topic, int32_t partition, std::vector<Taken>& all) {
  int64_t low = 0;
  int64_t high = 0;
  const rd_kafka_resp_err_t asked =
      rd_kafka_query_watermark_offsets(client, topic.c_str(), partition, &low, &high, kAskMs);
  if (asked != RD_KAFKA_RESP_ERR_NO_ERROR) return Fail(Code::kUnavailable, "offsets: {}", rd_kafka_err2str(asked));
  if (high <= low) return {};
  rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = low;
  rd_kafka_assign(client, list);
  rd_kafka_topic_partition_list_destroy(list);
  for (int64_t next = low; next < high;) {
    rd_kafka_message_t* message = rd_kafka_consumer_poll(client, kAskMs);
    if (message == nullptr) return Fail(Code::kTimedOut, "nothing more came after {} of {}", next, high);
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      all.push_back(TakenOf(*message));
      next = message->offset + 1;
    }
    rd_kafka_message_destroy(message);
  }
  rd_kafka_assign(client, nullptr);
  return {};
}

Result<std::vector<Taken>> TryRead(const std::string& brokers, const std::string& topic) {
  const Native client = MakeNative(RD_KAFKA_CONSUMER, brokers);
  rd_kafka_poll_set_consumer(client.get());
  const Result<int> partitions = CountPartitions(client.get(), topic);
  if (!partitions) return std::unexpected(partitions.error());
  std::vector<Taken> all;
  for (int32_t partition = 0; partition < *partitions; ++partition) {
    TOCSIN_TRY(ReadPartition(client.get(), topic, partition, all));
  }
  rd_kafka_consumer_close(client.get());
  return all;
}

std::string_view Keep(JobBatch& batch, std::string_view text) {
  auto& bytes = batch.bytes.emplace_back(std::make_unique<char[]>(text.size()));
  std::memcpy(bytes.get(), text.data(), text.size());
  return {bytes.get(), text.size()};
}

}  // namespace

bool TestLoop::RunUntil(const std::function<bool()>& holds, Millis within) {
  const auto end = clock_.IoNow() + within;
  while (!holds()) {
    if (clock_.IoNow() >= end) return false;
    loop_.io().run_one_for(kTurn);
  }
  return true;
}

Topic KafkaTopic(std::string name, std::map<std::string, std::string, std::less<>> settings) {
  Topic topic = DefaultTopic(std::move(name));
  topic.delivery = {.sink = "kafka", .settings = std::move(settings)};
  TOCSIN_CHECK(Validate(topic).has_value());
  return topic;
}

std::shared_ptr<const JobBatch> MakeBatch(const std::vector<TestJob>& jobs) {
  auto batch = std::make_shared<JobBatch>();
  for (const TestJob& job : jobs) {
    JobView view;
    view.own_id = Keep(*batch, job.id);
    view.key = Keep(*batch, job.key);
    view.attempt = 1;
    view.due = FromMs(1'700'000'000'123);
    view.payload = Keep(*batch, job.payload);
    for (const auto& [header, value] : job.headers) {
      view.headers.push_back({.name = Keep(*batch, header), .value = Keep(*batch, value)});
    }
    batch->jobs.push_back(std::move(view));
  }
  return batch;
}

TestSink::TestSink(TestLoop& loop, Factory& sinks, const Topic& topic) : loop_(loop) {
  auto sink = sinks.Open(topic, loop.loop());
  TOCSIN_CHECK(sink.has_value());
  sink_ = std::move(*sink);
}

TestSink::~TestSink() {
  if (!closed_) TOCSIN_CHECK(Close());
}

void TestSink::Deliver(const std::vector<TestJob>& jobs) { Deliver(MakeBatch(jobs)); }

void TestSink::Deliver(std::shared_ptr<const JobBatch> batch) {
  const size_t first = answers_.size();
  answers_.resize(first + batch->jobs.size());
  under_way_ += batch->jobs.size();
  sink_->Deliver(std::move(batch), [this, first](size_t index, Delivered delivered) {
    TOCSIN_CHECK(!answers_[first + index].has_value());
    answers_[first + index] = std::move(delivered);
    --under_way_;
  });
}

bool TestSink::Await(Millis within) {
  return loop_.RunUntil([this] { return under_way_ == 0; }, within);
}

bool TestSink::Close(Millis within) {
  sink_->Close([this] { closed_ = true; });
  const bool done = loop_.RunUntil([this] { return closed_; }, within);
  TOCSIN_CHECK(under_way_ == 0);
  sink_.reset();
  return done;
}

size_t TestSink::CountOf(DeliverOutcome outcome) const {
  return static_cast<size_t>(
      std::ranges::count_if(answers_, [outcome](const auto& one) { return one && one->outcome == outcome; }));
}

std::string Taken::Header(std::string_view name) const {
  for (const auto& [header, value] : headers | std::views::reverse) {
    if (header == name) return value;
  }
  return {};
}

Result<std::vector<Taken>> ReadTopic(const std::string& brokers, const std::string& topic) {
  Result<std::vector<Taken>> taken;
  // A broker that has just started or was stopped may not know yet what it leads.
  real::WaitFor(kSoon, [&] { return (taken = TryRead(brokers, topic)).has_value(); });
  return taken;
}

Status CreateTopic(const std::string& brokers, const std::string& topic, int partitions,
                   const std::map<std::string, std::string>& settings) {
  const Native client = MakeNative(RD_KAFKA_PRODUCER, brokers);
  std::array<char, 256> why{};
  rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic.c_str(), partitions, 1, why.data(), why.size());
  for (const auto& [name, value] : settings) rd_kafka_NewTopic_set_config(wanted, name.c_str(), value.c_str());
  rd_kafka_queue_t* queue = rd_kafka_queue_new(client.get());
  rd_kafka_AdminOptions_t* options = rd_kafka_AdminOptions_new(client.get(), RD_KAFKA_ADMIN_OP_CREATETOPICS);
  rd_kafka_AdminOptions_set_operation_timeout(options, 30'000, why.data(), why.size());
  rd_kafka_CreateTopics(client.get(), &wanted, 1, options, queue);
  rd_kafka_event_t* event = rd_kafka_queue_poll(queue, 60'000);
  Status status;
  if (event == nullptr || rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    status = Fail(Code::kUnavailable, "{}", event == nullptr ? "no answer" : rd_kafka_event_error_string(event));
  }
  if (event != nullptr) rd_kafka_event_destroy(event);
  rd_kafka_AdminOptions_destroy(options);
  rd_kafka_queue_destroy(queue);
  rd_kafka_NewTopic_destroy(wanted);
  return status;
}

}  // namespace tocsin::kafka
