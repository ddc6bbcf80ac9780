// Password files, which options name.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin {

/// The only line of the file of the option `key`; empty if the path is. Errors name the option and the path, and hold
/// nothing of the line.
Result<std::string> PasswordOf(std::string_view key, const std::string& path);

}  // namespace tocsin
