// How a connection of a door that speaks TLS begins. Until the client's whole first message has arrived, it stays in
// the socket and OpenSSL has no memory for the connection. Then the helper's thread does the handshake, step by step.
#include <algorithm>
#include <array>

#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/line_limit.h"
#include "base/log_event.h"
#include "net/connection.h"

namespace tocsin::net {
namespace {

using boost::system::error_code;

constexpr Millis kHandshakeTime{10'000};
constexpr size_t kRecordHead = 5;
constexpr uint8_t kHandshakeRecord = 22;
constexpr size_t kHelloMax = 16 << 10;  // of its first record

}  // namespace

void Connection::CloseSocket() {
  error_code ignored;
  // The helper's thread is using the descriptor, whose number another connection must not get: OnHandshake closes it.
  if (helped_) {
    tls_->Abandon();
    socket_.shutdown(Socket::shutdown_both, ignored);
    return;
  }
  if (tls_) tls_->End();
  socket_.close(ignored);
}

void Connection::BeginTls() {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  handshake_deadline_.Set(After(kHandshakeTime));
  AwaitHello();
}

void Connection::AwaitHello() {
  socket_.async_wait(Socket::wait_read, Handler([this](const error_code& error) {
                       if (open() && !lingering()) OnHello(error);
                     }));
}

void Connection::OnHello(const error_code& error) {
  std::array<uint8_t, kRecordHead> head{};
  const ssize_t seen = error ? 0 : ::recv(socket_.native_handle(), head.data(), head.size(), MSG_PEEK);
  if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return BeginHandshake();  // it waits for what it needs
  if (seen <= 0) return Close();  // such as a health check of a load balancer
  if (head[0] != kHandshakeRecord) return RefusePlain();
  if (seen < static_cast<ssize_t>(head.size())) return AwaitBytes(head.size());
  const size_t size = static_cast<size_t>(head[3]) << 8 | head[4];
  if (head[1] != 3 || size > kHelloMax) return FailHandshake("failed", "this is no TLS handshake");
  int here = 0;
  const bool whole =
      ::ioctl(socket_.native_handle(), FIONREAD, &here) == 0 && static_cast<size_t>(here) >= kRecordHead + size;
  whole ? BeginHandshake() : AwaitBytes(kRecordHead + size);
}

void Connection::AwaitBytes(size_t bytes) {
  if (PeerHasClosed()) return FailHandshake("failed", "the client closed the connection during the handshake");
  const int least = static_cast<int>(bytes);
  int before = 0;
  socklen_t size = sizeof(before);
  ::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &before, &size);
  // An urgent byte, or a kernel short of memory: the socket was readable too early, and would be at once again.
  if (before == least) return BeginHandshake();
  ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
  AwaitHello();
}

void Connection::RefusePlain() {
  const std::string answer = door_.PlainAnswer();
  error_code ignored;  // a client that does not take it is closed all the same
  socket_.write_some(boost::asio::buffer(answer), ignored);
  FailHandshake("plain", "the client does not speak TLS");
}

void Connection::BeginHandshake() {
  const int one = 1;
  ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
  auto tls = std::make_unique<TlsTransport>(door_.tls_, socket_.native_handle(), door_.budget());
  if (!tls->HoldHandshake(client_account_)) {
    door_.handshakes_.push_back(weak_from_this());
    return;
  }
  tls_ = std::move(tls);
  StepHandshake();
}

void Connection::StepHandshake() {
  helped_ = true;
  const auto step = std::make_shared<TlsTransport::Step>(TlsTransport::Step::kFailed);
  door_.helper_.Run(
      door_.loop(), [tls = tls_.get(), step] { *step = tls->Handshake(); },
      Handler([this, step](const Status&) { OnHandshake(*step); }));
}

void Connection::OnHandshake(TlsTransport::Step step) {
  helped_ = false;
  if (!open()) return CloseSocket();
  const auto go_on = [this](const error_code& error) {
    if (!open() || lingering()) return;
    error ? Close() : StepHandshake();
  };
  switch (step) {
    case TlsTransport::Step::kRead:
      return socket_.async_wait(Socket::wait_read, Handler(go_on));
    case TlsTransport::Step::kWrite:
      return socket_.async_wait(Socket::wait_write, Handler(go_on));
    case TlsTransport::Step::kFailed:
      return FailHandshake("failed", tls_->Problem());
    case TlsTransport::Step::kDone:
      handshake_deadline_.Clear();
      tls_->TakeSubject();
      certified_until_ = After(tls_->CertificateTime());
      door_.CountHandshake("done");
      HoldTls();
      Start();
      door_.ResumeHandshakes();
  }
}

void Connection::FailHandshake(const char* result, std::string_view why) {
  static LineLimit limit(1);
  door_.CountHandshake(result);
  if (const auto left_out = limit.Take(door_.loop().clock().IoNow())) {
    const std::string from = Peer();
    const LogField fields[] = {{"from", from}, {"door", door_.name_}, {"error", why}, {"left_out", *left_out}};
    LogEvent(LogLevel::kWarn, "tls_refused", fields);
  }
  handshake_deadline_.Clear();
  tls_.reset();
  Linger();
  door_.ResumeHandshakes();
}

void Connection::TimeOutHandshake() {
  if (helped_) {
    door_.CountHandshake("timeout");
    return Close();
  }
  FailHandshake("timeout", "the client did not finish the handshake in time");
}

void Connection::HoldTls() {
  if (tls_->Hold(client_account_)) return;
  boost::asio::post(socket_.get_executor(), Handler([this] { Cut(); }));
}

void Door::SpeakTls(std::shared_ptr<const ServerTls> tls) { tls_ = std::move(tls); }

void Door::CountHandshake(const char* result) {
  metrics_
      .GetCounter("tocsin_tls_handshakes_total", "TLS handshakes, by how they ended.",
                  {{"door", name_}, {"result", result}})
      ->Add();
}

void Door::ResumeHandshakes() {
  // Each asks for room again; one that finds none is back at the end.
  for (size_t left = handshakes_.size(); left > 0; --left) {
    const auto connection = std::move(handshakes_.front()).lock();
    handshakes_.pop_front();
    if (!connection || !connection->open() || connection->lingering()) continue;
    const size_t waiting = handshakes_.size();
    connection->Guard([&] { connection->BeginHandshake(); });
    if (handshakes_.size() > waiting) return;
  }
}

}  // namespace tocsin::net
