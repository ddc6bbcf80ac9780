// Load on a server that runs already, or on several that are one queue, from one thread with requests made beforehand;
// and the limits of the machine.
//
//   load_bench run --driver D --workload W [options]
//   load_bench limits [--folder DIR] [--seconds N] [--jobs N]
//
// One JSON object goes to stdout, progress to stderr. A job that is missing or early, and a request that is refused,
// end the program with an error: there is no figure without its check.
#include <charconv>
#include <cstdio>

#include <sys/prctl.h>

#include "load/drivers.h"
#include "load/limits.h"
#include "load/stamp.h"
#include "load/workloads.h"

namespace tocsin::bench {
namespace {

std::string Usage() {
  return fmt::format(R"(usage: load_bench run --driver D --workload W [options]
       load_bench limits [--folder DIR] [--seconds N] [--jobs N]
  --driver D          {}
  --workload W        {}
  --address HOST:PORT of the server; the driver's usual one unless named. Several, with commas, share the
                      connections and the consumers in turn
  --ca FILE           speak TLS to the server, whose certificate is of this authority
  --mode M            batched, or single: one job in a request, one request on each of 50 connections
  --jobs N            100,000; lives of the probe in limits, 4,000,000
  --payload N         bytes, 128
  --rate N            jobs a second of steady, 20,000
  --seconds N         of steady, 10; of each measurement of limits, 2
  --pending N         submitted and not acknowledged in life, at most; 4,000,000
  --ahead N           seconds from the start of drain to its due time
  --time-limit N      seconds after which the run fails, 120
  --folder DIR        where limits writes its file, removed afterwards; the current one
The driver's own, unless named:
  --batch N           jobs in a submit
  --connections N     that submit
  --window N          requests under way on each of them
  --consumers N
  --reserve N         jobs in a reserve, at most
  --script-jobs N     Redis: jobs in one call of the submitting script; the batch)",
                     DriverNames(), WorkloadNames());
}

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
  const std::pair<std::string_view, std::string Options::*> texts[] = {
      {"--driver", &Options::driver},   {"--workload", &Options::workload},
      {"--address", &Options::address}, {"--mode", &Options::mode},
      {"--ca", &Options::ca},           {"--folder", &Options::folder}};
  const std::pair<std::string_view, size_t Options::*> sizes[] = {
      {"--jobs", &Options::jobs},       {"--rate", &Options::rate},
      {"--payload", &Options::payload}, {"--pending", &Options::pending},
      {"--batch", &Options::batch},     {"--connections", &Options::connections},
      {"--window", &Options::window},   {"--consumers", &Options::consumers},
      {"--reserve", &Options::reserve}, {"--script-jobs", &Options::script_jobs}};
  const std::pair<std::string_view, double Options::*> spans[] = {
      {"--seconds", &Options::seconds}, {"--time-limit", &Options::time_limit}, {"--ahead", &Options::ahead}};
  for (const auto& [known, member] : texts) {
    if (known == name) return void(options.*member = value);
  }
  for (const auto& [known, member] : sizes) {
    if (known == name) return void(options.*member = Number<size_t>(name, value));
  }
  for (const auto& [known, member] : spans) {
    if (known == name) return void(options.*member = Number<double>(name, value));
  }
  Die("unknown option {}\n{}", name, Usage());
}

std::vector<Endpoint> EndpointsOf(std::string_view addresses) {
  std::vector<Endpoint> endpoints;
  while (true) {
    const size_t comma = addresses.find(',');
    endpoints.push_back(Endpoint::Parse(addresses.substr(0, comma)));
    if (comma == std::string_view::npos) return endpoints;
    addresses.remove_prefix(comma + 1);
  }
}

void Check(const Options& options) {
  if (options.mode != "batched" && options.mode != "single") Die("--mode is batched or single, not {}", options.mode);
  if (options.payload < kStampBytes) Die("--payload is {}: the least is {}", options.payload, kStampBytes);
  if (options.jobs > UINT32_MAX) Die("--jobs is {}: the most is {}", options.jobs, UINT32_MAX);
}

int Run(int argc, char** argv) {
  prctl(PR_SET_TIMERSLACK, 1);  // the kernel would let short waits of an open load take 50 us longer
  if (argc < 2) Die(Usage());
  const std::string_view verb = argv[1];
  Options options;
  if (verb == "limits") {
    options.seconds = 2;
    options.jobs = 4'000'000;
  }
  for (int i = 2; i < argc; i += 2) {
    if (i + 1 == argc) Die("{} needs a value\n{}", argv[i], Usage());
    Set(options, argv[i], argv[i + 1]);
  }
  Check(options);
  std::string out;
  if (verb == "run") {
    const std::unique_ptr<Protocol> protocol = MakeProtocol(options);
    const std::string_view address =
        options.address.empty() ? protocol->tuning().address : std::string_view(options.address);
    if (address.empty()) Die("--address is missing");
    out = RunWorkload(options, *protocol, EndpointsOf(address)).text();
  } else if (verb == "limits") {
    out = MeasureLimits(options).text();
  } else {
    Die("unknown verb {}\n{}", verb, Usage());
  }
  std::printf("%s\n", out.c_str());
  return 0;
}

}  // namespace
}  // namespace tocsin::bench

int main(int argc, char** argv) { return tocsin::bench::Run(argc, argv); }
