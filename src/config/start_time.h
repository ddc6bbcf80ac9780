// The value of clock_start: a moment in UTC. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "base/time.h"

namespace tocsin {

/// 2026-12-01T09:00:00Z, or milliseconds since 1970. Nothing if it is neither, or not a time of this century.
std::optional<Time> ParseStartTime(std::string_view text);

}  // namespace tocsin
