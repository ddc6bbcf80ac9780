#include "sinks/webhook/target.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace tocsin::webhook {
namespace {

namespace ip = boost::asio::ip;

constexpr size_t kNameBytesMax = 253;
constexpr size_t kLabelBytesMax = 63;

template <class... Args>
std::unexpected<Error> Bad(fmt::format_string<Args...> format, Args&&... args) {
  return FailField(Code::kInvalidArgument, "delivery.url", "delivery.url {}",
                   fmt::format(format, std::forward<Args>(args)...));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

/// The characters of RFC 3986, and escapes that are whole.
bool IsUrlText(std::string_view text) {
  constexpr std::string_view kOthers = "-._~:/?#[]@!$&'()*+,;=";
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string lower = Lower(text.substr(i, 3));
    if (lower[0] == '%' && lower.size() == 3 && IsHexDigit(lower[1]) && IsHexDigit(lower[2])) continue;
    if (!IsLetter(lower[0]) && !IsDigit(lower[0]) && !kOthers.contains(lower[0])) return false;
  }
  return true;
}

/// As resolvers of the C library read it: 127, 0177 or 0x7f.
bool IsNumber(std::string_view label) {
  if (std::ranges::all_of(label, IsDigit)) return true;
  return label.starts_with("0x") && std::ranges::all_of(label.substr(2), IsHexDigit);
}

bool IsLabel(std::string_view label) {
  if (label.empty() || label.size() > kLabelBytesMax || label.starts_with('-') || label.ends_with('-')) return false;
  return std::ranges::all_of(label, [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '_'; });
}

Status CheckName(std::string_view name) {
  if (name.size() > kNameBytesMax) {
    return Bad("has a host of {} bytes: the most is {}", name.size(), kNameBytesMax);
  }
  if (name.ends_with('.')) return Bad("has a host that ends in a dot: leave it out");
  std::string_view last = name;
  for (size_t dot = 0; dot != std::string_view::npos; last.remove_prefix(dot == std::string_view::npos ? 0 : dot + 1)) {
    dot = last.find('.');
    if (IsLabel(last.substr(0, dot))) continue;
    return Bad(
        "has the host \"{}\": it takes a name of letters, digits, - and _, with single dots between them, or an IP "
        "address",
        Shown(name));
  }
  if (!IsNumber(last)) return {};
  return Bad("has the host \"{}\": an IPv4 address is written as four decimal numbers without leading zeros",
             Shown(name));
}

Status TakeAddress(std::string_view text, Target& target) {
  boost::system::error_code bad;
  const ip::address_v6 v6 = ip::make_address_v6(std::string(text), bad);
  if (bad || text.contains('%')) return Bad("has a host in brackets that is no IPv6 address");
  target.address = v6;
  target.host = target.address->to_string();
  return {};
}

Status TakeName(std::string_view text, Target& target) {
  if (text.empty()) return Bad("has no host");
  if (text.contains('%')) return Bad("has a host with a % in it: write the host without escapes");
  target.host = Lower(text);
  boost::system::error_code bad;
  const ip::address_v4 v4 = ip::make_address_v4(target.host, bad);  // four decimal numbers without leading zeros
  if (bad) return CheckName(target.host);
  target.address = v4;
  return {};
}

Status TakePort(std::string_view text, Target& target) {
  const uint16_t usual = target.tls ? 443 : 80;
  target.port = usual;
  if (text.empty() || text == ":") return {};
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), target.port);
  if (text.front() != ':' || error != std::errc() || end != text.data() + text.size() || target.port == 0) {
    return Bad("has \"{}\" after the host: it takes a port from 1 to 65535", Shown(text));
  }
  if (target.port != usual) target.authority += fmt::format(":{}", target.port);
  return {};
}

/// `text` is what stands between // and the path.
Status TakeAuthority(std::string_view text, Target& target) {
  // Its text is not repeated: it may hold a password.
  if (text.contains('@')) return Bad("has a user name before the host: it must have none; requests are signed instead");
  const size_t end = text.starts_with('[') ? text.find(']') : text.find(':');
  if (text.starts_with('[')) {
    if (end == std::string_view::npos) return Bad("has a host in brackets that is no IPv6 address");
    TOCSIN_TRY(TakeAddress(text.substr(1, end - 1), target));
    target.authority = fmt::format("[{}]", target.host);
    return TakePort(text.substr(end + 1), target);
  }
  const size_t size = std::min(end, text.size());
  TOCSIN_TRY(TakeName(text.substr(0, size), target));
  target.authority = target.host;
  return TakePort(text.substr(size), target);
}

}  // namespace

std::string Target::Text() const {
  return address && address->is_v6() ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Target> ParseTarget(std::string_view text) {
  constexpr std::string_view kAfterScheme = "://";
  const size_t colon = text.find(kAfterScheme);
  if (colon == std::string_view::npos || !IsUrlText(text)) {
    return Bad("is no URL: it takes one such as https://example.com/hooks");
  }
  Target target;
  const std::string scheme = Lower(text.substr(0, colon));
  if (scheme != "http" && scheme != "https") {
    return Bad("has the scheme \"{}\": it takes http or https", Shown(scheme));
  }
  target.tls = scheme == "https";
  if (text.contains('#')) return Bad("has a fragment (#...): nothing would send it");
  std::string_view rest = text.substr(colon + kAfterScheme.size());
  const size_t end = std::min(rest.find_first_of("/?"), rest.size());
  TOCSIN_TRY(TakeAuthority(rest.substr(0, end), target));
  rest.remove_prefix(end);
  if (rest.find_first_of("[]") != std::string_view::npos)
    return Bad("has a bracket after the host: write it as %5B or %5D");
  target.resource = rest.starts_with('/') ? rest : fmt::format("/{}", rest);
  return target;
}

Status CheckHost(const Target& target, const Networks& allow) {
  const auto refuse = [&](std::string_view what) {
    return Bad("leads to {}, {}: the server's option webhook.allow would have to name it", target.host, what);
  };
  if (target.address) {
    if (const auto what = WhyRefused(*target.address, allow)) return refuse(*what);
    return {};
  }
  if (target.host != "localhost" && !target.host.ends_with(".localhost")) return {};
  const auto what = WhyRefused(ip::address_v4::loopback(), allow);
  if (!what || !WhyRefused(ip::address_v6::loopback(), allow)) return {};
  return refuse(*what);
}

}  // namespace tocsin::webhook
