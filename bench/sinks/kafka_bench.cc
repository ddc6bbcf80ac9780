// How many jobs a second one sink brings to Kafka, without the rest of the server: kafka_sink_bench BROKERS [JOBS
// [BYTES]]
#include <charconv>
#include <cstdio>
#include <cstring>

#include "base/result.h"
#include "sinks/kafka/kafka_test_site.h"

namespace tocsin::kafka {
namespace {

constexpr size_t kBatch = 500;
constexpr size_t kInFlight = 20'000;

size_t NumberOf(const char* text) {
  size_t number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

int Run(const char* brokers, size_t jobs, size_t bytes) {
  TestLoop loop;
  kafka::Options options;
  options.brokers = brokers;
  const auto sinks = Factory::Make(options, loop.clock());
  TOCSIN_CHECK(sinks.has_value());
  TestSink sink(loop, **sinks, KafkaTopic("bench", {{"timeout_ms", "60000"}}));
  std::vector<TestJob> batch;
  for (size_t i = 0; i < kBatch; ++i)
    batch.push_back({.id = fmt::format("job-{}", i), .payload = std::string(bytes, 'x')});
  sink.Deliver(batch);  // the topic is made
  TOCSIN_CHECK(sink.Await());

  const auto begin = std::chrono::steady_clock::now();
  for (size_t sent = 0; sent < jobs; sent += kBatch) {
    TOCSIN_CHECK(loop.RunUntil([&sink] { return sink.under_way() + kBatch <= kInFlight; }, kSoon));
    sink.Deliver(batch);
  }
  TOCSIN_CHECK(sink.Await());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const size_t confirmed = sink.CountOf(DeliverOutcome::kConfirmed);
  fmt::print("{} jobs of {} bytes in {:.2f} s: {:.0f} a second; {} confirmed\n", jobs, bytes, took.count(),
             static_cast<double>(jobs) / took.count(), confirmed - kBatch);
  return confirmed == sink.answers().size() ? 0 : 1;
}

}  // namespace
}  // namespace tocsin::kafka

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: kafka_sink_bench BROKERS [JOBS [BYTES]]\n", stderr);
    return 2;
  }
  return tocsin::kafka::Run(argv[1], argc > 2 ? tocsin::kafka::NumberOf(argv[2]) : 1'000'000,
                            argc > 3 ? tocsin::kafka::NumberOf(argv[3]) : 128);
}
