#include "net/address.h"

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

}  // namespace tocsin::net
