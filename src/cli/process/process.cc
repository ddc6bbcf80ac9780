#include "cli/process/process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/result.h"
#include "cli/text/output.h"

namespace tocsin::cli {
namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return SystemError("make", "a pipe");
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct ChildSetup {
  char* const* words;
  char* const* environment;
  int in;   // -1: none
  int out;  // -1: ours; set up before err, so that it can be our stderr
  int err;
  int problem;  // where the child writes errno if it cannot run the program
};

/// Whether the program is at fault, so that another start would fail too.
bool IsOfTheProgram(int error) {
  return error == ENOENT || error == EACCES || error == EPERM || error == ENOEXEC || error == ENOTDIR ||
         error == ELOOP || error == ELIBBAD || error == EISDIR;
}

/// Runs in the child, where only async-signal-safe functions may be called.
[[noreturn]] void ExecInChild(const ChildSetup& setup) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  const int in = setup.in >= 0 ? setup.in : ::open("/dev/null", O_RDONLY);
  const bool ready = ::dup2(in, STDIN_FILENO) >= 0 && (setup.out < 0 || ::dup2(setup.out, STDOUT_FILENO) >= 0) &&
                     (setup.err < 0 || ::dup2(setup.err, STDERR_FILENO) >= 0);
  if (ready) ::execvpe(setup.words[0], setup.words, setup.environment);
  const int error = errno;
  const ssize_t ignored = ::write(setup.problem, &error, sizeof(error));
  static_cast<void>(ignored);
  ::_exit(127);
}

}  // namespace

Result<Process> Process::Start(const Program& program) {
  const std::vector<char*> words = Pointers(program.words);
  const std::vector<char*> environment = Pointers(program.environment);
  std::array<Pipe, 3> pipes;
  const std::array wanted{program.pipe_in, program.pipe_out, program.pipe_err};
  for (size_t i = 0; i < pipes.size(); ++i) {
    if (!wanted[i]) continue;
    TOCSIN_ASSIGN(pipes[i], MakePipe());
  }
  TOCSIN_ASSIGN(Pipe problem, MakePipe());

  const ChildSetup setup{words.data(),         environment.data(),
                         pipes[0].read.get(),  program.out_to_err ? STDERR_FILENO : pipes[1].write.get(),
                         pipes[2].write.get(), problem.write.get()};
  const pid_t pid = ::fork();
  if (pid == 0) ExecInChild(setup);
  if (pid < 0) return SystemError("start", "a process");
  problem.write.Close();
  Process process(pid);
  int error = 0;
  if (::read(problem.read.get(), &error, sizeof(error)) == sizeof(error)) {
    process.Wait();
    return Fail(IsOfTheProgram(error) ? Code::kNotFound : Code::kIo, "cannot start {}: {}", program.words[0],
                std::generic_category().message(error));
  }
  process.in = std::move(pipes[0].write);
  process.out = std::move(pipes[1].read);
  process.err = std::move(pipes[2].read);
  process.ended = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process.ended.open()) return Fail(Code::kIo, "pidfd_open: {}", std::generic_category().message(errno));
  return process;
}

Process::Process(Process&& other) noexcept
    : in(std::move(other.in)),
      out(std::move(other.out)),
      err(std::move(other.err)),
      ended(std::move(other.ended)),
      pid_(std::exchange(other.pid_, -1)) {}

Process::~Process() {
  Kill(SIGKILL);
  if (pid_ > 0) Wait();
}

void Process::Kill(int signal) const {
  if (pid_ > 0) ::kill(-pid_, signal);
}

int Process::Wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

std::string ShowStatus(int status) {
  if (WIFEXITED(status)) return fmt::format("exit status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const char* const name = ::sigdescr_np(signal);
  return fmt::format("signal {} ({})", signal, name == nullptr ? "unknown" : name);
}

std::vector<std::string> EnvironmentWithout(const std::function<bool(std::string_view)>& drop) {
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!drop(text.substr(0, text.find('=')))) kept.emplace_back(text);
  }
  return kept;
}

std::string ConsumerName() {
  std::array<char, 65> host{};  // as long as Linux lets it be
  if (::gethostname(host.data(), host.size() - 1) != 0) return fmt::format("{}", ::getpid());
  return fmt::format("{}:{}", host.data(), ::getpid());
}

Descriptor MakeEvent() {
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  TOCSIN_CHECK(event.open());
  return event;
}

void Signal(const Descriptor& event) { ::eventfd_write(event.get(), 1); }

StopSignal::StopSignal() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &both, nullptr);
  fd_ = Descriptor(::signalfd(-1, &both, SFD_CLOEXEC | SFD_NONBLOCK));
  TOCSIN_CHECK(fd_.open());
}

bool StopSignal::Wait(Millis limit) {
  pollfd poll{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, static_cast<int>(limit.count())) <= 0) return false;
  signalfd_siginfo info{};
  return ::read(fd_.get(), &info, sizeof(info)) == sizeof(info);
}

}  // namespace tocsin::cli
