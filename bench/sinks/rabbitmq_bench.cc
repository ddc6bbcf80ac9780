// How many jobs a second one publisher delivers to a real broker on the same machine, with confirms and a durable
// queue: rabbitmq_bench [jobs] [bytes of a payload] [in_flight]
#include <charconv>
#include <cstdio>

#include <sys/resource.h>

#include "sinks/rabbitmq/rabbitmq_test_site.h"

namespace tocsin::rabbitmq {
namespace {

constexpr size_t kBatch = 500;

size_t Argument(int argc, char** argv, int index, size_t fallback) {
  if (argc > index) {
    const std::string_view text = argv[index];
    std::from_chars(text.data(), text.data() + text.size(), fallback);
  }
  return fallback;
}

/// Of this process, all threads; not of the broker.
double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

int Measure(size_t jobs, size_t payload_bytes, size_t in_flight) {
  const auto server = SharedServer();
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().message);
    return 1;
  }
  Receiver(**server).MakeQueue("ready_orders");
  Site site(OptionsFor(**server));
  Site::Topic& orders = site.Open("orders", {{"in_flight", std::to_string(in_flight)}, {"timeout_ms", "60000"}});
  orders.AwaitHealth();
  const std::string payload(payload_bytes, 'p');
  const double cpu_before = CpuSeconds();
  const auto begin = std::chrono::steady_clock::now();
  for (size_t sent = 0; sent < jobs; sent += kBatch) {
    site.RunUntil([&] { return orders.open() + kBatch <= in_flight; });
    orders.Deliver(kBatch, [&](size_t, JobView& job) { job.payload = payload; });
  }
  orders.Await();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double cpu = (CpuSeconds() - cpu_before) / static_cast<double>(jobs);
  fmt::print("{} jobs of {} bytes, at most {} in flight: {:.0f} jobs/s, {} not confirmed, own CPU {:.1f} us a job\n",
             jobs, payload_bytes, in_flight, static_cast<double>(jobs) / took.count(),
             orders.Count(DeliverOutcome::kRetry), 1e6 * cpu);
  return 0;
}

}  // namespace
}  // namespace tocsin::rabbitmq

int main(int argc, char** argv) {
  using tocsin::rabbitmq::Argument;
  return tocsin::rabbitmq::Measure(Argument(argc, argv, 1, 200'000), Argument(argc, argv, 2, 128),
                                   Argument(argc, argv, 3, 5'000));
}
