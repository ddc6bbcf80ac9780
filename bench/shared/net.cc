#include "shared/net.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tocsin::bench {

void Die(std::string_view message) {
  std::fprintf(stderr, "%s: %.*s\n", program_invocation_short_name, static_cast<int>(message.size()), message.data());
  std::exit(1);
}

Endpoint Endpoint::Parse(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos) Die("{} has no port", address);
  const std::string_view digits = address.substr(colon + 1);
  Endpoint endpoint{.host = std::string(address.substr(0, colon))};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), endpoint.port);
  if (error != std::errc{} || end != digits.data() + digits.size()) Die("{} is no port", digits);
  return endpoint;
}

int Connect(const Endpoint& endpoint, int receive_bytes) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  if (inet_pton(AF_INET, endpoint.host.c_str(), &address.sin_addr) != 1) Die("{} is no IPv4 address", endpoint.host);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Die("no socket: {}", std::strerror(errno));
  if (receive_bytes > 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    Die("cannot connect to {}:{}: {}", endpoint.host, endpoint.port, std::strerror(errno));
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

Poller::Poller() : fd_(epoll_create1(EPOLL_CLOEXEC)) {
  if (fd_ < 0) Die("no epoll: {}", std::strerror(errno));
}

Poller::~Poller() { close(fd_); }

void Poller::Add(int fd, Client& client) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = &client}};
  if (epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) Die("epoll: {}", std::strerror(errno));
}

void Poller::WantWrite(int fd, Client& client, bool on) {
  epoll_event event{.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.ptr = &client}};
  if (epoll_ctl(fd_, EPOLL_CTL_MOD, fd, &event) != 0) Die("epoll: {}", std::strerror(errno));
}

void Poller::Turn(Instant until) {
  const Nanos left = std::clamp<Nanos>(until - SteadyClock::now(), Nanos(0), std::chrono::seconds(1));
  const timespec timeout{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
  std::array<epoll_event, 64> events;
  const int count = epoll_pwait2(fd_, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  if (count < 0 && errno != EINTR) Die("epoll: {}", std::strerror(errno));
  for (int i = 0; i < count; ++i) static_cast<Client*>(events[static_cast<size_t>(i)].data.ptr)->OnReady();
}

}  // namespace tocsin::bench
