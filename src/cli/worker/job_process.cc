#include "cli/worker/job_process.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/process/process.h"

namespace tocsin::cli {
namespace {

constexpr size_t kLineMax = 400;
constexpr size_t kPartBytes = size_t{64} << 10;  // what a pipe holds
constexpr Millis kFullPause{50};                 // how soon `may_read` is asked again
constexpr std::array<std::string_view, 6> kVariables{"TOCSIN_JOB_ID",       "TOCSIN_TOPIC",  "TOCSIN_ATTEMPT",
                                                     "TOCSIN_MAX_ATTEMPTS", "TOCSIN_DUE_MS", "TOCSIN_KEY"};
constexpr std::string_view kHeaderPrefix = "TOCSIN_HEADER_";

/// A worker that runs in a worker must not pass on the outer job's values.
bool IsOfAJob(std::string_view name) {
  return name.starts_with(kHeaderPrefix) || std::ranges::find(kVariables, name) != kVariables.end();
}

std::string VariableOf(std::string_view header) {
  std::string name(kHeaderPrefix);
  for (const char c : header) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 && byte < 0x80 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

/// Feeds the payload, reads stderr and waits for the end, all at once.
class Pump {
 public:
  Pump(Process& process, std::string_view input, const JobWatch& watch)
      : process_(process), input_(input), watch_(watch), next_tick_(Now() + watch.tick) {
    for (const int fd : {process.in.get(), process.err.get()}) ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (input_.empty()) process_.in.Close();
  }

  JobRun Run() {
    while (!ended_) Turn();
    Read();  // its last output, at most what a pipe holds; do not wait for others that hold its stderr open
    return {.status = process_.Wait(), .killed = killed_, .last_line = last_line_.text()};
  }

 private:
  using Point = std::chrono::steady_clock::time_point;
  Point Now() const { return watch_.clock.IoNow(); }

  void Turn() {
    const bool may_read = watch_.may_read();
    std::array<pollfd, 4> polls{
        pollfd{process_.ended.get(), POLLIN, 0}, pollfd{may_read ? process_.err.get() : -1, POLLIN, 0},
        pollfd{process_.in.get(), POLLOUT, 0}, pollfd{killed_ ? -1 : watch_.kill_fd, POLLIN, 0}};
    const auto left = std::max(Millis(0), std::chrono::ceil<Millis>(next_tick_ - Now()));
    ::poll(polls.data(), polls.size(), static_cast<int>((may_read ? left : std::min(left, kFullPause)).count()));
    if (polls[1].revents != 0) Read();
    if (polls[2].revents != 0) Feed();
    if (polls[3].revents != 0) {
      killed_ = true;
      process_.Kill(SIGKILL);
    }
    ended_ = polls[0].revents != 0;
    if (ended_ || Now() < next_tick_) return;
    next_tick_ = Now() + watch_.tick;
    watch_.on_tick();
  }

  void Feed() {
    const ssize_t n = ::write(process_.in.get(), input_.data(), input_.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) input_.remove_prefix(static_cast<size_t>(n));
    if (n < 0 || input_.empty()) process_.in.Close();  // a command need not read all of it
  }

  /// Once only: a command that writes all the time must not keep us from the rest.
  void Read() {
    if (!process_.err.open()) return;
    const ssize_t n = ::read(process_.err.get(), part_.data(), part_.size());
    if (n == 0) process_.err.Close();
    if (n <= 0) return;
    const std::string_view text(part_.data(), static_cast<size_t>(n));
    last_line_.Add(text);
    watch_.on_stderr(text);
  }

  Process& process_;
  std::string_view input_;
  const JobWatch& watch_;
  Point next_tick_;
  std::string part_ = std::string(kPartBytes, '\0');
  LastLine last_line_;
  bool ended_ = false;
  bool killed_ = false;
};

}  // namespace

void LastLine::Add(std::string_view part) {
  while (!part.empty()) {
    const size_t end = part.find('\n');
    const std::string_view piece = part.substr(0, end);
    current_.append(piece.substr(0, kLineMax - std::min(kLineMax, current_.size())));
    if (end == std::string_view::npos) return;
    if (!current_.empty()) last_ = std::exchange(current_, {});
    part.remove_prefix(end + 1);
  }
}

std::vector<std::string> JobVariables(std::string_view topic, const json::object& job) {
  std::vector<std::string> variables;
  const auto add = [&](std::string_view name, std::string_view value) {
    if (!value.contains('\0')) variables.push_back(fmt::format("{}={}", name, value));
  };
  add("TOCSIN_JOB_ID", TextOf(job, "id"));
  add("TOCSIN_TOPIC", topic);
  add("TOCSIN_ATTEMPT", std::to_string(IntegerOf(job, "attempt")));
  add("TOCSIN_MAX_ATTEMPTS", std::to_string(IntegerOf(job, "max_attempts")));
  add("TOCSIN_DUE_MS", std::to_string(IntegerOf(job, "due_ms")));
  if (job.contains("key")) add("TOCSIN_KEY", TextOf(job, "key"));
  for (const auto& [name, value] : ObjectOf(job, "headers")) {
    if (value.is_string()) add(VariableOf(name), value.get_string());
  }
  return variables;
}

Result<JobRun> RunJob(const std::vector<std::string>& words, std::string_view topic, const json::object& job,
                      const JobWatch& watch) {
  Program program{.words = words,
                  .environment = EnvironmentWithout(IsOfAJob),
                  .pipe_in = true,
                  .pipe_err = true,
                  .out_to_err = watch.out_to_err};
  for (std::string& variable : JobVariables(topic, job)) program.environment.push_back(std::move(variable));
  TOCSIN_ASSIGN(Process process, Process::Start(program));
  const std::string payload = PayloadOf(job);
  return Pump(process, payload, watch).Run();
}

void StderrQueue::Add(std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    if (text_.size() >= kMaxBytes) return;
    text_ += text;
  }
  Signal(wake_);
}

bool StderrQueue::Full() const {
  const std::lock_guard lock(mutex_);
  return text_.size() >= kFullBytes;
}

int StderrQueue::out_fd() {
  eventfd_t ignored = 0;
  ::eventfd_read(wake_.get(), &ignored);
  const std::lock_guard lock(mutex_);
  return text_.empty() ? -1 : STDERR_FILENO;
}

void StderrQueue::Write() {
  std::string part;
  {
    const std::lock_guard lock(mutex_);
    part = text_.substr(0, PIPE_BUF);  // a writable pipe has room for this much
  }
  const ssize_t n = ::write(STDERR_FILENO, part.data(), part.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::lock_guard lock(mutex_);
  text_.erase(0, n < 0 ? std::string::npos : static_cast<size_t>(n));  // drop what cannot be written
}

void StderrQueue::Finish(const Clock& clock, Millis limit) {
  const auto end = clock.IoNow() + limit;
  while (out_fd() >= 0) {
    pollfd poll{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    const auto left = std::chrono::ceil<Millis>(end - clock.IoNow());
    if (::poll(&poll, 1, static_cast<int>(std::max<int64_t>(0, left.count()))) <= 0) return;
    Write();
  }
}

}  // namespace tocsin::cli
