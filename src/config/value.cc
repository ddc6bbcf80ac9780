#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <ranges>
#include <type_traits>

#include "base/text.h"
#include "config/options.h"

namespace tocsin {
namespace {

constexpr size_t kAddressesMax = 64;

struct Unit {
  std::string_view name;
  int64_t factor;
};

// From the smallest to the largest, so that ShowQuantity finds the largest that divides a value.
constexpr std::array kDurationUnits{Unit{"ms", 1}, Unit{"s", 1000}, Unit{"m", 60'000}, Unit{"h", 3'600'000},
                                    Unit{"d", 86'400'000}};
constexpr std::array kByteUnits{Unit{"B", 1}, Unit{"KiB", 1LL << 10}, Unit{"MiB", 1LL << 20}, Unit{"GiB", 1LL << 30},
                                Unit{"TiB", 1LL << 40}};

/// One of the option's choices.
template <class T>
constexpr bool kIsEnum = std::is_enum_v<T> || std::is_same_v<T, bool>;

/// Calls `visitor` with the member pointer; its value type says which kind of option it is.
template <class Visitor>
auto Visit(const Option& option, Visitor&& visitor) {
  return std::visit([&]<class T>(T Config::* member) { return visitor(member, std::type_identity<T>{}); },
                    option.member);
}

/// A whole number followed by one of `units`. Without a unit: times `bare`, or an error if that is 0.
Result<int64_t> ParseQuantity(std::string_view text, std::span<const Unit> units, int64_t bare,
                              std::string_view example) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range) return Fail(Code::kInvalidArgument, "is too large");
  if (problem != std::errc{} || number < 0) {
    return Fail(Code::kInvalidArgument, "is not a whole number followed by a unit, such as {}", example);
  }
  const std::string_view name = text.substr(static_cast<size_t>(end - text.data()));
  int64_t factor = name.empty() ? bare : 0;
  for (const Unit& unit : units) {
    if (SameWord(name, unit.name)) factor = unit.factor;
  }
  if (factor == 0) {
    return Fail(Code::kInvalidArgument, "needs one of the units {}, such as {}",
                fmt::join(std::views::transform(units, &Unit::name), ", "), example);
  }
  int64_t value = 0;
  if (__builtin_mul_overflow(number, factor, &value)) return Fail(Code::kInvalidArgument, "is too large");
  return value;
}

Result<int64_t> ParseNumber(std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range) return Fail(Code::kInvalidArgument, "is too large");
  if (problem != std::errc{} || end != text.data() + text.size()) {
    return Fail(Code::kInvalidArgument, "is not a whole number");
  }
  return number;
}

Result<Address> ParseAddress(std::string_view text) {
  const auto malformed = [] {
    return Fail(Code::kInvalidArgument, "is not an address, such as 127.0.0.1:7420, localhost:7420 or [::1]:7420");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return malformed();
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  const std::string_view allowed = bracketed ? ":%._-" : "._-";  // IPv6 only in brackets
  const bool clean = std::ranges::all_of(
      host, [&](unsigned char c) { return std::isalnum(c) != 0 || allowed.contains(static_cast<char>(c)); });
  if (host.empty() || host.size() > 253 || !clean) return malformed();
  const Result<int64_t> port = ParseNumber(text.substr(colon + 1));
  if (!port || *port < 0 || *port > std::numeric_limits<uint16_t>::max()) {
    return Fail(Code::kInvalidArgument, "has no port from 0 to 65535 after its last colon");
  }
  return Address{.host = std::string(host), .port = static_cast<uint16_t>(*port)};
}

Result<Addresses> ParseAddresses(std::string_view text) {
  Addresses addresses;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    TOCSIN_ASSIGN(Address address, ParseAddress(text.substr(0, comma)));
    if (address.port == 0) return Fail(Code::kInvalidArgument, "has the port 0, on which nothing listens");
    addresses.push_back(std::move(address));
    if (more) text.remove_prefix(comma + 1);
  }
  if (addresses.size() > kAddressesMax) {
    return Fail(Code::kInvalidArgument, "has {} addresses: the most is {}", addresses.size(), kAddressesMax);
  }
  return addresses;
}

std::string ShowAddress(const Address& address) {
  const bool v6 = address.host.contains(':');
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", address.host, v6 ? "]" : "", address.port);
}

bool IsLetterOf(TextKind kind, unsigned char c) {
  if (kind == TextKind::kWord) return c > ' ' && c < 0x7F;
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view("._-").contains(static_cast<char>(c));
}

Status CheckText(const Option& option, std::string_view text) {
  if (option.text == TextKind::kPath) {
    const bool missing = text.empty() && !option.fallback.empty();
    if (missing || text.contains('\0')) return Fail(Code::kInvalidArgument, "is not a path");
    return {};
  }
  if (text.empty() && option.fallback.empty()) return {};
  const auto size = static_cast<int64_t>(text.size());
  const bool fits = size >= option.min && size <= option.max &&
                    std::ranges::all_of(text, [&](unsigned char c) { return IsLetterOf(option.text, c); });
  if (!fits) return Fail(Code::kInvalidArgument, "is not {}", BoundsOf(option));
  return {};
}

