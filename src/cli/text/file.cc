#include "cli/text/file.h"

#include <cerrno>
#include <system_error>

namespace tocsin::cli {

std::unexpected<Error> SystemError(std::string_view verb, std::string_view name) {
  return Fail(Code::kIo, "cannot {} {}: {}", verb, name, std::generic_category().message(errno));
}

Result<FilePtr> OpenToRead(const std::string& path) {
  FilePtr file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return SystemError("read", path);
  return file;
}

Result<std::string> ReadAll(const std::string& path) {
  const auto file = OpenToRead(path);
  if (!file) return std::unexpected(file.error());
  std::string bytes;
  char part[1 << 16];
  while (const size_t size = std::fread(part, 1, sizeof(part), file->get())) bytes.append(part, size);
  if (std::ferror(file->get()) != 0) return SystemError("read", path);
  return bytes;
}

}  // namespace tocsin::cli
