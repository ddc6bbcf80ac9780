#include "cli/worker/worker.h"

#include <csignal>
#include <limits>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "base/check.h"
#include "cli/process/process.h"
#include "cli/text/human_time.h"
#include "cli/worker/job_process.h"

namespace tocsin::cli {
namespace {

constexpr Millis kPauseMin{100};
constexpr Millis kPauseMax{5'000};
constexpr Millis kLastCallMax{5'000};  // of a nack after a second signal
constexpr Millis kFinishMax{1'000};    // how long the end waits for a stderr that nobody reads
constexpr size_t kReasonMax = 300;

Descriptor MakeEvent() {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  TOCSIN_CHECK(event.open());
  return event;
}

void Signal(const Descriptor& event) { ::eventfd_write(event.get(), 1); }

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

}  // namespace

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
    const json::object request{{"max", 1}, {"wait_ms", options_.wait.count()}, {"lease_ms", options_.lease.count()}};
    while (!worker_.stopping_) {
      const auto reply =
          taking_->Post(TopicPath(options_.topic, "/reserve"), request, taking_->limit() + options_.wait);
      if (!reply) {
        if (worker_.stopping_) break;
        if (!IsTemporary(reply.error().code)) {
          worker_.GiveUp(reply.error());
          break;
        }
        worker_.Unreachable(reply.error());
        Pause(worker_.stopped_);
        continue;
      }
      Reached();
      const json::array& jobs = ArrayOf(*reply, "jobs");
      if (!jobs.empty() && jobs[0].is_object()) return jobs[0].get_object();
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
      if (reply && OutcomeOf(*reply) != "overloaded") {
        Reached();
        return lost && OutcomeOf(*reply) == "stale" ? "unconfirmed" : OutcomeOf(*reply);
      }
      if (!reply) worker_.Unreachable(reply.error());
      const bool hopeless = !reply && !IsTemporary(reply.error().code);
      if (hopeless || clock_.IoNow() >= lease_end_ || Pause(worker_.killed_)) return "";
    }
  }

  static std::string OutcomeOf(const json::object& reply) {
    const json::array& results = ArrayOf(reply, "results");
    return results.empty() || !results[0].is_object() ? "" : TextOf(results[0].get_object(), "outcome");
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
    : context_(context),
      options_(std::move(options)),
      stopped_(MakeEvent()),
      killed_(MakeEvent()),
      idle_(MakeEvent()),
      tickets_(options_.max_jobs.value_or(std::numeric_limits<int64_t>::max())) {}

Worker::~Worker() = default;

Result<WorkerFigures> Worker::Run(StopSignal& signal) {
  std::signal(SIGPIPE, SIG_IGN);  // a command need not read its stdin
  for (size_t i = 0; i < options_.concurrency; ++i) runners_.push_back(std::make_unique<Runner>(*this));
  std::vector<std::jthread> threads;
  for (const auto& runner : runners_) threads.emplace_back([&runner] { runner->Run(); });
  for (size_t ended = 0; ended < runners_.size();) {
    std::array<pollfd, 4> polls{pollfd{signal.fd(), POLLIN, 0}, pollfd{idle_.get(), POLLIN, 0},
                                pollfd{stderr_.out_fd(), POLLOUT, 0}, pollfd{stderr_.wake_fd(), POLLIN, 0}};
    ::poll(polls.data(), polls.size(), -1);
    if (polls[2].revents != 0) stderr_.Write();
    eventfd_t count = 0;
    if (::eventfd_read(idle_.get(), &count) == 0) ended += count;
    if (signal.Take()) OnSignal();
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

bool Worker::TakeTicket() { return tickets_.fetch_sub(1) > 0; }

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
    return PrintJson({{"id", TextOf(job, "id")},
                      {"attempt", IntegerOf(job, "attempt")},
                      {"outcome", became},
                      {"reason", reason},
                      {"took_ms", took.count()}});
  }
  const std::string_view note = outcome == "unconfirmed" ? ": an answer was lost, so it is done or delivered again"
                                : outcome.empty() ? ": the server could not be reached, so it is delivered again later"
                                : became == "unsettled" ? ": its lease was over, so it is delivered again"
                                : became == "dead"      ? ": that was its last attempt"
                                                        : "";
  Report("job {}, attempt {}: {}, {} after {}{}", Printable(TextOf(job, "id")), IntegerOf(job, "attempt"), reason,
         became, ShowDuration(took), note);
}

void Worker::PrintJson(const json::object& line) {
  Status written;
  {
    const std::lock_guard lock(out_mutex_);
    context_.out.Json(line);
    written = context_.out.Flush();
  }
  if (!written) GiveUp(written.error());  // a reader of the lines would miss the later ones
}

}  // namespace tocsin::cli
