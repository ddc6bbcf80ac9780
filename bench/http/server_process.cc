#include "server_process.h"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tocsin::bench {
namespace {

[[noreturn]] void Become(const std::string& program, std::vector<std::string> arguments, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDERR_FILENO);
  dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);  // on a terminal it would greet us
  arguments.insert(arguments.begin(), program);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  Die("cannot run {}: {}", program, std::strerror(errno));
}

}  // namespace

ServerProcess::ServerProcess(const std::string& program, std::filesystem::path folder,
                             const std::vector<std::string>& flags)
    : folder_(std::move(folder)) {
  std::filesystem::remove_all(folder_);
  std::vector<std::string> arguments = {"--data-dir",  folder_.string(), "--http-listen",
                                        "127.0.0.1:0", "--log-level",    "warn"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  int ends[2];
  if (pipe(ends) != 0) Die("no pipe: {}", std::strerror(errno));
  pid_ = fork();
  if (pid_ < 0) Die("cannot fork: {}", std::strerror(errno));
  if (pid_ == 0) Become(program, std::move(arguments), ends[1]);
  close(ends[1]);
  log_ = ends[0];
  AwaitReady();
  passes_on_ = std::jthread([this] {
    char chunk[512];
    for (ssize_t got = 0; (got = read(log_, chunk, sizeof(chunk))) > 0;) {
      std::fwrite(chunk, 1, static_cast<size_t>(got), stderr);
    }
  });
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  passes_on_.join();
  close(log_);
  std::filesystem::remove_all(folder_);
}

void ServerProcess::AwaitReady() {
  std::string log;
  size_t ready = 0;
  while ((ready = log.find(" ready http=")) == std::string::npos || log.find('\n', ready) == std::string::npos) {
    char chunk[512];
    const ssize_t got = read(log_, chunk, sizeof(chunk));
    if (got <= 0) Die("the server did not start: {}", log);
    log.append(chunk, static_cast<size_t>(got));
  }
  const size_t begin = ready + std::strlen(" ready http=");
  endpoint_ = ParseUrl("http://" + log.substr(begin, log.find(' ', begin) - begin));
}

double ServerProcess::CpuSeconds() const {
  std::ifstream file(fmt::format("/proc/{}/stat", pid_));
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));  // the name may have spaces
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace tocsin::bench
