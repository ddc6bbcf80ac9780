#include "clients/mysql/options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace tocsin::mysql {
namespace {

constexpr size_t kNameMax = 64;  // of a user or a database, in MySQL

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// The parts of one URL. Every error says the form that a URL has.
class UrlParser {
 public:
  explicit UrlParser(std::string_view name) : name_(name) {}

  Result<Options> Parse(std::string_view url) {
    Options options;
    options.tls = TakePrefix(url, "mysqls://");
    if (!options.tls && !TakePrefix(url, "mysql://")) return Refuse("does not begin with mysql:// or mysqls://");
    if (url.find_first_of("?#") != std::string_view::npos) return Refuse("has a question mark or a number sign");
    const size_t slash = std::min(url.find('/'), url.size());
    std::string_view host = url.substr(0, slash);
    if (const size_t at = host.rfind('@'); at != std::string_view::npos) {
      if (host.substr(0, at).contains(':')) {
        return FailField(Code::kInvalidArgument, std::string(name_),
                         "{} holds a password: put it into a file, and name that as the password file", name_);
      }
      TOCSIN_ASSIGN(options.username, ParseName("user", host.substr(0, at)));
      host.remove_prefix(at + 1);
    }
    TOCSIN_TRY(ParseHost(host, options));
    TOCSIN_ASSIGN(options.database, ParseName("database", slash < url.size() ? url.substr(slash + 1) : ""));
    return options;
  }

 private:
  template <class... Args>
  std::unexpected<Error> Refuse(fmt::format_string<Args...> format, Args&&... args) const {
    return FailField(Code::kInvalidArgument, std::string(name_),
                     "{} {}: it has the form mysql://user@host:port/database, or mysqls:// for TLS", name_,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  Result<std::string> ParseName(std::string_view what, std::string_view text) const {
    if (text.empty()) return Refuse("has no {}", what);
    auto name = DecodePercent(text, false);
    if (text.contains('/') || !name || name->empty() || name->size() > kNameMax || name->contains('\0')) {
      return Refuse("has a {} that cannot be read", what);
    }
    return *std::move(name);
  }

  /// host, host:port, [address] or [address]:port.
  Status ParseHost(std::string_view text, Options& options) const {
    std::string_view host = text;
    std::optional<std::string_view> port;
    if (TakePrefix(text, "[")) {
      const size_t bracket = text.find(']');
      if (bracket == std::string_view::npos) return Refuse("has no closing bracket");
      host = text.substr(0, bracket);
      text.remove_prefix(bracket + 1);
      if (!text.empty() && !text.starts_with(':')) return Refuse("has a host that cannot be read");
      if (!text.empty()) port = text.substr(1);
    } else if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
      host = text.substr(0, colon);
      port = text.substr(colon + 1);
    }
    if (host.empty()) return Refuse("has no host");
    options.host = host;
    if (!port) return {};
    const auto [end, error] = std::from_chars(port->data(), port->data() + port->size(), options.port);
    if (error == std::errc() && end == port->data() + port->size() && options.port != 0) return {};
    return Refuse("has a port that is no number from 1 to 65535");
  }

  const std::string_view name_;
};

}  // namespace

std::string Options::Where() const {
  return host.contains(':') ? fmt::format("MySQL at [{}]:{}, database {}", host, port, database)
                            : fmt::format("MySQL at {}:{}, database {}", host, port, database);
}

std::string Options::Url() const {
  std::string url = tls ? "mysqls://" : "mysql://";
  AppendPercent(url, username);
  url += host.contains(':') ? fmt::format("@[{}]:{}/", host, port) : fmt::format("@{}:{}/", host, port);
  AppendPercent(url, database);
  return url;
}

Result<Options> ParseUrl(std::string_view name, std::string_view url) { return UrlParser(name).Parse(url); }

}  // namespace tocsin::mysql
