#include "net/address.h"

#include <charconv>

#include <boost/asio/ip/address.hpp>

namespace tocsin::net {

std::string Address::Text() const { return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port); }

Result<Address> MakeAddress(std::string_view host, uint16_t port) {
  if (host == "localhost") host = "127.0.0.1";
  boost::system::error_code bad;
  const auto ip = boost::asio::ip::make_address(std::string(host), bad);
  if (bad) return Fail(Code::kInvalidArgument, "'{}' is not an IP address or localhost", host);
  return Address{.host = ip.to_string(), .port = port, .loopback = ip.is_loopback(), .v6 = ip.is_v6()};
}

Result<Address> ParseAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return Fail(Code::kInvalidArgument, "'{}' is not an address: write host:port, for example 127.0.0.1:7420", text);
  }
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Fail(Code::kInvalidArgument, "'{}' is not a port (0 to 65535) in the address '{}'", digits, text);
  }
  const bool bracketed = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  auto address = MakeAddress(host, port);
  if (address && address->v6 != bracketed) {
    return Fail(Code::kInvalidArgument, "in '{}': an IPv6 address, and nothing else, stands in brackets: [::1]:7420",
                text);
  }
  return address;
}

}  // namespace tocsin::net
