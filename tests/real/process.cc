#include "real/process.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/result.h"

namespace tocsin::real {

namespace {

using Steady = std::chrono::steady_clock;

constexpr Millis kBetweenTries{5};
constexpr Millis kStopWithin{10'000};
constexpr size_t kShownOutput = 4'000;

/// Waits until `fd` can be read (never for -1) or the time is over; whether it can be read.
bool Readable(int fd, Millis within) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(within);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(within - seconds).count()};
  return ppoll(&one, 1, &time, nullptr) > 0;
}

Millis Left(Steady::time_point end) { return std::max(Millis(0), std::chrono::ceil<Millis>(end - Steady::now())); }

/// In the child: becomes the program, or writes errno to `report`. Nothing here allocates.
[[noreturn]] void Become(char* const* arguments, const char* folder, int log, int report, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  const int nothing = open("/dev/null", O_RDONLY);
  const bool prepared = nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(log, 1) >= 0 && dup2(log, 2) >= 0 &&
                        setsid() >= 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent &&
                        sigprocmask(SIG_SETMASK, &none, nullptr) == 0 && chdir(folder) == 0 &&
                        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0;
  signal(SIGPIPE, SIG_DFL);
  if (prepared) execv(arguments[0], arguments);
  const int why = errno;
  [[maybe_unused]] const ssize_t written = write(report, &why, sizeof why);
  _exit(127);
}

}  // namespace

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "tocsin-real-XXXXXX").string();
  TOCSIN_CHECK(mkdtemp(name.data()) != nullptr);
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;  // what cannot be removed is left to the system
  std::filesystem::remove_all(path_, ignored);
}

std::string FindProgram(std::string_view name) {
  const char* path = getenv("PATH");
  const std::string folders = std::string(path != nullptr ? path : "") + ":/usr/bin:/usr/sbin:/sbin";
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string file = fmt::format("{}/{}", std::string_view(folders).substr(begin, end - begin), name);
    if (end > begin && access(file.c_str(), X_OK) == 0) return file;
    begin = end + 1;
  }
  return {};
}

bool WaitFor(Millis within, const std::function<bool()>& condition) {
  const auto end = Steady::now() + within;
  while (!condition()) {
    if (Steady::now() >= end) return false;
    Readable(-1, kBetweenTries);
  }
  return true;
}

void WriteFile(const std::filesystem::path& file, std::string_view text) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  TOCSIN_CHECK(out.good());
}

Process::Process(std::vector<std::string> arguments, std::filesystem::path folder, std::filesystem::path log)
    : arguments_(std::move(arguments)), folder_(std::move(folder)), log_(std::move(log)) {}

Process::~Process() { Kill(); }

Status Process::Spawn() {
  TOCSIN_CHECK(pid_ < 0);
  const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return Fail(Code::kIo, "{}: {}", log_.string(), strerror(errno));
  std::array<int, 2> report{};
  TOCSIN_CHECK(pipe2(report.data(), O_CLOEXEC) == 0);
  std::vector<char*> arguments;
  for (std::string& argument : arguments_) arguments.push_back(argument.data());
  arguments.push_back(nullptr);

  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) Become(arguments.data(), folder_.c_str(), log, report[1], parent);
  const int fork_error = errno;
  close(log);
  close(report[1]);
  if (pid_ < 0) {
    close(report[0]);
    return Fail(Code::kIo, "fork: {}", strerror(fork_error));
  }
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  TOCSIN_CHECK(pidfd_ >= 0);
  paused_ = false;
  int why = 0;  // the pipe closes when the program has begun
  const bool failed = read(report[0], &why, sizeof why) == sizeof why;
  close(report[0]);
  if (!failed) return {};
  Kill();
  return Fail(Code::kIo, "{}: {}", arguments_[0], strerror(why));
}

Status Process::Start(const std::function<bool()>& ready, Millis within) {
  TOCSIN_TRY(Spawn());
  const auto end = Steady::now() + within;
  while (!ready()) {
    if (Ended(kBetweenTries)) {
      const std::string how = WIFEXITED(status_) ? fmt::format("ended with status {}", WEXITSTATUS(status_))
                                                 : fmt::format("was ended by signal {}", WTERMSIG(status_));
      return Fail(Code::kIo, "{} {} before it was ready:\n{}", arguments_[0], how, Output());
    }
    if (Steady::now() >= end) {
      Kill();
      return Fail(Code::kTimedOut, "{} was not ready within {} ms:\n{}", arguments_[0], within.count(), Output());
    }
  }
  return {};
}

Status Process::Run(Millis within) {
  TOCSIN_TRY(Spawn());
  if (!Ended(within)) {
    Kill();
    return Fail(Code::kTimedOut, "{} did not end within {} ms:\n{}", arguments_[0], within.count(), Output());
  }
  if (status_ == 0) return {};
  return Fail(Code::kIo, "{} failed:\n{}", arguments_[0], Output());
}

bool Process::Ended(Millis within) {
  if (pid_ < 0) return true;
  const auto end = Steady::now() + within;
  while (Readable(pidfd_, Left(end))) {
    if (waitpid(pid_, &status_, WNOHANG) != pid_) continue;
    Forget();
    return true;
  }
  return false;
}

void Process::Forget() {
  kill(-pid_, SIGKILL);  // what it has started itself, such as a child that writes a snapshot
  close(pidfd_);
  pid_ = pidfd_ = -1;
  paused_ = false;
}

void Process::Stop() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  kill(pid_, SIGCONT);
  if (!Ended(kStopWithin)) Kill();
}

void Process::Kill() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);  // if it is not the leader of its group yet
  TOCSIN_CHECK(Ended(kStopWithin));
}

void Process::Pause() {
  if (pid_ < 0) return;
  kill(-pid_, SIGSTOP);
  int status = 0;
  TOCSIN_CHECK(waitpid(pid_, &status, WUNTRACED) == pid_);
  if (WIFSTOPPED(status)) {
    paused_ = true;
    return;
  }
  status_ = status;
  Forget();
}

void Process::Continue() {
  if (pid_ < 0) return;
  kill(-pid_, SIGCONT);
  paused_ = false;
}

bool Process::running() { return !Ended(Millis(0)); }

std::string Process::Output() const {
  std::ifstream in(log_, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.size() > kShownOutput) text.erase(0, text.size() - kShownOutput);
  return text;
}

}  // namespace tocsin::real
