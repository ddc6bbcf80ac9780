// Address: where a listener binds, as users write it: "127.0.0.1:7420", "localhost:7420", "[::1]:7420". A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::net {

struct Address {
  std::string host;  // an IP address, without brackets
  uint16_t port = 0;
  bool loopback = false;
  bool v6 = false;

  /// As it was written, with the brackets of IPv6.
  std::string Text() const;
};

/// `host` is an IP address without brackets, or localhost.
Result<Address> MakeAddress(std::string_view host, uint16_t port);

/// Names other than localhost are not looked up: what is bound should not depend on a resolver.
Result<Address> ParseAddress(std::string_view text);

}  // namespace tocsin::net
