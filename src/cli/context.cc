#include "cli/context.h"

#include <cerrno>
#include <cstring>
#include <memory>

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

Result<std::string> ReadAll(const std::string& path) {
  const auto close = [](std::FILE* file) {
    if (file != stdin) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"), close);
  if (file == nullptr) return Fail(Code::kIo, "cannot read {}: {}", path, std::strerror(errno));
  std::string bytes;
  char part[1 << 16];
  while (const size_t size = std::fread(part, 1, sizeof(part), file.get())) bytes.append(part, size);
  if (std::ferror(file.get()) != 0) return Fail(Code::kIo, "cannot read {}: {}", path, std::strerror(errno));
  return bytes;
}

}  // namespace tocsin::cli
