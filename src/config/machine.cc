#include "config/machine.h"

#include <algorithm>
#include <fstream>
#include <thread>

#include <sys/sysinfo.h>
#include <unistd.h>

namespace tocsin {
namespace {

/// The memory limit of our control group. A container sees it as /sys/fs/cgroup; "max", or no file, means there is
/// none.
uint64_t GroupLimit() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  uint64_t limit = 0;
  return file >> limit && limit > 0 ? limit : UINT64_MAX;
}

}  // namespace

Machine ThisMachine() {
  Machine machine;
  machine.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  struct sysinfo info{};
  if (sysinfo(&info) == 0) machine.memory_bytes = std::min(uint64_t{info.totalram} * info.mem_unit, GroupLimit());
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) == 0 && host[0] != '\0') machine.host = host;
  return machine;
}

}  // namespace tocsin
