#include "sinks/webhook/address_guard.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/comma_list.h"

namespace tocsin::webhook {
namespace {

namespace ip = boost::asio::ip;
using boost::system::error_code;

constexpr std::string_view kLoopback = "a loopback address";
constexpr std::string_view kPrivate = "an address of a private network";
constexpr std::string_view kLinkLocal = "a link-local address";
constexpr std::string_view kMulticast = "a multicast address";
constexpr std::string_view kReserved = "a reserved address";
constexpr std::string_view kDocumentation = "an address for documentation";
constexpr std::string_view kUnspecified = "the unspecified address";
constexpr std::string_view kPlatform = "an address of a cloud's platform";

struct Special4 {
  uint32_t network;
  int bits;
  std::string_view what;
};

constexpr uint32_t V4(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return a << 24 | b << 16 | c << 8 | d; }

constexpr Special4 kSpecial4[] = {
    {V4(0, 0, 0, 0), 32, kUnspecified},
    {V4(0, 0, 0, 0), 8, "an address of \"this network\""},
    {V4(10, 0, 0, 0), 8, kPrivate},
    {V4(100, 64, 0, 0), 10, "an address of a carrier's NAT"},
    {V4(127, 0, 0, 0), 8, kLoopback},
    {V4(168, 63, 129, 16), 32, kPlatform},
    {V4(169, 254, 0, 0), 16, kLinkLocal},
    {V4(172, 16, 0, 0), 12, kPrivate},
    {V4(192, 0, 0, 0), 24, kReserved},
    {V4(192, 0, 2, 0), 24, kDocumentation},
    {V4(192, 88, 99, 0), 24, kReserved},
    {V4(192, 168, 0, 0), 16, kPrivate},
    {V4(198, 18, 0, 0), 15, "an address for benchmarks"},
    {V4(198, 51, 100, 0), 24, kDocumentation},
    {V4(203, 0, 113, 0), 24, kDocumentation},
    {V4(224, 0, 0, 0), 4, kMulticast},
    {V4(255, 255, 255, 255), 32, "the broadcast address"},
    {V4(240, 0, 0, 0), 4, kReserved},
};

using Bytes6 = ip::address_v6::bytes_type;

struct Special6 {
  std::array<uint8_t, 8> network;  // its first half
  int bits;
  std::string_view what;
};

constexpr Special6 kSpecial6[] = {
    {{0x01, 0x00}, 64, kReserved},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, kDocumentation},
    {{0x20, 0x01, 0x00, 0x00}, 23, kReserved},  // Teredo, benchmarks and others: none is the address of a server
    {{0x3f, 0xff}, 20, kDocumentation},
    {{0xfc, 0x00}, 7, kPrivate},
    {{0xfe, 0x80}, 10, kLinkLocal},
    {{0xfe, 0xc0}, 10, kPrivate},
    {{0xff, 0x00}, 8, kMulticast},
};

constexpr uint8_t kNat64[12] = {0x00, 0x64, 0xff, 0x9b};

bool Begins(const Bytes6& bytes, const uint8_t* prefix, int bits) {
  const int whole = bits / 8;
  if (std::memcmp(bytes.data(), prefix, static_cast<size_t>(whole)) != 0) return false;
  if (bits % 8 == 0) return true;
  const int shift = 8 - bits % 8;
  return bytes[static_cast<size_t>(whole)] >> shift == prefix[whole] >> shift;
}

uint32_t V4At(const Bytes6& bytes, size_t at) { return V4(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]); }

std::optional<std::string_view> Kind4(uint32_t address) {
  for (const Special4& special : kSpecial4) {
    if (address >> (32 - special.bits) == special.network >> (32 - special.bits)) return special.what;
  }
  return std::nullopt;
}

/// Of the IPv4 address that the IPv6 address leads to through a translator or a tunnel.
std::optional<std::string_view> KindInside(const Bytes6& bytes) {
  constexpr uint8_t k6to4[2] = {0x20, 0x02};
  constexpr uint8_t kIsatap[3] = {0x00, 0x5e, 0xfe};
  if (Begins(bytes, kNat64, 96)) return Kind4(V4At(bytes, 12));
  if (Begins(bytes, k6to4, 16)) return Kind4(V4At(bytes, 2));
  if ((bytes[8] | 0x02) == 0x02 && std::memcmp(bytes.data() + 9, kIsatap, 3) == 0) return Kind4(V4At(bytes, 12));
  return std::nullopt;
}

std::optional<std::string_view> Kind6(const ip::address_v6& address) {
  const Bytes6 bytes = address.to_bytes();
  if (address.is_unspecified()) return kUnspecified;
  if (address.is_loopback()) return kLoopback;
  for (const Special6& special : kSpecial6) {
    if (Begins(bytes, special.network.data(), special.bits)) return special.what;
  }
  if (const auto inside = KindInside(bytes)) return inside;
  const bool global = bytes[0] >> 5 == 1 || Begins(bytes, kNat64, 96);
  if (!global) return kReserved;  // also the IPv4-compatible ones, which are long deprecated
  return std::nullopt;
}

Status BadNetwork(std::string_view text, std::string_view why) {
  return FailField(Code::kInvalidArgument, "webhook.allow", "webhook.allow has \"{}\": {}", text, why);
}

}  // namespace

Result<Networks> Networks::Parse(std::string_view text) {
  Networks networks;
  for (const std::string_view network : CommaList(text)) TOCSIN_TRY(networks.Add(network));
  return networks;
}

Status Networks::Add(std::string_view text) {
  constexpr std::string_view kForm = "it takes networks such as 10.1.0.0/16 or fd00::/8, with commas between them";
  std::string whole(text);
  error_code bad;
  if (!text.contains('/')) {
    const ip::address alone = ip::make_address(whole, bad);
    if (bad) return BadNetwork(text, kForm);
    whole += alone.is_v4() ? "/32" : "/128";
  }
  const auto add = [&](const auto& network, auto& networks) -> Status {
    if (bad) return BadNetwork(text, kForm);
    if (network != network.canonical()) {
      return BadNetwork(text, fmt::format("did you mean {}?", network.canonical().to_string()));
    }
    networks.push_back(network);
    return {};
  };
  return text.contains(':') ? add(ip::make_network_v6(whole, bad), v6_) : add(ip::make_network_v4(whole, bad), v4_);
}

bool Networks::Contains(const ip::address& address) const {
  if (address.is_v4()) {
    return std::ranges::any_of(v4_, [&](const ip::network_v4& network) {
      return ip::network_v4(address.to_v4(), network.prefix_length()).canonical() == network;
    });
  }
  const ip::address_v6 plain(address.to_v6().to_bytes());  // without a scope
  return std::ranges::any_of(v6_, [&](const ip::network_v6& network) {
    return ip::network_v6(plain, network.prefix_length()).canonical() == network;
  });
}

std::optional<std::string_view> WhyRefused(const ip::address& address, const Networks& allow) {
  // The kernel makes an IPv4 connection to it.
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return WhyRefused(ip::make_address_v4(ip::v4_mapped, address.to_v6()), allow);
  }
  const auto kind = address.is_v4() ? Kind4(address.to_v4().to_uint()) : Kind6(address.to_v6());
  if (!kind || allow.Contains(address)) return std::nullopt;
  return kind;
}

}  // namespace tocsin::webhook
