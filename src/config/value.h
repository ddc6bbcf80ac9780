// Values of options as people write them (30s, 50ms, 64MiB, 127.0.0.1:7420). ShowOption writes what SetOption reads.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/options.h"

namespace tocsin {

/// Sets the option in `config`, or changes nothing. An error says what is wrong with `text`, not where it came from.
Status SetOption(const Option& option, std::string_view text, Config& config);

/// The value of the option in `config`, as a user would write it.
std::string ShowOption(const Option& option, const Config& config);

/// "size", "duration"...
std::string_view TypeOf(const Option& option);
/// `key = value` in TOML: numbers, true and false are bare, everything else is in quotes.
std::string TomlLine(const Option& option, std::string_view key, std::string_view value);
/// "1MiB to 1GiB", "fsync, interval or os"; empty if there are no bounds.
std::string BoundsOf(const Option& option);

}  // namespace tocsin
