// The table of options. One row declares an option: the file, the flags, the environment, --help, the sample file and
// docs/configuration.md are made from it (CONTRIBUTING.md, "add an option").
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace tocsin {

/// Where a value is kept. The type of the member is the type of the option: std::string is a text, Addresses a list
/// (both are empty only if the default is), int a number, uint64_t a size in bytes.
using ConfigMember =
    std::variant<std::string Config::*, Address Config::*, Addresses Config::*, int Config::*, uint64_t Config::*,
                 Millis Config::*, Durability Config::*, ClockKind Config::*, LogLevel Config::*, LogFormat Config::*,
                 bool Config::*, StoreKind Config::*, RedisMode Config::*, RedisChecks Config::*,
                 CoordinationKind Config::*, KafkaSecurity Config::*, KafkaMechanism Config::*,
                 KafkaCompression Config::*, DoorTls Config::*, TlsClientAuth Config::*>;

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
  bool secret = false;  // its value may hold one: it is not shown
};

std::span<const Option> Options();

/// The row of `key`, or null.
const Option* FindOption(std::string_view key);

/// http.listen -> --http-listen
std::string FlagOf(std::string_view key);
/// http.listen -> TOCSIN_HTTP_LISTEN
std::string VariableOf(std::string_view key);

// Values as people write them (30s, 50ms, 64MiB, 127.0.0.1:7420). ShowOption writes what SetOption reads.

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

/// A value that was given for an option, and who gave it ("tocsin.toml:12", "--shards", "TOCSIN_SHARDS").
struct Setting {
  const Option* option = nullptr;
  std::string value;
  std::string origin;
};

/// The settings in `text`. `name` is the file's, for messages. An error names the file and the line.
Result<std::vector<Setting>> ParseToml(const std::string& text, const std::string& name);

/// Refuses options that contradict each other, or have no effect because of others. An error names the option at fault,
/// and how to mend it.
Status CheckTogether(const Config& config);

}  // namespace tocsin
