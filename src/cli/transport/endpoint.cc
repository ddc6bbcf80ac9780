#include "cli/transport/endpoint.h"

#include <algorithm>
#include <charconv>

namespace tocsin::cli {

Result<Endpoint> ParseEndpoint(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const auto bad = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, "\"{}\" {}; write it as http://127.0.0.1:7420", url, why);
  };
  if (url.starts_with("https://")) return bad("is over TLS, which this version does not speak");
  if (url.starts_with("resp://")) return bad("names the RESP port, which is for Redis clients; tocsin speaks HTTP");
  if (!url.starts_with(kScheme)) return bad("does not begin with http://");
  while (url.ends_with('/') && url.size() > kScheme.size()) url.remove_suffix(1);
  Endpoint endpoint{.url = std::string(url)};
  std::string_view rest = url.substr(kScheme.size());
  if (rest.find_first_of("/?#@ ") != std::string_view::npos) return bad("has more than a host and a port");
  const bool bracket = rest.starts_with('[');
  const size_t host_end = bracket ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (host_end == std::string_view::npos) return bad("has a bracket that is not closed");
  endpoint.host = rest.substr(bracket ? 1 : 0, host_end - (bracket ? 1 : 0));
  rest.remove_prefix(host_end + (bracket ? 1 : 0));
  if (endpoint.host.empty()) return bad("has no host");
  if (rest.empty()) return endpoint;
  const auto [end, problem] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), endpoint.port);
  if (rest[0] != ':' || problem != std::errc{} || end != rest.data() + rest.size() || endpoint.port == 0) {
    return bad("has no port of 1 to 65535 after its host");
  }
  return endpoint;
}

}  // namespace tocsin::cli
