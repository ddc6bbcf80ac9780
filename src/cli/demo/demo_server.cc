#include "cli/demo/demo_server.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/text/file.h"

namespace tocsin::cli {
namespace {

constexpr Millis kStartTime{20'000};
constexpr Millis kAnswerTime{10'000};

/// The text after `word` in its line of the start-up message.
std::string FieldOf(std::string_view banner, std::string_view word) {
  const size_t at = banner.find(fmt::format("\n{} ", word));
  if (at == std::string_view::npos) return "";
  banner.remove_prefix(at + 1 + word.size());
  banner.remove_prefix(std::min(banner.find_first_not_of(' '), banner.size()));
  return std::string(banner.substr(0, banner.find('\n')));
}

}  // namespace

Result<std::unique_ptr<DemoServer>> DemoServer::Make() {
  std::error_code problem;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", problem);
  const std::string program = (self.parent_path() / "tocsind").string();
  if (problem || ::access(program.c_str(), X_OK) != 0) {
    return Fail(Code::kNotFound, "there is no server to show: {} is missing", program);
  }
  const std::filesystem::path place = std::filesystem::temp_directory_path(problem);
  if (problem) return Fail(Code::kIo, "there is no folder for temporary files, see TMPDIR: {}", problem.message());
  std::string folder = (place / "tocsin-demo-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return SystemError("make", folder);
  }
  return std::unique_ptr<DemoServer>(new DemoServer(program, std::move(folder)));
}

DemoServer::~DemoServer() {
  process_.reset();
  std::error_code ignored;  // the folder then stays in the system's temporary folder
  std::filesystem::remove_all(folder_, ignored);
}

Status DemoServer::Start() {
  const auto of_tocsin = [](std::string_view name) { return name.starts_with("TOCSIN_"); };
  auto process = Process::Start({.words = {program_, "--clock", "virtual", "--data-dir", folder_ + "/data",
                                           "--http-listen", "127.0.0.1:0", "--resp-listen", "127.0.0.1:0",
                                           "--journal-segment-size", "8MiB", "--shards", "1", "--log-level", "error"},
                                 .environment = EnvironmentWithout(of_tocsin),
                                 .pipe_out = true});
  if (!process) return std::unexpected(std::move(process).error());
  process_.emplace(*std::move(process));
  const auto banner = ReadBanner();
  if (!banner) return std::unexpected(banner.error());
  auto endpoint = ParseEndpoint(FieldOf(*banner, "http"));
  if (!endpoint) return std::unexpected(std::move(endpoint).error());
  const std::string data = FieldOf(*banner, "data");
  const size_t open = data.rfind('(');
  recovery_ = open == std::string::npos ? data : data.substr(open + 1, data.size() - open - 2);
  api_ = std::make_unique<Api>(*std::move(endpoint), "", kAnswerTime);
  return {};
}

Result<std::string> DemoServer::ReadBanner() {
  std::string banner;
  while (!banner.contains("\nReady")) {
    pollfd poll{.fd = process_->out.get(), .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, static_cast<int>(kStartTime.count())) <= 0)
      return Fail(Code::kTimedOut, "the server does not start");
    std::array<char, 4096> part{};
    const ssize_t n = ::read(process_->out.get(), part.data(), part.size());
    if (n <= 0) return Fail(Code::kIo, "the server ended while it started");
    banner.append(part.data(), static_cast<size_t>(n));
  }
  return banner;
}

void DemoServer::Kill() { process_.reset(); }

int DemoServer::Stop() {
  process_->Kill(SIGTERM);
  const int status = process_->Wait();
  process_.reset();
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace tocsin::cli