std::string ShowQuantity(int64_t value, std::span<const Unit> units) {
  Unit unit = units.front();
  for (const Unit& larger : units) {
    if (value != 0 && value % larger.factor == 0) unit = larger;
  }
  return fmt::format("{}{}", value / unit.factor, unit.name);
}

template <class T>
std::string ShowBound(int64_t value) {
  if constexpr (std::is_same_v<T, uint64_t>) return ShowQuantity(value, kByteUnits);
  if constexpr (std::is_same_v<T, Millis>) return ShowQuantity(value, kDurationUnits);
  return fmt::format("{}", value);
}

/// "a, b or c"
std::string Either(std::span<const std::string_view> choices) {
  return fmt::format("{} or {}", fmt::join(choices.first(choices.size() - 1), ", "), choices.back());
}

/// The value of an option that is a quantity, checked against its bounds.
template <class T>
Result<int64_t> ParseBounded(const Option& option, std::string_view text) {
  Result<int64_t> value = [&] {
    if constexpr (std::is_same_v<T, uint64_t>) return ParseQuantity(text, kByteUnits, 1, "64MiB");
    if constexpr (std::is_same_v<T, Millis>) return ParseQuantity(text, kDurationUnits, 0, "50ms or 30s");
    return ParseNumber(text);
  }();
  if (!value || (*value == 0 && !option.zero.empty())) return value;
  if (*value < option.min || *value > option.max) {
    return Fail(Code::kInvalidArgument, "is out of range: {}", BoundsOf(option));
  }
  return value;
}

}  // namespace

Status SetOption(const Option& option, std::string_view text, Config& config) {
  return Visit(option, [&]<class T>(T Config::* member, std::type_identity<T>) -> Status {
    if constexpr (std::is_same_v<T, std::string>) {
      TOCSIN_TRY(CheckText(option, text));
      config.*member = text;
    } else if constexpr (std::is_same_v<T, Addresses>) {
      const bool none = text.empty() && option.fallback.empty();
      TOCSIN_ASSIGN(config.*member, none ? Addresses() : ParseAddresses(text));
    } else if constexpr (std::is_same_v<T, Address>) {
      TOCSIN_ASSIGN(config.*member, ParseAddress(text));
    } else if constexpr (kIsEnum<T>) {
      const auto choice = std::ranges::find(option.choices, text);
      if (choice == option.choices.end()) return Fail(Code::kInvalidArgument, "is not {}", Either(option.choices));
      config.*member = static_cast<T>(choice - option.choices.begin());
    } else {
      TOCSIN_ASSIGN(const int64_t value, ParseBounded<T>(option, text));
      config.*member = static_cast<T>(value);
    }
    return {};
  });
}

std::string ShowOption(const Option& option, const Config& config) {
  return Visit(option, [&]<class T>(T Config::* member, std::type_identity<T>) -> std::string {
    const T& value = config.*member;
    if constexpr (std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (std::is_same_v<T, Address>) {
      return ShowAddress(value);
    } else if constexpr (std::is_same_v<T, Addresses>) {
      return fmt::format("{}", fmt::join(std::views::transform(value, ShowAddress), ","));
    } else if constexpr (kIsEnum<T>) {
      return std::string(option.choices[static_cast<size_t>(value)]);
    } else if constexpr (std::is_same_v<T, Millis>) {
      return ShowBound<T>(value.count());
    } else {
      return ShowBound<T>(static_cast<int64_t>(value));
    }
  });
}

std::string_view TypeOf(const Option& option) {
  return Visit(option, [&]<class T>(T Config::*, std::type_identity<T>) -> std::string_view {
    if constexpr (std::is_same_v<T, std::string>) return option.text == TextKind::kPath ? "path" : "text";
    if constexpr (std::is_same_v<T, Address>) return "address";
    if constexpr (std::is_same_v<T, Addresses>) return "addresses";
    if constexpr (std::is_same_v<T, uint64_t>) return "size";
    if constexpr (std::is_same_v<T, Millis>) return "duration";
    if constexpr (kIsEnum<T>) return "choice";
    return "number";
  });
}

std::string TomlLine(const Option& option, std::string_view key, std::string_view value) {
  const bool bare =
      std::holds_alternative<int Config::*>(option.member) || std::holds_alternative<bool Config::*>(option.member);
  if (bare) return fmt::format("{} = {}", key, value);
  std::string quoted;
  for (const char c : value) {
    const bool control = static_cast<unsigned char>(c) < ' ' || c == 0x7F;
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += control ? fmt::format("\\u{:04X}", c) : std::string(1, c);
  }
  return fmt::format("{} = \"{}\"", key, quoted);
}

std::string BoundsOf(const Option& option) {
  if (!option.choices.empty()) return Either(option.choices);
  return Visit(option, [&]<class T>(T Config::*, std::type_identity<T>) -> std::string {
    if (option.max == 0) return "";
    if constexpr (std::is_same_v<T, std::string>) {
      return fmt::format(
          "{} to {} characters of {}", option.min, option.max,
          option.text == TextKind::kName ? "a-z, 0-9, \".\", \"_\" and \"-\"" : "printable ASCII without spaces");
    }
    std::string bounds = fmt::format("{} to {}", ShowBound<T>(option.min), ShowBound<T>(option.max));
    if (!option.zero.empty()) bounds += fmt::format("; 0 means {}", option.zero);
    return bounds;
  });
}

}  // namespace tocsin
