// The table of options. One row declares an option: the file, the flags, the environment, --help, the sample file and
// docs/configuration.md are made from it (CONTRIBUTING.md, "add an option").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "config/config.h"

namespace tocsin {

/// Where a value is kept. The type of the member is the type of the option: std::string is a text, Addresses a list
/// (both are empty only if the default is), int a number, uint64_t a size in bytes.
using ConfigMember =
    std::variant<std::string Config::*, Address Config::*, Addresses Config::*, int Config::*, uint64_t Config::*,
                 Millis Config::*, Durability Config::*, ClockKind Config::*, LogLevel Config::*, bool Config::*,
                 StoreKind Config::*, RedisMode Config::*, RedisChecks Config::*, CoordinationKind Config::*,
                 KafkaSecurity Config::*, KafkaMechanism Config::*, KafkaCompression Config::*>;

/// What a std::string may hold.
enum class TextKind : uint8_t {
  kPath,
  kName,  // lower-case letters, digits, ".", "_" and "-"
  kWord,  // printable ASCII without spaces
};

struct Option {
  std::string_view group;
  std::string_view key;  // as in the file, dotted
  ConfigMember member;
  std::string_view fallback;  // the default, as a user would write it
  int64_t min = 0;            // bounds of numbers, bytes, ms of durations, and letters of texts; both included
  int64_t max = 0;
  TextKind text = TextKind::kPath;
  std::string_view zero;                      // what 0 means; empty: only min to max is allowed
  std::span<const std::string_view> choices;  // of enums
  std::string_view doc;
};

std::span<const Option> Options();

/// The row of `key`, or null.
const Option* FindOption(std::string_view key);

/// http.listen -> --http-listen
std::string FlagOf(std::string_view key);
/// http.listen -> TOCSIN_HTTP_LISTEN
std::string VariableOf(std::string_view key);

}  // namespace tocsin
