// Strings and numbers as JSON carries them. Appends to the caller's string; no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace tocsin::http {

/// "text", quoted and escaped. `text` is valid UTF-8.
void AppendString(std::string& out, std::string_view text);

void AppendInteger(std::string& out, int64_t value);

}  // namespace tocsin::http
