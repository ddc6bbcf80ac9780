#include "net/connection.h"

#include <array>
#include <exception>

#include <poll.h>

#include "base/log.h"
#include "base/turn_share.h"

namespace tocsin::net {
namespace {

using boost::system::error_code;

constexpr Millis kTick{1'000};  // how late a deadline may be noticed
constexpr Millis kLingerTime{2'000};

/// What tells one client from another. Of an IPv6 address only the network counts, because its machines choose the
/// rest.
std::string ClientOf(const Socket& socket) {
  error_code error;
  const auto address = socket.remote_endpoint(error).address();
  if (error) return {};
  if (address.is_v4()) return address.to_string();
  const auto v6 = address.to_v6();
  if (v6.is_v4_mapped()) return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).to_string();
  constexpr size_t kNetworkBytes = 8;
  const auto bytes = v6.to_bytes();
  return {bytes.begin(), bytes.begin() + kNetworkBytes};
}

void LogUnknown() noexcept {
  try {
    LogError("closed a connection because its handler threw an unknown exception (a bug; please report it)");
  } catch (...) {
    return;  // there is no memory for a line; the metric counts it
  }
}

}  // namespace

Connection::Connection(Door& door, Socket socket, ConnectionPass pass)
    : socket_(std::move(socket)),
      door_(door),
      pass_(std::move(pass)),
      client_account_(door.budget().AccountOf(ClientOf(socket_))) {}

void Connection::Close() {
  if (!std::exchange(open_, false)) return;
  try {
    OnClose();
  } catch (...) {
    Caught();  // the socket and the place among the connections are given back nevertheless
  }
  CloseSocket();
  pass_.reset();
  door_.Remove(*this);
}

std::string Connection::Peer() const {
  error_code error;
  const auto peer = socket_.remote_endpoint(error);
  if (error) return "?";
  const std::string host = peer.address().to_string();
  return fmt::format("{}:{}", peer.address().is_v6() ? "[" + host + "]" : host, peer.port());
}

void Connection::Cut() {
  door_.cut_->Add();
  Close();
}

void Connection::Linger() {
  error_code ignored;
  if (tls_) tls_->End();
  socket_.shutdown(Socket::shutdown_send, ignored);
  socket_.non_blocking(true, ignored);
  linger_deadline_.Set(After(kLingerTime));
  Discard();
}

void Connection::Discard() {
  socket_.async_wait(Socket::wait_read, Handler([this](error_code error) {
                       if (!open_) return;
                       std::array<char, 16 << 10> bytes;
                       if (!error) socket_.read_some(boost::asio::buffer(bytes), error);
                       if (error && error != boost::asio::error::would_block) return Close();
                       Discard();
                     }));
}

bool Connection::PeerHasClosed() const {
  pollfd polled{.fd = const_cast<Socket&>(socket_).native_handle(), .events = POLLRDHUP, .revents = 0};
  return poll(&polled, 1, 0) > 0;
}

Deadline::TimePoint Connection::After(Millis time) const { return door_.loop().clock().IoNow() + time; }

bool Connection::TransferIsLate(const Deadline& deadline, Deadline::TimePoint now, const Charge& charge) const {
  const bool hurried = charge.bytes() > Budget::kHeldBytes && door_.budget().IsTight(charge.bytes());
  return hurried ? deadline.HasPassedHurried(now) : deadline.HasPassed(now);
}

void Connection::CloseFailed() noexcept {
  try {
    Close();
  } catch (...) {
    Caught();
  }
}

void Connection::Caught() noexcept {
  failed_ = true;
  door_.exceptions_->Add();
  try {
    try {
      throw;
    } catch (const std::exception& exception) {
      LogError("closed a connection because its handler threw an exception (a bug; please report it): {}",
               exception.what());
    }
  } catch (...) {
    LogUnknown();
  }
}

Door::Door(const std::string& name, AsioLoop& loop, Budget& budget, metrics::Registry& metrics)
    : name_(name), loop_(loop), budget_(budget), metrics_(metrics), tick_(loop.io()) {
  open_ = metrics.GetGauge(fmt::format("tocsin_{}_connections", name), "Open connections.");
  parked_ = metrics.GetGauge(fmt::format("tocsin_{}_parked", name), "Reserves that wait for jobs.");
  exceptions_ =
      metrics.GetCounter("tocsin_connection_exceptions_total",
                         "Connections that were closed because their handler threw an exception.", {{"door", name}});
  cut_ = metrics.GetCounter("tocsin_connections_closed_total", "Connections that the server closed, by reason.",
                            {{"door", name}, {"reason", "memory"}});
  Tick();
}

void Door::Accept(Socket socket, ConnectionPass pass) {
  if (draining_) return;
  const auto connection = Make(std::move(socket), std::move(pass));
  connections_.emplace(connection.get(), connection);
  open_->Add(1);
  connection->Guard([&] { tls_ ? connection->BeginTls() : connection->Start(); });
}

void Door::Remove(Connection& connection) {
  open_->Add(-1);
  connections_.erase(&connection);
  TellIfDrained();
}

void Door::CloseAll() {
  const auto connections = std::exchange(connections_, {});
  for (const auto& [connection, owned] : connections) connection->Close();
}

void Door::ForEach(void (Connection::*method)()) {
  const auto connections = connections_;  // one that closes is removed
  for (const auto& [connection, owned] : connections) connection->Guard([&] { (connection->*method)(); });
}

void Door::Drain(Task done) {
  draining_ = true;
  drained_ = std::move(done);
  ForEach(&Connection::Drain);
  TellIfDrained();
}

void Door::TellIfDrained() {
  if (!draining_ || !connections_.empty()) return;
  tick_.cancel();
  loop_.Post([this] {
    if (Task done = std::exchange(drained_, nullptr)) done();
  });
}

void Door::Tick() {
  tick_.expires_after(kTick);
  tick_.async_wait([this](const error_code& error) {
    if (error) return;
    const Turn turn;
    Expire();
    Tick();
  });
}

void Door::Expire() {
  const auto now = loop_.clock().IoNow();
  ResumeHandshakes();  // others may have given room back
  late_.clear();
  for (const auto& [connection, owned] : connections_) {
    if (IsLate(*connection, now)) late_.push_back(owned);
  }
  if (!std::exchange(expiring_, true)) ExpireSome();
}

void Door::ExpireSome() {
  TurnShare share(loop_.clock());
  share.Begin();
  while (!late_.empty()) {
    const auto connection = late_.back().lock();
    late_.pop_back();
    // It may have been heard of meanwhile.
    if (connection && connection->open() && IsLate(*connection, loop_.clock().IoNow())) {
      connection->Guard([&] {
        const bool expired = loop_.clock().IoNow() >= connection->certified_until_;
        if (connection->lingering() || expired) return connection->Close();
        connection->handshake_deadline_.IsSet() ? connection->TimeOutHandshake() : connection->TimeOut();
      });
    }
    if (share.Did()) return loop_.Post([this] { ExpireSome(); });
  }
  expiring_ = false;
}

Error TooManyConnections(size_t connections_max) {
  return {
      Code::kOverloaded, fmt::format("the server has {} connections open, limits.connections", connections_max), {}};
}

}  // namespace tocsin::net
