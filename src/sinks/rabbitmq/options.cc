#include "sinks/rabbitmq/options.h"

#include <charconv>
#include <optional>

#include "base/text.h"

namespace tocsin::rabbitmq {
namespace {

constexpr uint16_t kPort = 5672;
constexpr uint16_t kTlsPort = 5671;
constexpr size_t kNameMax = 255;  // of AMQP's short texts

template <class... Args>
std::unexpected<Error> Refuse(fmt::format_string<Args...> format, Args&&... args) {
  return FailField(Code::kInvalidArgument, "rabbitmq.url",
                   "rabbitmq.url {}: it has the form amqp://user@host:port/vhost, or amqps:// for TLS",
                   fmt::format(format, std::forward<Args>(args)...));
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

Status SetUser(std::string_view text, Options& options) {
  if (text.contains(':')) {
    return FailField(Code::kInvalidArgument, "rabbitmq.url",
                     "rabbitmq.url holds a password: put it into a file, and name that in rabbitmq.password_file");
  }
  const auto user = DecodePercent(text, false);
  if (!user || user->empty() || user->size() > kNameMax) return Refuse("has a user that cannot be read");
  options.username = *user;
  return {};
}

Status SetPort(std::string_view text, Options& options) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.port);
  if (error != std::errc() || end != text.data() + text.size() || options.port == 0) {
    return Refuse("has a port that is no number from 1 to 65535");
  }
  return {};
}

/// host, host:port, [address] or [address]:port.
Status SetHost(std::string_view text, Options& options) {
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
  return port ? SetPort(*port, options) : Status();
}

}  // namespace

std::string Options::Where() const {
  return host.contains(':') ? fmt::format("RabbitMQ at [{}]:{}", host, port)
                            : fmt::format("RabbitMQ at {}:{}", host, port);
}

Result<Options> ParseUrl(std::string_view url) {
  Options options;
  options.tls = TakePrefix(url, "amqps://");
  if (!options.tls && !TakePrefix(url, "amqp://")) return Refuse("does not begin with amqp:// or amqps://");
  options.port = options.tls ? kTlsPort : kPort;
  if (url.find_first_of("?#") != std::string_view::npos) return Refuse("has a question mark or a number sign");

  const size_t slash = std::min(url.find('/'), url.size());
  std::string_view host = url.substr(0, slash);
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) {
    TOCSIN_TRY(SetUser(host.substr(0, at), options));
    host.remove_prefix(at + 1);
  }
  TOCSIN_TRY(SetHost(host, options));

  const std::string_view path = slash < url.size() ? url.substr(slash + 1) : "";
  if (path.contains('/')) return Refuse("has a vhost with a slash: write %2F for one");
  if (path.empty()) return options;
  auto vhost = DecodePercent(path, false);
  if (!vhost || vhost->size() > kNameMax) return Refuse("has a vhost that cannot be read");
  options.vhost = *std::move(vhost);
  return options;
}

}  // namespace tocsin::rabbitmq
