#include "server_process.h"

#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tocsin::bench {
namespace {

[[noreturn]] void Become(const std::string& program, std::vector<std::string> arguments, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
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
  output_ = ends[0];
  ReadBanner(output_);
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  close(output_);
  std::filesystem::remove_all(folder_);
}

void ServerProcess::ReadBanner(int fd) {
  std::string banner;
  while (banner.find("\nReady") == std::string::npos) {
    char chunk[512];
    const ssize_t got = read(fd, chunk, sizeof(chunk));
    if (got <= 0) Die("the server did not start");
    banner.append(chunk, static_cast<size_t>(got));
  }
  std::istringstream lines(banner);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    words >> first >> second;
    if (first == "http") endpoint_ = ParseUrl(second);
  }
  if (endpoint_.port == 0) Die("the server's banner names no http address");
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
