// Files as the commands read and write them: "-" is stdin. Functions without state.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::cli {

struct CloseFile {
  void operator()(std::FILE* file) const {
    if (file != stdin && file != stdout) std::fclose(file);
  }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

/// kIo: "cannot VERB NAME: " and what errno means.
std::unexpected<Error> SystemError(std::string_view verb, std::string_view name);

Result<FilePtr> OpenToRead(const std::string& path);
Result<std::string> ReadAll(const std::string& path);

}  // namespace tocsin::cli
