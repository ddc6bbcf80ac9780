// Values of options as people write them (30s, 50ms, 64MiB, 127.0.0.1:7420) and as they are shown. What is shown can be
// read again and gives the same value.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "config/options.h"

namespace tocsin {

/// Sets the option in `config`. An error says what is wrong with `text`, not where it came from; `config` is unchanged
/// then.
Status SetOption(const Option& option, std::string_view text, Config& config);

/// The value of the option in `config`, as a user would write it.
std::string ShowOption(const Option& option, const Config& config);

/// "size", "duration"...
std::string_view TypeOf(const Option& option);
/// `key = value` in TOML, where numbers, true and false stand bare and all else in quotes.
std::string TomlLine(const Option& option, std::string_view key, std::string_view value);
/// "1 MiB to 1 GiB" in words, "fsync, interval or os"; empty where anything goes.
std::string BoundsOf(const Option& option);

}  // namespace tocsin
