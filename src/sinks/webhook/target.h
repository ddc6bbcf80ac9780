// Target: a webhook's URL in parts. The parser is strict: it refuses what two programs might read in two ways. A value.
//
// We do not use Boost.URL: in Boost 1.81 it takes 1.2.3.4.example for an address followed by a path, and aborts the
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
  std::string host;                                 // a name in lower case, or an address without brackets
  std::optional<boost::asio::ip::address> address;  // if the host is one
  uint16_t port = 0;
  std::string authority;  // for the header "host": with brackets, and with the port unless it is the usual one
  std::string resource;   // path and query: at least "/"

  /// host:port, for people.
  std::string Text() const;
};

/// kInvalidArgument names delivery.url.
Result<Target> ParseTarget(std::string_view url);

/// An error if the host is known to be forbidden before any name is looked up. The addresses of names are checked again
/// for every connection.
Status CheckHost(const Target& target, const Networks& allow);

}  // namespace tocsin::webhook
