// TlsGuard: reads the files of the server's own TLS at the start, when they change (it looks once a second) and on
// SIGHUP, and hands on what they hold. If new ones cannot be used, the last ones stay in force. Warns when the
// certificate is about to expire.
//
// Owned by the ServerNode; runs on the main loop only. What it hands on is immutable, so other threads may use it.
#pragma once

#include <array>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "auth/private_file.h"
#include "base/result.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "net/server_tls.h"

namespace tocsin {

/// Null for a door in clear text.
struct DoorsTls {
  std::shared_ptr<const net::ServerTls> http;
  std::shared_ptr<const net::ServerTls> resp;

  /// "http,resp"; empty without TLS.
  std::string_view Names() const { return !http ? (resp ? "resp" : "") : (resp ? "http,resp" : "http"); }
};

class TlsGuard {
 public:
  /// Null without tls.certificate. kInvalidArgument names the option and the file.
  static Result<std::unique_ptr<TlsGuard>> Open(boost::asio::io_context& io, const Config& config,
                                                metrics::Registry& metrics);

  /// The last that was read.
  const DoorsTls& tls() const { return tls_; }
  /// Calls `changed` with everything that is read later, until the loop ends.
  void Start(std::function<void(const DoorsTls&)> changed);

 private:
  // Of the certificate, its key and the authority of clients.
  using Stamps = std::array<std::optional<auth::FileStamp>, 3>;

  TlsGuard(boost::asio::io_context& io, const Config& config, metrics::Registry& metrics);
  Stamps StampsNow() const;
  Result<DoorsTls> Load() const;
  void Take(DoorsTls tls);
  void AwaitChange();
  void AwaitSignal();
  void Look();
  void Reload();
  void WarnOfExpiry();

  const Config config_;
  boost::asio::steady_timer timer_;
  boost::asio::signal_set hangup_;
  const std::shared_ptr<metrics::Gauge> expires_;
  DoorsTls tls_;
  Stamps read_;  // when the files were last read, also if that failed
  Stamps seen_;  // at the last look: a change is read when it has stayed the same for two
  std::optional<std::chrono::steady_clock::time_point> warned_at_;
  std::function<void(const DoorsTls&)> changed_;
};

/// Warns if other machines reach a door in clear text, and http.tls or resp.tls does not say that this is meant.
void WarnOfClearText(const Config& config, bool http_loopback, bool resp_loopback);

}  // namespace tocsin
