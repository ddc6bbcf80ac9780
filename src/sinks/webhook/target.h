// Target: a webhook's URL in parts, parsed strictly: what two programs might read in two ways is refused. A value.
//
// Not by Boost.URL: that of Boost 1.81 takes 1.2.3.4.example for an address with a path behind it, and stops the
// program at texts such as "h: ".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/ip/address.hpp>

#include "base/result.h"
#include "sinks/webhook/address_guard.h"

namespace tocsin::webhook {

struct Target {
  bool tls = false;
  std::string host;                                 // a name in small letters, or an address without brackets
  std::optional<boost::asio::ip::address> address;  // where the host is one
  uint16_t port = 0;
  std::string authority;  // for the header "host": brackets, and the port where it was written and is not the usual one
  std::string resource;   // path and query: at least "/"

  /// host:port, for people.
  std::string Text() const;
};

/// kInvalidArgument names delivery.url.
Result<Target> ParseTarget(std::string_view url);

/// Whether the host is known to be out of bounds before any name is looked up. The addresses of names are checked again
/// for every connection.
Status CheckHost(const Target& target, const Networks& allow);

}  // namespace tocsin::webhook
