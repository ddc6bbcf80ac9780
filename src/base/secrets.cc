#include "base/secrets.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/log.h"
#include "base/text.h"

namespace tocsin {
namespace {

constexpr size_t kNameMax = 128;
constexpr size_t kBytesMax = 64 << 10;

bool IsAlphanumeric(char c) { return (Capital(c) >= 'A' && Capital(c) <= 'Z') || (c >= '0' && c <= '9'); }

/// No path: a name cannot lead out of the folder.
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

void Secrets::WarnOnce(const std::string& path, unsigned mode) const {
  const std::lock_guard lock(told_->mutex);
  if (!told_->paths.insert(path).second) return;
  LogWarn("{0} holds a secret and has mode {1:04o}: other users can reach it; do: chmod 600 {0}", path, mode);
}

/// Nothing if there is no such file.
Result<std::optional<std::string>> Secrets::ReadFile(const std::string& path) const {
  const auto failed = [&path] {
    return Fail(Code::kIo, "cannot read {}: {}", path, std::generic_category().message(errno));
  };
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.open() && errno == ENOENT) return std::nullopt;
  if (!fd.open()) return failed();
  struct stat info{};
  if (::fstat(fd.get(), &info) < 0 || !S_ISREG(info.st_mode)) {
    return Fail(Code::kInvalidArgument, "{} is not a file", path);
  }
  if ((info.st_mode & 077) != 0) WarnOnce(path, info.st_mode & 07777);
  std::string text(kBytesMax + 1, '\0');
  size_t size = 0;
  ssize_t got = 0;
  while (size < text.size() && (got = ::read(fd.get(), text.data() + size, text.size() - size)) > 0) {
    size += static_cast<size_t>(got);
  }
  if (got < 0) return failed();
  if (size > kBytesMax) return Fail(Code::kInvalidArgument, "{} has more than {} bytes", path, kBytesMax);
  text.resize(size);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

std::string Secrets::VariableOf(std::string_view name) {
  std::string variable = "TOCSIN_SECRET_";
  for (const char c : name) variable += IsAlphanumeric(c) ? Capital(c) : '_';
  return variable;
}

Result<std::string> Secrets::Find(std::string_view name) const {
  if (!IsName(name)) {
    return Fail(Code::kInvalidArgument,
                "\"{}\" cannot name a secret: it takes 1 to {} letters, digits, -, _ and ., not beginning with a .",
                Shown(name), kNameMax);
  }
  const std::string variable = VariableOf(name);
  std::optional<std::string> secret;
  if (!folder_.empty()) {
    TOCSIN_ASSIGN(secret, ReadFile(folder_ + "/" + std::string(name)));
  }
  if (!secret) {
    if (const char* const value = std::getenv(variable.c_str()); value != nullptr) secret = value;
  }
  if (!secret && folder_.empty()) {
    return Fail(Code::kInvalidArgument, "no secret {}: the environment has no {}, and no folder of secrets is set",
                name, variable);
  }
  if (!secret) {
    return Fail(Code::kInvalidArgument,
                "no secret {}: the folder of secrets has no such file, and the environment no {}", name, variable);
  }
  if (secret->empty()) return Fail(Code::kInvalidArgument, "the secret {} is empty", name);
  return *std::move(secret);
}

}  // namespace tocsin
