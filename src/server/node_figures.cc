#include "server/node_figures.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/version.h"
#include "server/memory_plan.h"

namespace tocsin {
namespace {

using metrics::Kind;

/// Seconds since 1970 at which the process began; 0 if /proc does not say. The kernel has it in ticks since the boot.
double StartTime() {
  std::ifstream stat("/proc/self/stat");
  std::string text;
  std::getline(stat, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) {  // the name, which may have blanks, is the second
  }
  std::ifstream boot("/proc/stat");
  for (std::string name, value; fields && boot >> name && std::getline(boot, value);) {
    if (name == "btime") return std::stod(value) + std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  return 0;
}

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// The names and meanings that Prometheus' own clients use.
void ShowProcess(metrics::Samples& samples, double start_time) {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    samples.Add(Kind::kCounter, "process_cpu_seconds_total", "CPU time of the process.", {},
                SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime));
  }
  std::ifstream statm("/proc/self/statm");
  if (double virtual_pages = 0, pages = 0; statm >> virtual_pages >> pages) {
    const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    samples.Add(Kind::kGauge, "process_resident_memory_bytes", "Memory that the process has.", {}, pages * page_bytes);
    samples.Add(Kind::kGauge, "process_virtual_memory_bytes", "Addresses that the process has.", {},
                virtual_pages * page_bytes);
  }
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (!error) {
    samples.Add(Kind::kGauge, "process_open_fds", "Open files and sockets.", {},
                static_cast<double>(std::distance(begin(files), end(files))));
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    samples.Add(Kind::kGauge, "process_max_fds", "How many files and sockets may be open.", {},
                static_cast<double>(limit.rlim_cur));
  }
  if (start_time > 0) {
    samples.Add(Kind::kGauge, "process_start_time_seconds", "When the process began, in seconds since 1970.", {},
                start_time);
  }
}

void ShowDisk(metrics::Samples& samples, const std::string& folder) {
  struct statvfs disk{};
  if (statvfs(folder.c_str(), &disk) != 0) return;
  const auto block = static_cast<double>(disk.f_frsize);
  samples.Add(Kind::kGauge, "tocsin_disk_free_bytes", "Free space for the server on the data folder's file system.", {},
              static_cast<double>(disk.f_bavail) * block);
  samples.Add(Kind::kGauge, "tocsin_disk_size_bytes", "Size of the data folder's file system.", {},
              static_cast<double>(disk.f_blocks) * block);
}

}  // namespace

metrics::Registry::Registration ShowNodeFigures(metrics::Registry& metrics, const Config& config,
                                                size_t connections_max) {
  const bool redis = config.store == StoreKind::kRedis;
  return metrics.AddCollector([redis, connections_max, folder = config.data_dir,
                               jobs_bytes = MemoryPlan(config).jobs_bytes,
                               start_time = StartTime()](metrics::Samples& samples) {
    samples.Add(Kind::kGauge, "tocsin_build_info", "Always 1; the labels say what runs.",
                {{"version", std::string(Version())}, {"store", redis ? "redis" : "journal"}}, 1);
    samples.Add(Kind::kGauge, "tocsin_connections_limit", "How many connections the server takes.", {},
                static_cast<double>(connections_max));
    ShowProcess(samples, start_time);
    if (redis) return;
    samples.Add(Kind::kGauge, "tocsin_memory_limit_bytes",
                "What memory_limit leaves to jobs: beyond it submits are refused.", {},
                static_cast<double>(jobs_bytes));
    ShowDisk(samples, folder);
  });
}

}  // namespace tocsin
