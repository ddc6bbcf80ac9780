#include "net/listener.h"

#include <array>

#include <boost/asio/write.hpp>

#include "base/episode.h"
#include "base/log.h"

namespace tocsin::net {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

constexpr int kBacklog = 1024;
constexpr Millis kAcceptPause{100};  // if no descriptor is left
constexpr Millis kRefusalLinger{1'000};

/// A refused connection: sends the reason, then reads until the peer has closed. Closing at once would send a reset,
/// which may overtake the reason.
class Refusal : public std::enable_shared_from_this<Refusal> {
 public:
  Refusal(boost::asio::io_context& io, Socket socket, std::shared_ptr<void> counted)
      : socket_(std::move(socket)), timer_(io), counted_(std::move(counted)) {}

  void Start(const std::string& reason) {
    timer_.expires_after(kRefusalLinger);
    timer_.async_wait([self = shared_from_this()](const error_code&) { self->Close(); });
    boost::asio::async_write(socket_, boost::asio::buffer(reason),
                             [self = shared_from_this()](error_code error, size_t) {
                               if (error) return self->Close();
                               self->socket_.shutdown(tcp::socket::shutdown_send, error);
                               self->Discard();
                             });
  }

 private:
  void Discard() {
    socket_.async_read_some(boost::asio::buffer(sink_), [self = shared_from_this()](const error_code& error, size_t) {
      error ? self->Close() : self->Discard();
    });
  }
  void Close() {
    error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
  }

  Socket socket_;
  boost::asio::steady_timer timer_;
  std::array<char, 1024> sink_;
  std::shared_ptr<void> counted_;
};

}  // namespace

std::string Address::Text() const { return v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port); }

Result<Address> MakeAddress(std::string_view host, uint16_t port) {
  if (host == "localhost") host = "127.0.0.1";
  boost::system::error_code bad;
  const auto ip = boost::asio::ip::make_address(std::string(host), bad);
  if (bad) return Fail(Code::kInvalidArgument, "'{}' is not an IP address or localhost", host);
  return Address{.host = ip.to_string(), .port = port, .loopback = ip.is_loopback(), .v6 = ip.is_v6()};
}

Listener::Listener(boost::asio::io_context& io, Options options)
    : io_(io), options_(std::move(options)), acceptor_(io), pause_(io) {}

Result<std::unique_ptr<Listener>> Listener::Open(boost::asio::io_context& io, const Address& address, Options options) {
  std::unique_ptr<Listener> listener(new Listener(io, std::move(options)));
  TOCSIN_TRY(listener->Bind(address));
  return listener;
}

Status Listener::Bind(const Address& address) {
  error_code error;
  const auto ip = boost::asio::ip::make_address(address.host, error);
  const tcp::endpoint endpoint(ip, address.port);
  if (!error) acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(boost::asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  // Two sockets may share a port until one of them listens: only listening proves that the address is ours.
  if (!error) acceptor_.listen(kBacklog, error);
  if (error == boost::asio::error::address_in_use) {
    return Fail(Code::kInUse, "{} is in use: another program listens there; choose another port", address.Text());
  }
  if (error) return Fail(Code::kIo, "cannot listen on {}: {}", address.Text(), error.message());
  address_ = address;
  address_.port = acceptor_.local_endpoint(error).port();
  return {};
}

void Listener::Start(std::vector<AsioLoop*> loops, Handler handler) {
  loops_ = std::move(loops);
  handler_ = std::move(handler);
  Accept();
}

void Listener::Close() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void Listener::Accept() {
  const size_t shard = next_shard_++ % loops_.size();
  acceptor_.async_accept(loops_[shard]->io(), [this, shard](const error_code& error, Socket socket) {
    if (error == boost::asio::error::operation_aborted) return;
    if (!error) {
      Accepted(shard, std::move(socket));
      return Accept();
    }
    // Most often no descriptor is left: connections wait in the backlog until one is free.
    LogWarn("cannot accept a connection: {}", error.message());
    pause_.expires_after(kAcceptPause);
    pause_.async_wait([this](const error_code& stopped) {
      if (!stopped) Accept();
    });
  });
}

void Listener::Accepted(size_t shard, Socket socket) {
  if (options_.count->fetch_add(1) >= options_.connections_max) {
    options_.count->fetch_sub(1);
    return Refuse(std::move(socket));
  }
  ConnectionPass pass(options_.count.get(), [open = options_.count](const void*) { open->fetch_sub(1); });
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  loops_[shard]->Post([this, shard, socket = std::move(socket), pass = std::move(pass)]() mutable {
    handler_(shard, std::move(socket), std::move(pass));
  });
}

void Listener::Refuse(Socket socket) {
  NoteOverload("limits.connections is reached");
  if (*refusing_ >= kRefusalsMax) return;
  // The socket belongs to a shard's io_context, but the listener's thread serves refusals.
  error_code error;
  const auto protocol = socket.local_endpoint(error).protocol();
  const int descriptor = error ? -1 : socket.release(error);
  if (error || descriptor < 0) return;
  Socket own(io_);
  own.assign(protocol, descriptor, error);
  ++*refusing_;
  const std::shared_ptr<void> counted(refusing_.get(), [refusing = refusing_](size_t*) { --*refusing; });
  std::make_shared<Refusal>(io_, std::move(own), counted)->Start(options_.refusal);
}

}  // namespace tocsin::net
