// The receivers of pushed jobs, without Tocsin: what each takes from a client that does nothing but send. That is the
// limit that the same receiver sets to a server in the same run.
//
//   push_bench receiver [--time-limit N]          a receiver of webhooks: prints its address, answers until it is ended
//   push_bench webhook|kafka|rabbitmq --address HOST:PORT [options]   the load; one JSON object on stdout
//
// Each load ends with its count or at its time limit, which is an error.
#include <charconv>
#include <csignal>
#include <cstdio>

#include <sys/prctl.h>

#include "push/push.h"

namespace tocsin::bench {
namespace {

constexpr std::string_view kUsage = R"(usage: push_bench receiver [--time-limit N]
       push_bench webhook|kafka|rabbitmq --address HOST:PORT [options]
  --name NAME       of the topic or the durable queue, which is made; push_raw
  --jobs N          100,000; 0 tells how many there are, and sends none
  --payload N       bytes, 128
  --in-flight N     sent and not confirmed, at most; of webhooks the connections. 20,000; webhook 64, rabbitmq 5000
  --lazy yes        the queue keeps its messages on the disk alone (rabbitmq: x-queue-mode lazy, x-queue-version 2)
  --remove yes      remove what was sent afterwards (rabbitmq)
  --time-limit N    seconds, 120)";

void Set(PushOptions& options, std::string_view name, std::string_view value) {
  const std::pair<std::string_view, size_t*> sizes[] = {{"--jobs", &options.jobs},
                                                        {"--payload", &options.payload},
                                                        {"--in-flight", &options.in_flight},
                                                        {"--time-limit", &options.time_limit_s}};
  for (const auto& [known, number] : sizes) {
    if (known != name) continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
    if (error != std::errc{} || end != value.data() + value.size()) Die("{} takes a number, not {}", name, value);
    return;
  }
  if (name == "--address") return void(options.address = value);
  if (name == "--name") return void(options.name = value);
  if (name == "--remove") return void(options.remove = value == "yes");
  if (name == "--lazy") return void(options.lazy = value == "yes");
  Die("unknown option {}\n{}", name, kUsage);
}

int Run(int argc, char** argv) {
  if (argc < 2) Die(kUsage);
  const std::string_view verb = argv[1];
  PushOptions options;
  for (int i = 2; i < argc; i += 2) {
    if (i + 1 == argc) Die("{} needs a value\n{}", argv[i], kUsage);
    Set(options, argv[i], argv[i + 1]);
  }
  if (verb == "receiver") {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Receive(options);
    return 0;
  }
  if (options.address.empty()) Die("--address is missing\n{}", kUsage);
  const std::pair<std::string_view, Json (*)(const PushOptions&)> loads[] = {
      {"webhook", LoadWebhook}, {"kafka", LoadKafka}, {"rabbitmq", LoadRabbitMq}};
  for (const auto& [name, load] : loads) {
    if (name != verb) continue;
    std::printf("%s\n", load(options).text().c_str());
    return 0;
  }
  Die("unknown verb {}\n{}", verb, kUsage);
}

}  // namespace
}  // namespace tocsin::bench

int main(int argc, char** argv) { return tocsin::bench::Run(argc, argv); }
