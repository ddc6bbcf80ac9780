// Where the server is, and which of its doors to use. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::cli {

enum class Door : uint8_t { kHttp, kResp };

/// http://HOST[:PORT] or resp://HOST[:PORT].
struct Endpoint {
  Door door = Door::kHttp;
  std::string host;  // without the brackets of IPv6
  uint16_t port = 0;
  std::string url;  // as it was written, without a slash at its end
};
Result<Endpoint> ParseEndpoint(std::string_view url);

}  // namespace tocsin::cli
