// Load on a real server over HTTP, from one thread with prebuilt requests.
//
//   http_bench all|submit-batch|submit-single|steady|slow-clients [options]
//
// Each run starts its own tocsind on an empty folder; figures are medians of --repeat runs. The load generator's own
// CPU time stands beside the server's: they share the machine.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <sys/prctl.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "workloads.h"

namespace tocsin::bench {
namespace {

struct Workload {
  std::string_view name;
  Figures (*run)(const Subject&);
};
constexpr Workload kWorkloads[] = {{"submit-batch", SubmitBatches},
                                   {"submit-single", SubmitSingles},
                                   {"steady", Steady},
                                   {"slow-clients", SlowClients}};

constexpr std::string_view kUsage =
    R"(usage: http_bench all|submit-batch|submit-single|steady|slow-clients [options]
  --repeat N        runs of each workload, 3 unless named
  --json FILE       the figures once more, for programs
  --server PATH     the tocsind to start; the one beside this program unless named
  --dir DIR         its data, removed afterwards; in the build folder unless named
  --url URL         a server that runs already, instead: http://127.0.0.1:7420
  --durability fsync|interval|os
  --shards N        threads of the server
  --jobs N          of a submit workload, at most
  --batch N         jobs in a request, 100
  --payload N       bytes, 128
  --connections N   that submit
  --consumers N     of steady, 4
  --rate N          jobs a second of steady (20,000), requests a second of slow-clients (2,000)
  --slow N          slow clients, 1000
  --seconds S       of a submit workload at most (60), of steady (20), of one phase of slow-clients (3))";

template <class T>
T Number(std::string_view name, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value > 0)) {
    Die("{} takes a positive number, not {}", name, text);
  }
  return value;
}

void Set(Options& options, std::string_view name, std::string_view value) {
  const std::pair<std::string_view, std::string Options::*> texts[] = {{"--server", &Options::server},
                                                                       {"--dir", &Options::dir},
                                                                       {"--url", &Options::url},
                                                                       {"--json", &Options::json},
                                                                       {"--durability", &Options::durability}};
  const std::pair<std::string_view, size_t Options::*> sizes[] = {{"--jobs", &Options::jobs},
                                                                  {"--batch", &Options::batch},
                                                                  {"--payload", &Options::payload},
                                                                  {"--rate", &Options::rate},
                                                                  {"--connections", &Options::connections},
                                                                  {"--consumers", &Options::consumers},
                                                                  {"--slow", &Options::slow}};
  for (const auto& [known, member] : texts) {
    if (known == name) return void(options.*member = value);
  }
  for (const auto& [known, member] : sizes) {
    if (known == name) return void(options.*member = Number<size_t>(name, value));
  }
  if (name == "--repeat") return void(options.repeat = Number<int>(name, value));
  if (name == "--shards") return void(options.shards = Number<int>(name, value));
  if (name == "--seconds") return void(options.seconds = Number<double>(name, value));
  Die("unknown option {}\n{}", name, kUsage);
}

Options Parse(int argc, char** argv) {
  Options options;
  if (argc < 2) Die(kUsage);
  options.workload = argv[1];
  const auto own = std::filesystem::read_symlink("/proc/self/exe");
  options.server = own.parent_path() / "tocsind";
  options.dir = own.parent_path().parent_path() / fmt::format("http_bench-{}", getpid());
  for (int i = 2; i < argc; i += 2) {
    if (i + 1 == argc) Die("{} needs a value\n{}", argv[i], kUsage);
    Set(options, argv[i], argv[i + 1]);
  }
  return options;
}

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

/// The value of a field in the server's own account of itself; what it says of numbers and short texts is plain.
std::string StatOf(const std::string& stats, std::string_view name) {
  const size_t at = stats.find(fmt::format("\"{}\":", name));
  if (at == std::string::npos) return "unknown";
  const size_t begin = at + name.size() + 3;
  std::string value = stats.substr(begin, stats.find_first_of(",}", begin) - begin);
  std::erase(value, '"');
  return value;
}

Report::Settings SettingsOf(const Subject& subject) {
  const Options& options = subject.options;
  const std::string stats = Ask(subject.endpoint, MakeRequest("GET", "/v1/stats")).second;
  utsname system{};
  uname(&system);
  return {{"server", "tocsind " + StatOf(stats, "version")},
          {"durability", subject.process != nullptr ? options.durability : "the server's"},
          {"shards", StatOf(stats, "shards")},
          {"payload", fmt::format("{} bytes", options.payload)},
          {"machine", fmt::format("{} cores, {}", sysconf(_SC_NPROCESSORS_ONLN), Processor())},
          {"kernel", system.release}};
}

std::vector<std::string> ServerFlags(const Options& options) {
  std::vector<std::string> flags = {"--durability", options.durability};
  if (options.shards > 0) flags.insert(flags.end(), {"--shards", std::to_string(options.shards)});
  return flags;
}

void PrintRun(const Workload& workload, int number, const Figures& figures) {
  std::string line = fmt::format("{} {}:", workload.name, number);
  for (const Figure& figure : figures) line += fmt::format(" {} {:.4g} {};", figure.name, figure.value, figure.unit);
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int Run(int argc, char** argv) {
  prctl(PR_SET_TIMERSLACK, 1);  // the kernel would let short waits of an open load take 50 us longer
  const Options options = Parse(argc, argv);
  Report report;
  bool known = false;
  for (const Workload& workload : kWorkloads) {
    if (options.workload != "all" && options.workload != workload.name) continue;
    known = true;
    for (int i = 1; i <= options.repeat; ++i) {
      std::optional<ServerProcess> process;
      if (options.url.empty()) process.emplace(options.server, options.dir, ServerFlags(options));
      const Subject subject{.options = options,
                            .endpoint = process ? process->endpoint() : ParseUrl(options.url),
                            .process = process ? &*process : nullptr};
      report.Set(SettingsOf(subject));
      const Figures figures = workload.run(subject);
      PrintRun(workload, i, figures);
      report.Add(std::string(workload.name), figures);
    }
  }
  if (!known) Die("unknown workload {}\n{}", options.workload, kUsage);
  report.Print();
  if (!options.json.empty()) report.WriteJson(options.json);
  return 0;
}

}  // namespace
}  // namespace tocsin::bench

int main(int argc, char** argv) { return tocsin::bench::Run(argc, argv); }
