#include "server/tls_guard.h"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "server/options.h"

namespace tocsin {
namespace {

constexpr std::chrono::days kExpiresSoon{14};

Time NowOfMachine() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

int64_t DaysUntil(Time time) { return std::chrono::floor<std::chrono::days>(time - NowOfMachine()).count(); }

/// Other than a key, a certificate may be read by everybody.
Result<net::PemFile> ReadPublic(std::string option, const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad() || text.empty()) {
    const std::string why = errno == 0 ? "it is empty" : std::generic_category().message(errno);
    return FailField(Code::kInvalidArgument, option, "{}: cannot read {}: {}", option, path, why);
  }
  return net::PemFile{std::move(option), path, std::move(text)};
}

Result<net::PemFile> ReadKey(const std::string& path) {
  auto text = auth::ReadPrivate(path);
  if (!text) return FailField(Code::kInvalidArgument, "tls.key", "tls.key: {}", text.error().message);
  return net::PemFile{"tls.key", path, *std::move(text)};
}

}  // namespace

TlsGuard::TlsGuard(boost::asio::io_context& io, const Config& config, metrics::Registry& metrics)
    : config_(config),
      timer_(io),
      hangup_(io, SIGHUP),
      expires_(metrics.GetGauge("tocsin_tls_certificate_expires_seconds",
                                "When the certificate of the server's doors expires, in seconds since 1970.")) {}

Result<std::unique_ptr<TlsGuard>> TlsGuard::Open(boost::asio::io_context& io, const Config& config,
                                                 metrics::Registry& metrics) {
  if (config.tls_certificate.empty()) return nullptr;
  std::unique_ptr<TlsGuard> guard(new TlsGuard(io, config, metrics));
  guard->read_ = guard->seen_ = guard->StampsNow();
  TOCSIN_ASSIGN(DoorsTls tls, guard->Load());
  guard->Take(std::move(tls));
  return guard;
}

TlsGuard::Stamps TlsGuard::StampsNow() const {
  return {auth::StampOf(config_.tls_certificate), auth::StampOf(config_.tls_key), auth::StampOf(config_.tls_client_ca)};
}

Result<DoorsTls> TlsGuard::Load() const {
  net::ServerTls::Options options{.client_must = config_.tls_client_auth == TlsClientAuth::kRequired};
  TOCSIN_ASSIGN(options.certificate, ReadPublic("tls.certificate", config_.tls_certificate));
  TOCSIN_ASSIGN(options.key, ReadKey(config_.tls_key));
  if (!config_.tls_client_ca.empty()) {
    TOCSIN_ASSIGN(options.client_ca, ReadPublic("tls.client_ca", config_.tls_client_ca));
  }
  DoorsTls tls;
  if (config_.resp_tls == DoorTls::kAuto) {
    TOCSIN_ASSIGN(tls.resp, net::ServerTls::Make(options, NowOfMachine()));
  }
  options.alpn = "http/1.1";
  if (config_.http_tls == DoorTls::kAuto) {
    TOCSIN_ASSIGN(tls.http, net::ServerTls::Make(options, NowOfMachine()));
  }
  return tls;
}

void TlsGuard::Take(DoorsTls tls) {
  tls_ = std::move(tls);
  const Time expires = (tls_.http ? tls_.http : tls_.resp)->expires();
  expires_->Set(std::chrono::duration<double>(expires.time_since_epoch()).count());
  warned_at_.reset();
  WarnOfExpiry();
}

void TlsGuard::WarnOfExpiry() {
  const Time expires = (tls_.http ? tls_.http : tls_.resp)->expires();
  const auto now = std::chrono::steady_clock::now();
  const bool warned = warned_at_ && now - *warned_at_ < std::chrono::days(1);
  if (warned || expires - NowOfMachine() > kExpiresSoon) return;
  warned_at_ = now;
  if (const int64_t days = DaysUntil(expires); days >= 0) {
    LogWarn("tls.certificate: {} expires in {} days", config_.tls_certificate, days);
  } else {
    LogError("tls.certificate: {} has expired: clients that check it refuse to connect", config_.tls_certificate);
  }
}

void TlsGuard::Start(std::function<void(const DoorsTls&)> changed) {
  changed_ = std::move(changed);
  AwaitChange();
  AwaitSignal();
}

void TlsGuard::AwaitChange() {
  constexpr Millis kLook{1000};
  timer_.expires_after(kLook);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    Look();
    AwaitChange();
  });
}

void TlsGuard::AwaitSignal() {
  hangup_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    Reload();
    AwaitSignal();
  });
}

void TlsGuard::Look() {
  // Whoever renews a certificate replaces two files, one after the other.
  const Stamps now = StampsNow();
  const bool changed = now != read_;
  const bool rests = now == std::exchange(seen_, now);
  if (changed && rests) Reload();
  WarnOfExpiry();
}

void TlsGuard::Reload() {
  read_ = seen_ = StampsNow();
  auto tls = Load();
  if (!tls) {
    LogError("{}; the certificate that was read before stays in force", tls.error().message);
    return;
  }
  Take(*std::move(tls));
  LogInfo("TLS certificate read again: it expires in {} days",
          DaysUntil((tls_.http ? tls_.http : tls_.resp)->expires()));
  changed_(tls_);
}

void WarnOfClearText(const Config& config, bool http_loopback, bool resp_loopback) {
  const auto warn = [&](std::string_view door, const std::string& host, bool loopback, DoorTls tls) {
    if (loopback || !config.tls_certificate.empty() || tls == DoorTls::kOff) return;
    LogWarn(
        "{0}.listen is on {1}, which other machines can reach, without TLS: access tokens and jobs travel in clear "
        "text. Set tls.certificate and tls.key, or {0}.tls = off if something else protects them",
        door, host);
  };
  warn("http", config.http_listen.host, http_loopback, config.http_tls);
  warn("resp", config.resp_listen.host, resp_loopback, config.resp_tls);
}

}  // namespace tocsin
