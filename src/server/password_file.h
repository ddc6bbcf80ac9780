// The files that options of passwords name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin {

/// The line that the file of the option `key` holds; nothing where the path is empty. Errors name the option and the
/// path, and hold nothing of the line.
Result<std::string> PasswordOf(std::string_view key, const std::string& path);

}  // namespace tocsin
