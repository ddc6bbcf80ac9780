// Address: where a listener binds. A value.
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

  /// host:port, with the brackets of IPv6.
  std::string Text() const;
};

/// `host` is an IP address without brackets, or localhost. Other names are refused: the bound address must not depend
/// on a resolver.
Result<Address> MakeAddress(std::string_view host, uint16_t port);

}  // namespace tocsin::net
