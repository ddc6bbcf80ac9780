#include "net/connection.h"

#include <array>
#include <exception>
#include <vector>

#include <poll.h>

#include "base/log.h"

namespace tocsin::net {
namespace {

using boost::system::error_code;

constexpr Millis kTick{1'000};  // how late a deadline may be noticed
constexpr Millis kLingerTime{2'000};

}  // namespace

Connection::Connection(Door& door, Socket socket, ConnectionPass pass)
    : socket_(std::move(socket)), door_(door), pass_(std::move(pass)) {}

void Connection::Close() {
  if (!std::exchange(open_, false)) return;
  OnClose();
  error_code ignored;
  socket_.close(ignored);
  pass_.reset();
  door_.Remove(*this);
}

void Connection::Cut() {
  door_.cut_->Add();
  Close();
}

void Connection::Linger() {
  error_code ignored;
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

Deadline::TimePoint Connection::Hurried(Deadline::TimePoint now, const Charge& charge) const {
  const bool hurried = charge.bytes() > Budget::kHeldBytes && door_.budget().IsTight(charge.bytes());
  return hurried ? now + (Deadline::kMovedTime - Deadline::kHurriedTime) : now;
}

void Connection::Caught() noexcept {
  failed_ = true;
  door_.exceptions_->Add();
  try {
    throw;
  } catch (const std::exception& exception) {
    LogError("closed a connection because its handler threw an exception (a bug; please report it): {}",
             exception.what());
  } catch (...) {
    LogError("closed a connection because its handler threw an unknown exception (a bug; please report it)");
  }
}

Door::Door(const std::string& name, AsioLoop& loop, Budget& budget, metrics::Registry& metrics)
    : loop_(loop), budget_(budget), tick_(loop.io()) {
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
  connection->Guard([&] { connection->Start(); });
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
  std::vector<std::shared_ptr<Connection>> late;
  for (const auto& [connection, owned] : connections_) {
    if (connection->IsLate(now) || connection->linger_deadline_.HasPassed(now)) late.push_back(owned);
  }
  for (const auto& connection : late) {
    connection->Guard([&] { connection->lingering() ? connection->Close() : connection->TimeOut(); });
  }
}

Error Door::NoRoom() const {
  return {Code::kOverloaded,
          fmt::format("the requests and answers under way take up the {} bytes that they may take together; try again",
                      budget_.bytes_max()),
          {}};
}

Error TooManyConnections(size_t connections_max) {
  return {
      Code::kOverloaded, fmt::format("the server has {} connections open, limits.connections", connections_max), {}};
}

}  // namespace tocsin::net
