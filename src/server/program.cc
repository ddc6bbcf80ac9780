#include "server/program.h"

#include <fmt/format.h>

#include "base/log.h"
#include "server/exit_status.h"
#include "server/node.h"

namespace tocsin {
namespace {

void Print(std::FILE* to, std::string_view text) {
  fmt::print(to, "{}", text);
  std::fflush(to);
}

int ExitStatusOf(Code code) {
  if (code == Code::kShuttingDown) return kExitOk;
  return code == Code::kInvalidArgument ? kExitBadConfig : kExitCannotStart;
}

}  // namespace

int RunProgram(const Inputs& inputs, std::FILE* out, std::FILE* err) {
  const auto loaded = LoadConfig(inputs);
  if (!loaded) {
    Print(err, fmt::format("tocsind: {}\n", loaded.error().message));
    return kExitBadConfig;
  }
  if (loaded->action == Action::kPrint) {
    Print(out, loaded->text);
    return kExitOk;
  }
  SetLogLevel(loaded->config.log_level);
  auto node = ServerNode::Open(loaded->config);
  if (!node) {
    Print(err, fmt::format("tocsind: {}\n", node.error().message));
    return ExitStatusOf(node.error().code);
  }
  Print(out, (*node)->Banner());
  return (*node)->Run();
}

}  // namespace tocsin
