// tocsind: the server program.
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

#include "base/log.h"
#include "config/load.h"
#include "server/exit_status.h"
#include "server/node.h"

namespace {

void Print(std::FILE* to, std::string_view text) {
  fmt::print(to, "{}", text);
  std::fflush(to);
}

int Main(int argc, char** argv) {
  using namespace tocsin;
  std::signal(SIGPIPE, SIG_IGN);
  const auto loaded = LoadConfig(ProcessInputs(argc, argv, environ));
  if (!loaded) {
    Print(stderr, fmt::format("tocsind: {}\n", loaded.error().message));
    return kExitBadConfig;
  }
  if (loaded->action == Action::kPrint) {
    Print(stdout, loaded->text);
    return kExitOk;
  }
  SetLogLevel(loaded->config.log_level);
  auto node = ServerNode::Open(loaded->config);
  if (!node && node.error().code == Code::kShuttingDown) {
    Print(stderr, fmt::format("tocsind: {}\n", node.error().message));
    return kExitOk;
  }
  if (!node) {
    Print(stderr, fmt::format("tocsind: {}\n", node.error().message));
    return node.error().code == Code::kInvalidArgument ? kExitBadConfig : kExitCannotStart;
  }
  Print(stdout, (*node)->Banner());
  return (*node)->Run();
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
