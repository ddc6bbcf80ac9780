// Times and sizes as people write and read them. Parsing is strict: it refuses what is ambiguous, and says how to
// write it. Moments without a zone are in the local one, as the C library knows it (TZ).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace tocsin::cli {

/// 500ms 30s 30m 2h 7d 1w 1h30m: whole numbers with units, the larger first.
Result<Millis> ParseDuration(std::string_view text);

/// 2026-12-01T09:00+08:00, 2026-12-01T09:00:00.250Z, 2026-12-01 09:00 (local), 2026-12-01 (midnight, local), today or
/// tomorrow with a time of day (local), @1796000000000 (ms since 1970). `now` says which day today is.
Result<Time> ParseMoment(std::string_view text, Time now);

/// Exact, as ParseDuration takes it: 1h30m. For settings.
std::string ExactDuration(Millis duration);

/// Its two largest units, for people: "29m 58s", "4.9s", "500ms".
std::string ShowDuration(Millis duration);

/// "in 29m 58s", "now", "3s ago".
std::string ShowDistance(Time moment, Time now);

/// Local time in ISO 8601, as ParseMoment takes it: 2026-12-01T09:00:00.250+08:00; without a fraction of zero.
std::string ShowMoment(Time moment);

/// A whole number with B, KiB, MiB, GiB or TiB; without a unit: bytes.
Result<int64_t> ParseSize(std::string_view text);

/// For people: "64 MiB", "1.5 KiB", "17 B".
std::string ShowSize(int64_t bytes);

/// "1 job", "2 jobs"; `many` if the plural is not `one` and an s.
std::string Counted(int64_t number, std::string_view one, std::string_view many = "");

}  // namespace tocsin::cli
