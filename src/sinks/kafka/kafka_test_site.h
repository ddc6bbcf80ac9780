// What the tests of this folder share: a loop that the test's own thread runs, a sink with what became of its jobs, and
// a look into Kafka by a client of its own.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <librdkafka/rdkafka.h>

#include "base/clock.h"
#include "base/result.h"
#include "net/asio_loop.h"
#include "sinks/kafka/factory.h"
#include "spi/sink.h"

namespace tocsin::kafka {

constexpr Millis kSoon{60'000};

class TestLoop {
 public:
  net::AsioLoop& loop() { return loop_; }
  const Clock& clock() const { return clock_; }
  /// Runs the loop on this thread until `holds` says so; whether it did in time.
  bool RunUntil(const std::function<bool()>& holds, Millis within);

 private:
  RealClock clock_;
  net::AsioLoop loop_{clock_};
};

struct TestJob {
  std::string id;
  std::string key;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string payload = "payload";
};

/// A topic whose delivery is Kafka.
Topic KafkaTopic(std::string name, std::map<std::string, std::string, std::less<>> settings = {});

/// A sink on a loop, and what became of the jobs that it was given.
class TestSink {
 public:
  TestSink(TestLoop& loop, Factory& sinks, const Topic& topic);
  ~TestSink();  // closes it

  /// One batch.
  void Deliver(const std::vector<TestJob>& jobs);
  void Deliver(std::shared_ptr<const JobBatch> batch);
  /// Runs until all are answered; whether they are.
  bool Await(Millis within = kSoon);
  bool Close(Millis within = kSoon);

  /// In the order of all calls.
  const std::deque<std::optional<Delivered>>& answers() const { return answers_; }
  size_t under_way() const { return under_way_; }
  size_t CountOf(DeliverOutcome outcome) const;

 private:
  TestLoop& loop_;
  std::unique_ptr<Sink> sink_;
  std::deque<std::optional<Delivered>> answers_;
  size_t under_way_ = 0;
  bool closed_ = false;
};

std::shared_ptr<const JobBatch> MakeBatch(const std::vector<TestJob>& jobs);

/// A message as a consumer gets it.
struct Taken {
  int32_t partition = 0;
  std::optional<std::string> key;
  std::optional<std::string> payload;
  std::vector<std::pair<std::string, std::string>> headers;

  /// The last of that name; empty if there is none.
  std::string Header(std::string_view name) const;
};

/// All that the topic holds, partition after partition; nothing if there is no such topic.
Result<std::vector<Taken>> ReadTopic(const std::string& brokers, const std::string& topic);

/// Makes a topic of Kafka with settings of its own.
Status CreateTopic(const std::string& brokers, const std::string& topic, int partitions,
                   const std::map<std::string, std::string>& settings = {});

}  // namespace tocsin::kafka
