#include "cli/context.h"

#include <cstdio>

#include <unistd.h>

#include "cli/text/stderr.h"

namespace tocsin::cli {

Time ServerNow(Context& context) {
  const auto stats = context.api.Get("/v1/stats");
  const int64_t now_ms = stats ? IntegerOf(*stats, "now_ms") : 0;
  return now_ms > 0 ? FromMs(now_ms) : context.clock.Now().utc;
}

Result<bool> Confirm(bool yes, const std::string& question) {
  if (yes) return true;
  if (isatty(STDIN_FILENO) != 1) {
    return Fail(Code::kInvalidArgument, "{} Nobody can be asked here: add --yes to confirm", question);
  }
  PrintStderr("{} [y/N] ", question);
  char answer[16] = "";
  if (std::fgets(answer, sizeof(answer), stdin) == nullptr) return false;
  return answer[0] == 'y' || answer[0] == 'Y';
}

}  // namespace tocsin::cli
