#include "load/limits.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "load/drivers.h"
#include "load/group_log.h"
#include "load/loopback.h"
#include "load/probe_server.h"
#include "load/workloads.h"
#include "shared/times.h"

namespace tocsin::bench {
namespace {

constexpr size_t kFileBytes = 64 << 20;
constexpr size_t kRecordBytes = 152;  // 160 with their head
constexpr double kProbeSteadySeconds = 5;
constexpr size_t kProbeSubmits = 2'000'000;

Nanos SpanOf(const Options& options) {
  return std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options.seconds));
}

/// Writes of `bytes`, each synced, one behind the other; over space that was written before, or at the end of the file.
double SyncsPerSecond(const Options& options, size_t bytes, bool extends) {
  const int fd = MakeDirectFile(options.folder, extends ? 0 : kFileBytes);
  AlignedBuffer block(bytes);
  const Instant began = SteadyClock::now();
  const Instant end = began + SpanOf(options);
  size_t count = 0;
  for (; SteadyClock::now() < end; ++count) {
    const size_t at = extends ? count * bytes : count * bytes % kFileBytes;
    if (pwrite(fd, block.data(), bytes, static_cast<off_t>(at)) < 0 || fdatasync(fd) != 0) {
      Die("cannot write: {}", std::strerror(errno));
    }
  }
  const double seconds = Seconds(SteadyClock::now() - began);
  close(fd);
  return static_cast<double>(count) / seconds;
}

/// Records appended from memory with CRC, synced in groups, as fast as the log takes them.
double AppendsPerSecond(const Options& options) {
  const int wake = eventfd(0, EFD_CLOEXEC);
  const std::string record(kRecordBytes, 'x');
  GroupLog log(options.folder, wake);
  const Instant began = SteadyClock::now();
  const Instant end = began + SpanOf(options);
  while (SteadyClock::now() < end) {
    while (log.HasRoom(1, record.size())) log.Append({record});
    log.Commit();
    uint64_t syncs = 0;
    if (!log.HasRoom(1, record.size()) && read(wake, &syncs, sizeof(syncs)) < 0)
      Die("eventfd: {}", std::strerror(errno));
  }
  const double seconds = Seconds(SteadyClock::now() - began);
  return static_cast<double>(log.synced()) / (kRecordBytes + 8) / seconds;
}

/// A workload on the probe, each with a server of its own.
Json RunProbe(const Options& limits, const std::function<void(Options&)>& change) {
  Options options;
  options.driver = "probe";
  options.payload = limits.payload;
  change(options);
  std::fprintf(stderr, "the probe: %s\n", options.workload.c_str());
  const std::unique_ptr<Protocol> protocol = MakeProtocol(options);
  const ProbeServer server(limits.folder, options.payload);
  return RunWorkload(options, *protocol, {server.endpoint()});
}

}  // namespace

Json MeasureLimits(const Options& options) {
  Json out;
  out.Number("fdatasync_4k_per_s", SyncsPerSecond(options, 4 << 10, false));
  out.Number("fdatasync_64k_per_s", SyncsPerSecond(options, 64 << 10, false));
  out.Number("fdatasync_4k_extending_per_s", SyncsPerSecond(options, 4 << 10, true));
  out.Number("fdatasync_64k_extending_per_s", SyncsPerSecond(options, 64 << 10, true));
  out.Number("loopback_frames_per_s", LoopbackFramesPerSecond(options.seconds));
  out.Number("append_crc_sync_per_s", AppendsPerSecond(options));
  out.Object("probe_drain", RunProbe(options, [](Options& each) {
               each.workload = "drain";
               each.jobs = kProbeSubmits;
             }));
  out.Object("probe_life", RunProbe(options, [&](Options& each) {
               each.workload = "life";
               each.jobs = options.jobs;
             }));
  for (const size_t rate : {20'000, 100'000}) {
    out.Object(fmt::format("probe_steady_{}", rate), RunProbe(options, [&](Options& each) {
                 each.workload = "steady";
                 each.rate = rate;
                 each.seconds = std::max(options.seconds, kProbeSteadySeconds);
               }));
  }
  return out;
}

}  // namespace tocsin::bench
