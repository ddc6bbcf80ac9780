// Many nodes on one Redis, in one process: they join, leave and die.
//
//   nodes_bench [--nodes N] [--groups N] [--session-ms N] [--idle-s N]
//
// Prints, for each event, how many commands Redis gets a second meanwhile and how long it takes until every group has
// the owner that the live nodes must agree on; and the commands of an idle crowd. Every group has a slot of a topic.
// bench/nodes/crowd.h says what a node is.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "base/log.h"
#include "nodes/crowd.h"
#include "real/redis_servers.h"

namespace tocsin::bench {
namespace {

struct Arguments {
  int64_t nodes = 100;
  int64_t groups = 1024;
  int64_t session_ms = 6'000;
  int64_t idle_s = 5;
};

bool Parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = words[i];
    const std::string_view value = words[i + 1];
    int64_t* const to = name == "--nodes"        ? &arguments.nodes
                        : name == "--groups"     ? &arguments.groups
                        : name == "--session-ms" ? &arguments.session_ms
                        : name == "--idle-s"     ? &arguments.idle_s
                                                 : nullptr;
    if (to == nullptr) return false;
    if (std::from_chars(value.data(), value.data() + value.size(), *to).ec != std::errc()) return false;
  }
  return count % 2 == 1 && arguments.nodes >= 12;
}

class Report {
 public:
  Report(Crowd& crowd, const CommandCounter& counter) : crowd_(crowd), counter_(counter) {}

  bool Event(const std::string& name, const std::function<void()>& event) {
    const uint64_t before = counter_.count();
    const auto begin = std::chrono::steady_clock::now();
    event();
    const Result<Millis> took = crowd_.AwaitOwners(Millis(60'000));
    if (!took) {
      fmt::print(stderr, "{}: {}\n", name, took.error().message);
      return false;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const uint64_t commands = counter_.count() - before;
    fmt::print("{:<28} {:>10.2f} {:>12.0f} {:>12}\n", name, seconds.count(),
               static_cast<double>(commands) / seconds.count(), commands);
    std::fflush(stdout);
    return true;
  }
  void Idle(int64_t seconds) {
    std::this_thread::sleep_for(std::chrono::seconds(3));  // what the last event has left to do
    const uint64_t before = counter_.count();
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    const double each = static_cast<double>(counter_.count() - before) / static_cast<double>(seconds);
    fmt::print("{:<28} {:>10} {:>12.0f} {:>12}   {:.1f} of each node\n", fmt::format("{} idle nodes", crowd_.size()),
               "", each, "", each / static_cast<double>(crowd_.size()));
    std::fflush(stdout);
  }

 private:
  Crowd& crowd_;
  const CommandCounter& counter_;
};

int Run(const Arguments& arguments) {
  if (const std::string why = real::WhyNoRedis(); !why.empty()) {
    fmt::print("many nodes are not simulated: {}\n", why);
    return 0;
  }
  auto server = real::RedisServer::Make({.lines = {"maxclients 4000", "client-output-buffer-limit pubsub 0 0 0"}});
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().message);
    return 1;
  }
  const auto nodes = static_cast<size_t>(arguments.nodes);
  Crowd crowd({.port = (*server)->port(),
               .groups = static_cast<uint32_t>(arguments.groups),
               .session = Millis(arguments.session_ms)});
  const CommandCounter counter((*server)->port());
  Report report(crowd, counter);
  fmt::print("{} nodes on one Redis, {} groups, a session of {} ms\n", nodes, arguments.groups, arguments.session_ms);
  fmt::print("{:<28} {:>10} {:>12} {:>12}\n", "event", "seconds", "commands/s", "commands");
  const bool done = report.Event("the first node starts", [&] { crowd.Join(1); }) &&
                    report.Event(fmt::format("{} nodes join", nodes - 1), [&] { crowd.Join(nodes - 1); });
  if (!done) return 1;
  report.Idle(arguments.idle_s);
  const bool all = report.Event("one node leaves", [&] { crowd.Leave(1); }) &&
                   report.Event("one node joins", [&] { crowd.Join(1); }) &&
                   report.Event("one node dies", [&] { crowd.Die(1); }) &&
                   report.Event("ten nodes die at once", [&] { crowd.Die(10); }) &&
                   report.Event("ten nodes join", [&] { crowd.Join(10); });
  if (!all) return 1;
  report.Idle(arguments.idle_s);
  constexpr size_t kTopics = 1'000;
  constexpr uint32_t kSlots = 4;  // of each: more would take much memory in one process
  const auto make = [&] { crowd.MakeTopics(kTopics, kSlots); };
  return report.Event(fmt::format("{} topics are made", kTopics), make) ? 0 : 1;
}

}  // namespace
}  // namespace tocsin::bench

int main(int count, char** words) {
  tocsin::bench::Arguments arguments;
  if (!tocsin::bench::Parse(count, words, arguments)) {
    fmt::print(stderr, "nodes_bench [--nodes N] [--groups N] [--session-ms N] [--idle-s N]; at least 12 nodes\n");
    return 2;
  }
  tocsin::SetLogLevel(tocsin::LogLevel::kError);
  return tocsin::bench::Run(arguments);
}
