// `tocsin worker`: runs a command for each due job of a topic. Each of its threads does one job at a time, by itself:
// reserve, run, extend the lease while it runs, ack or nack; so a job is acked only after its command has ended with 0.
//
// The main thread takes the signals and writes to stderr. The first signal ends the taking of jobs, the second kills
// the running commands and aborts the calls under way, the third aborts the last calls. No thread that holds a lease
// waits for our output.
#include <atomic>
#include <csignal>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/process/process.h"
#include "cli/text/human.h"
#include "cli/worker/job_process.h"

namespace tocsin::cli {
namespace {

constexpr Millis kPauseMin{100};
constexpr Millis kPauseMax{5'000};
constexpr Millis kLastCallMax{5'000};  // of a nack after a second signal
constexpr Millis kFinishMax{1'000};    // how long the end waits for a stderr that nobody reads
constexpr size_t kReasonMax = 300;
constexpr int64_t kConcurrencyMax = 256;
constexpr Millis kLeaseMin{1'000};

struct WorkerOptions {
  std::string topic;
  std::vector<std::string> words;  // the command
  size_t concurrency = 1;
  Millis lease{};
  Millis wait{};  // of one reserve
  std::string consumer;
  std::optional<Millis> retry_in;  // of a nack; without it, the topic's back-off
  std::optional<int64_t> max_jobs;
};

/// What became of the jobs.
struct WorkerFigures {
  int64_t acked = 0;
  int64_t nacked = 0;     // or dead
  int64_t unsettled = 0;  // the lease was over, or an answer was lost
};

/// Errors that end by themselves: the server restarts or is overloaded, or nobody has created the topic yet.
bool IsTemporary(Code code) {
  return RowOf(code).retry || code == Code::kStorageFailed || code == Code::kTopicNotFound;
}

std::string ReasonOf(const JobRun& run) {
  std::string reason = run.killed ? "killed, because the worker was stopped" : ShowStatus(run.status);
  if (!run.last_line.empty()) reason += ": " + Printable(run.last_line);
  if (reason.size() > kReasonMax) {
    reason.resize(kReasonMax);
    while ((static_cast<uint8_t>(reason.back()) & 0xC0) == 0x80) reason.pop_back();
    if (static_cast<uint8_t>(reason.back()) >= 0x80) reason.pop_back();
    reason += "...";
  }
  return reason;
}

class Worker {
 public:
  Worker(Context& context, WorkerOptions options);

  /// Until a signal, an error that is not temporary, or `max_jobs`.
  Result<WorkerFigures> Run();

 private:
  class Runner;

  // For the runners, from their threads.
  bool TakeTicket() { return tickets_.fetch_sub(1) > 0; }
  void Stop();
  void GiveUp(const Error& error);
  template <class... Args>
  void Report(fmt::format_string<Args...> format, Args&&... args) {
    stderr_.Add(fmt::format("tocsin: {}\n", fmt::format(format, std::forward<Args>(args)...)));
  }
  void Unreachable(const Error& error);
  void Reachable();
  void Finish(const json::object& job, const std::string& outcome, bool done, const std::string& reason, Millis took);

  // For the main thread.
  void OnSignal();

  Context& context_;
  const WorkerOptions options_;
  StopSignal signal_;                       // first, so that the threads have the signals blocked
  const Descriptor stopped_ = MakeEvent();  // readable from the first signal on
  const Descriptor killed_ = MakeEvent();   // readable from the second signal on
  const Descriptor idle_ = MakeEvent();     // readable when a runner has ended
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> killing_ = false;
  StderrQueue stderr_;
  std::atomic<int64_t> tickets_;  // how many more jobs may be taken
  std::vector<std::unique_ptr<Runner>> runners_;

  std::mutex out_mutex_;  // the output, which may block: taken by a thread that has no lease, and holds no other mutex
  std::mutex mutex_;      // what follows
  WorkerFigures figures_;
  bool unreachable_ = false;
  std::optional<Error> error_;
};

/// One thread of it, with connections of its own: one that waits for jobs and that the first signal aborts, one that
/// settles them and that the second aborts, and one to settle the job whose command the second signal killed.
class Worker::Runner {
 public:
  explicit Runner(Worker& worker)
      : worker_(worker),
        options_(worker.options_),
        clock_(worker.context_.clock),
        taking_(worker.context_.api.Another()),
        settling_(worker.context_.api.Another()),
        last_(worker.context_.api.Another()) {}

  void Run() {
    while (!worker_.stopping_ && worker_.TakeTicket()) {
      const auto job = Take();
      if (!job) break;
      Do(*job);
    }
    Signal(worker_.idle_);
  }

  // From the main thread.
  void StopTaking() { taking_->Abort(); }
  void StopSettling() { settling_->Abort(); }
  void StopAll() { last_->Abort(); }

 private:
  std::optional<json::object> Take() {
    const json::object request{{"max", 1},
                               {"wait_ms", options_.wait.count()},
                               {"lease_ms", options_.lease.count()},
                               {"consumer", options_.consumer}};
    while (!worker_.stopping_) {
      const auto reply =
          taking_->Post(TopicPath(options_.topic, "/reserve"), request, taking_->limit() + options_.wait);
      if (reply) {
        Reached();
        if (auto jobs = ObjectsOf(*reply, "jobs"); !jobs.empty()) return jobs.front();
      } else if (worker_.stopping_) {
        break;
      } else if (IsTemporary(reply.error().code)) {
        worker_.Unreachable(reply.error());
        Pause(worker_.stopped_);
      } else {
        worker_.GiveUp(reply.error());
      }
    }
    return std::nullopt;
  }

  void Do(const json::object& job) {
    delivery_token_ = TextOf(job, "token");
    const auto began = clock_.IoNow();
    lease_end_ = began + options_.lease;
    lease_lost_ = false;
    const auto run = RunJob(options_.words, options_.topic, job,
                            {.clock = clock_,
                             .kill_fd = worker_.killed_.get(),
                             .tick = options_.lease / 3,
                             .on_tick = [&] { Extend(TextOf(job, "id")); },
                             .on_stderr = [&](std::string_view text) { worker_.stderr_.Add(text); },
                             .may_read = [&] { return !worker_.stderr_.Full(); },
                             .out_to_err = worker_.context_.out.json()});
    const bool done = run && WIFEXITED(run->status) && WEXITSTATUS(run->status) == 0;
    const std::string reason = run ? ReasonOf(*run) : run.error().message;
    const std::string outcome = done ? Settle("/ack", {}) : Settle("/nack", Refusal(reason));
    worker_.Finish(job, outcome, done, reason, std::chrono::floor<Millis>(clock_.IoNow() - began));
    if (run) return;
    if (run.error().code == Code::kNotFound) return worker_.GiveUp(Fail(Code::kIo, "{}", reason).error());
    Pause(worker_.stopped_);  // the next job would fail at once too
  }

  json::object Refusal(const std::string& reason) const {
    json::object body{{"reason", reason}};
    if (options_.retry_in) body["delay_ms"] = options_.retry_in->count();
    return body;
  }

  void Extend(const std::string& id) {
    if (lease_lost_) return;
    const auto reply = settling_->Post(TopicPath(options_.topic, "/extend"),
                                       {{"tokens", json::array{delivery_token_}}, {"lease_ms", options_.lease.count()}},
                                       std::min(settling_->limit(), Millis(options_.lease / 3)));
    if (!reply) return worker_.Unreachable(reply.error());  // there is time for two more tries
    Reached();
    const std::string outcome = OutcomeOf(*reply);
    if (outcome == "ok") lease_end_ = clock_.IoNow() + options_.lease;
    if (outcome != "stale") return;
    lease_lost_ = true;
    worker_.Report("job {}: its lease is lost, so it is delivered again; its command goes on", Printable(id));
  }

  /// The server's outcome; "unconfirmed" if an answer was lost and the job is no longer ours; nothing if the server
  /// cannot be reached while the lease lasts.
  std::string Settle(std::string_view call, json::object body) {
    body["tokens"] = json::array{delivery_token_};
    const bool last = worker_.killing_;
    Api& api = last ? *last_ : *settling_;
    const Millis limit = last ? std::min(api.limit(), kLastCallMax) : api.limit();
    for (bool lost = false;; lost = true) {
      const auto reply = api.Post(TopicPath(options_.topic, call), body, limit);
      const std::string outcome = reply ? OutcomeOf(*reply) : "";
      if (reply && outcome != "overloaded" && outcome != "unavailable") {
        Reached();
        return lost && outcome == "stale" ? "unconfirmed" : outcome;
      }
      if (!reply) worker_.Unreachable(reply.error());
      const bool hopeless = !reply && !IsTemporary(reply.error().code);
      if (hopeless || clock_.IoNow() >= lease_end_ || Pause(worker_.killed_)) return "";
    }
  }

  static std::string OutcomeOf(const json::object& reply) {
    auto results = ObjectsOf(reply, "results");
    return results.empty() ? "" : TextOf(results.front(), "outcome");
  }

  /// Longer each time; true if `until` ended it.
  bool Pause(const Descriptor& until) {
    pollfd poll{.fd = until.get(), .events = POLLIN, .revents = 0};
    const Millis pause = std::exchange(pause_, std::min(kPauseMax, pause_ * 2));
    return ::poll(&poll, 1, static_cast<int>(pause.count())) > 0;
  }

  void Reached() {
    pause_ = kPauseMin;
    worker_.Reachable();
  }

  Worker& worker_;
  const WorkerOptions& options_;
  const Clock& clock_;
  const std::unique_ptr<Api> taking_;
  const std::unique_ptr<Api> settling_;
  const std::unique_ptr<Api> last_;
  Millis pause_ = kPauseMin;
  std::string delivery_token_;
  std::chrono::steady_clock::time_point lease_end_;
  bool lease_lost_ = false;
};

Worker::Worker(Context& context, WorkerOptions options)
    : context_(context), options_(std::move(options)), tickets_(options_.max_jobs.value_or(INT64_MAX)) {}

Result<WorkerFigures> Worker::Run() {
  std::signal(SIGPIPE, SIG_IGN);  // a command need not read its stdin
  for (size_t i = 0; i < options_.concurrency; ++i) runners_.push_back(std::make_unique<Runner>(*this));
  std::vector<std::jthread> threads;
  for (const auto& runner : runners_) threads.emplace_back([&runner] { runner->Run(); });
  for (size_t ended = 0; ended < runners_.size();) {
    std::array<pollfd, 4> polls{pollfd{signal_.fd(), POLLIN, 0}, pollfd{idle_.get(), POLLIN, 0},
                                pollfd{stderr_.out_fd(), POLLOUT, 0}, pollfd{stderr_.wake_fd(), POLLIN, 0}};
    ::poll(polls.data(), polls.size(), -1);
    if (polls[2].revents != 0) stderr_.Write();
    eventfd_t count = 0;
    if (::eventfd_read(idle_.get(), &count) == 0) ended += count;
    if (signal_.Take()) OnSignal();
  }
  threads.clear();
  if (!error_ && !context_.out.json()) {
    Report("{} acked, {} nacked, {} unsettled", figures_.acked, figures_.nacked, figures_.unsettled);
  }
  stderr_.Finish(context_.clock, kFinishMax);
  if (error_) return std::unexpected(*std::move(error_));
  return figures_;
}

void Worker::OnSignal() {
  if (!stopping_) {
    Report("stopping: taking no more jobs, and waiting for the commands that run; a second signal kills them");
    return Stop();
  }
  if (killing_) {
    for (const auto& runner : runners_) runner->StopAll();
    return;
  }
  Report("second signal: killing the commands that run");
  killing_ = true;
  Signal(killed_);
  for (const auto& runner : runners_) runner->StopSettling();
}

void Worker::Stop() {
  stopping_ = true;
  Signal(stopped_);
  for (const auto& runner : runners_) runner->StopTaking();
}

void Worker::GiveUp(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }
  Stop();
}

void Worker::Unreachable(const Error& error) {
  if (killing_) return;  // we aborted the call ourselves
  const std::lock_guard lock(mutex_);
  if (std::exchange(unreachable_, true)) return;
  Report("{}; trying again until it works", error.message);
}

void Worker::Reachable() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(unreachable_, false)) Report("the server answers again");
}

void Worker::Finish(const json::object& job, const std::string& outcome, bool done, const std::string& reason,
                    Millis took) {
  const std::string_view became = outcome == "dead" ? "dead"
                                  : outcome != "ok" ? "unsettled"
                                  : done            ? "acked"
                                                    : "nacked";
  {
    const std::lock_guard lock(mutex_);
    ++(became == "unsettled" ? figures_.unsettled : done ? figures_.acked : figures_.nacked);
  }
  if (context_.out.json()) {
    std::unique_lock lock(out_mutex_);
    context_.out.Json({{"id", TextOf(job, "id")},
                       {"attempt", IntegerOf(job, "attempt")},
                       {"outcome", became},
                       {"reason", reason},
                       {"took_ms", took.count()}});
    const Status written = context_.out.Flush();
    lock.unlock();
    if (!written) GiveUp(written.error());  // a reader of the lines would miss the later ones
    return;
  }
  const std::string_view note = outcome == "unconfirmed" ? ": an answer was lost, so it is done or delivered again"
                                : outcome.empty() ? ": the server could not be reached, so it is delivered again later"
                                : became == "unsettled" ? ": its lease was over, so it is delivered again"
                                : became == "dead"      ? ": that was its last attempt"
                                                        : "";
  Report("job {}, attempt {}: {}, {} after {}{}", Printable(TextOf(job, "id")), IntegerOf(job, "attempt"), reason,
         became, ShowDuration(took), note);
}

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
                        .consumer = arguments.Text("consumer").value_or(ConsumerName()),
                        .retry_in = arguments.Duration("retry-in"),
                        .max_jobs = arguments.Number("max-jobs")};
  if (arguments.Has("once")) {
    if (options.max_jobs) {
      return Fail(Code::kInvalidArgument, "--once and --max-jobs contradict each other: give one of them");
    }
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
  TOCSIN_ASSIGN(WorkerOptions options, OptionsOf(arguments));
  const bool counted = options.max_jobs.has_value();
  TOCSIN_ASSIGN(const WorkerFigures figures, Worker(context, std::move(options)).Run());
  return counted && figures.nacked + figures.unsettled > 0 ? kExitNo : kExitOk;
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
          "waits for the commands that run; a second signal kills them and nacks their jobs. It waits for a server "
          "that cannot be reached. With --json it prints a line for each job, and the commands' stdout goes to stderr.",
      .positionals = {{"TOPIC", "Name of the topic."},
                      {"COMMAND", "The command and its arguments, after --.", true, true}},
      .flags = {{"concurrency", Kind::kNumber, "How many commands run at once, up to 256.", "1"},
                {"lease", Kind::kDuration, "How soon a job is delivered again if this worker dies.", "1m"},
                {"wait", Kind::kDuration, "How long one call waits for a job, at most 60s.", "20s"},
                {.name = "consumer",
                 .doc = "What the server calls the holder of the leases. Default: this host and process id.",
                 .value = "NAME"},
                {"retry-in", Kind::kDuration, "When a failed job is tried again. Default: the topic's back-off."},
                {"max-jobs", Kind::kNumber, "End after this many jobs."},
                {"once", Kind::kSwitch, "End after one job."}},
      .examples = {{"worker orders -- ./cancel-order.sh", "one at a time"},
                   {"worker mail --concurrency 8 --retry-in 5m -- sendmail -t", "the payload is a mail"},
                   {"worker orders --once -- cat", "shows the next payload, and ends the job"}},
      .no = "with --once or --max-jobs: a job was not acked; or the topic pushes its jobs",
      .run = Run};
}

}  // namespace tocsin::cli
