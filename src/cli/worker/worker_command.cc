// `tocsin worker`: runs a command for each due job.
#include <sys/stat.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/context.h"
#include "cli/worker/worker.h"

namespace tocsin::cli {
namespace {

constexpr int64_t kConcurrencyMax = 256;
constexpr Millis kLeaseMin{1'000};

bool IsProgram(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// A typing mistake must not use up the attempts of a whole topic.
Status CheckProgram(const std::string& name) {
  const auto missing = [&] { return Fail(Code::kInvalidArgument, "there is no program {} to run", name); };
  if (name.contains('/')) return IsProgram(name) ? Status() : missing();
  const char* const path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path; !rest.empty();) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (IsProgram(fmt::format("{}/{}", folder, name))) return {};
  }
  return missing();
}

Result<WorkerOptions> OptionsOf(const Arguments& arguments) {
  WorkerOptions options{.topic = *arguments.Text("TOPIC"),
                        .words = arguments.All("COMMAND"),
                        .concurrency = static_cast<size_t>(*arguments.Number("concurrency")),
                        .lease = *arguments.Duration("lease"),
                        .wait = *arguments.Duration("wait"),
                        .retry_in = arguments.Duration("retry-in"),
                        .max_jobs = arguments.Number("max-jobs")};
  if (arguments.Has("once")) {
    if (options.max_jobs)
      return Fail(Code::kInvalidArgument, "--once and --max-jobs contradict each other: give one of them");
    options.max_jobs = 1;
  }
  if (options.concurrency < 1 || options.concurrency > kConcurrencyMax) {
    return Fail(Code::kInvalidArgument, "--concurrency: {} is not 1 to {}", options.concurrency, kConcurrencyMax);
  }
  if (options.lease < kLeaseMin) {
    return Fail(Code::kInvalidArgument, "--lease: at least 1s, because it is extended while the command runs");
  }
  TOCSIN_TRY(CheckProgram(options.words[0]));
  return options;
}

Result<int> Run(Context& context, const Arguments& arguments) {
  auto options = OptionsOf(arguments);
  if (!options) return std::unexpected(std::move(options).error());
  const bool counted = options->max_jobs.has_value();
  StopSignal signal;
  const auto figures = Worker(context, *std::move(options)).Run(signal);
  if (!figures) return std::unexpected(figures.error());
  return counted && figures->nacked + figures->unsettled > 0 ? kExitNo : kExitOk;
}

}  // namespace

Command WorkerRow() {
  return {
      .name = "worker",
      .summary = "runs a command for each due job",
      .details =
          "The command gets the payload on its stdin, and TOCSIN_JOB_ID, TOCSIN_TOPIC, TOCSIN_ATTEMPT, "
          "TOCSIN_MAX_ATTEMPTS, TOCSIN_DUE_MS, TOCSIN_KEY and TOCSIN_HEADER_NAME for each header in its environment. "
          "Exit status 0 acks the job; any other nacks it, with the last line of the command's stderr as the reason. "
          "The worker extends the lease while the command runs. After SIGTERM or Ctrl-C it takes no more jobs and "
          "waits "
          "for the commands that run; a second signal kills them and nacks their jobs. It waits for a server that "
          "cannot be reached. With --json it prints a line for each job, and the commands' stdout goes to stderr.",
      .positionals = {{"TOPIC", "Name of the topic."},
                      {"COMMAND", "The command and its arguments, after --.", true, true}},
      .flags = {{.name = "concurrency",
                 .kind = Kind::kNumber,
                 .fallback = "1",
                 .doc = "How many commands run at once, up to 256."},
                {.name = "lease",
                 .kind = Kind::kDuration,
                 .fallback = "1m",
                 .doc = "How soon a job is delivered again if this worker dies."},
                {.name = "wait",
                 .kind = Kind::kDuration,
                 .fallback = "20s",
                 .doc = "How long one call waits for a job, at most 60s."},
                {.name = "retry-in",
                 .kind = Kind::kDuration,
                 .doc = "When a failed job is tried again. Default: the topic's back-off."},
                {.name = "max-jobs", .kind = Kind::kNumber, .doc = "End after this many jobs."},
                {.name = "once", .kind = Kind::kSwitch, .doc = "End after one job."}},
      .examples = {{"worker orders -- ./cancel-order.sh", "one at a time"},
                   {"worker mail --concurrency 8 --retry-in 5m -- sendmail -t", "the payload is a mail"},
                   {"worker orders --once -- cat", "shows the next payload, and ends the job"}},
      .no = "with --once or --max-jobs: a job was not acked; or the topic pushes its jobs",
      .run = Run};
}

}  // namespace tocsin::cli
