// Which addresses webhooks may be sent to. A URL comes from whoever may set a topic, so it must not reach what only the
// server can: itself, its private network, the metadata service of its cloud. Only global unicast addresses are
// allowed, also for IPv4 addresses inside IPv6 ones, and those of the operator's list. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

#include "base/result.h"

namespace tocsin::webhook {

/// The networks of the option webhook.allow.
class Networks {
 public:
  /// Such as "127.0.0.0/8,10.1.0.0/16,fd00::/8"; an address without / is a network of one. Blanks are ignored.
  static Result<Networks> Parse(std::string_view text);

  bool Contains(const boost::asio::ip::address& address) const;

 private:
  Status Add(std::string_view text);

  std::vector<boost::asio::ip::network_v4> v4_;
  std::vector<boost::asio::ip::network_v6> v6_;
};

/// Why the address is forbidden ("a loopback address"); nothing if it may be used.
std::optional<std::string_view> WhyRefused(const boost::asio::ip::address& address, const Networks& allow);

}  // namespace tocsin::webhook
