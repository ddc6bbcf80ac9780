#include "cli/endpoint.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace tocsin::cli {
namespace {

struct Scheme {
  std::string_view text;
  Door door;
  uint16_t port;  // where the URL names none
};

constexpr std::array kSchemes{Scheme{"http://", Door::kHttp, 80}, Scheme{"resp://", Door::kResp, 7421}};

}  // namespace

Result<Endpoint> ParseEndpoint(std::string_view url) {
  const auto bad = [&](std::string_view why) {
    return Fail(Code::kInvalidArgument, "\"{}\" {}; write it as http://127.0.0.1:7420 or resp://127.0.0.1:7421", url,
                why);
  };
  if (url.starts_with("https://")) return bad("is over TLS, which this version does not speak");
  const auto* const scheme =
      std::ranges::find_if(kSchemes, [&](const Scheme& one) { return url.starts_with(one.text); });
  if (scheme == kSchemes.end()) return bad("begins with neither http:// nor resp://");
  while (url.ends_with('/') && url.size() > scheme->text.size()) url.remove_suffix(1);
  Endpoint endpoint{.door = scheme->door, .host = {}, .port = scheme->port, .url = std::string(url)};
  std::string_view rest = url.substr(scheme->text.size());
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
    return bad("has no port of 1 to 65535 behind its host");
  }
  return endpoint;
}

}  // namespace tocsin::cli
