// The address of a server. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::cli {

/// http://HOST[:PORT]
struct Endpoint {
  std::string host;  // without the brackets of IPv6
  uint16_t port = 80;
  std::string url;  // as it was written, without a slash at its end
};
Result<Endpoint> ParseEndpoint(std::string_view url);

}  // namespace tocsin::cli
