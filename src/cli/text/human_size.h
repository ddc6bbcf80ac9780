// Bytes as people write and read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::cli {

/// A whole number with B, KiB, MiB, GiB or TiB; without a unit: bytes.
Result<int64_t> ParseSize(std::string_view text);

/// For people: "64 MiB", "1.5 KiB", "17 B".
std::string ShowSize(int64_t bytes);

}  // namespace tocsin::cli
