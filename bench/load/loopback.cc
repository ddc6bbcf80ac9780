#include "load/loopback.h"

#include <cstring>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/times.h"

namespace tocsin::bench {
namespace {

constexpr size_t kFrameBytes = 140;
constexpr size_t kAnswerBytes = 20;
constexpr size_t kBatch = 100;
constexpr size_t kBatchesUnderWay = 16;
constexpr size_t kReadBytes = 256 << 10;

/// A blocking pair over TCP.
std::pair<int, int> ConnectedPair() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener, any, size) != 0 || listen(listener, 1) != 0 || getsockname(listener, any, &size) != 0 ||
      connect(client, any, size) != 0) {
    Die("no loopback: {}", std::strerror(errno));
  }
  const int server = accept(listener, nullptr, nullptr);
  close(listener);
  const int on = 1;
  for (const int fd : {client, server}) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return {client, server};
}

void SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) Die("loopback: {}", std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

/// Answers every whole frame until the other side closes. Looks at each, as a server has to.
void Acknowledge(int fd) {
  std::string in(kReadBytes, '\0');
  std::string answers;
  size_t have = 0;
  for (;;) {
    const ssize_t got = recv(fd, in.data() + have, in.size() - have, 0);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
    size_t at = 0;
    answers.clear();
    for (; have - at >= kFrameBytes; at += kFrameBytes) answers.append(in, at, kAnswerBytes);
    std::memmove(in.data(), in.data() + at, have - at);
    have -= at;
    SendAll(fd, answers);
  }
  close(fd);
}

}  // namespace

double LoopbackFramesPerSecond(double seconds) {
  const auto [client, server] = ConnectedPair();
  std::thread acker(Acknowledge, server);
  const std::string batch(kBatch * kFrameBytes, 'x');
  std::string in(kReadBytes, '\0');
  const Instant began = SteadyClock::now();
  size_t sent = 0;
  size_t answered_bytes = 0;
  for (bool more = true; more || answered_bytes < sent * kBatch * kAnswerBytes;) {
    more = Seconds(SteadyClock::now() - began) < seconds;
    while (more && sent * kBatch * kAnswerBytes - answered_bytes < kBatchesUnderWay * kBatch * kAnswerBytes) {
      SendAll(client, batch);
      ++sent;
    }
    if (answered_bytes == sent * kBatch * kAnswerBytes) continue;
    const ssize_t got = recv(client, in.data(), in.size(), 0);
    if (got <= 0) Die("loopback: {}", std::strerror(errno));
    answered_bytes += static_cast<size_t>(got);
  }
  const double took = Seconds(SteadyClock::now() - began);
  close(client);
  acker.join();
  return static_cast<double>(answered_bytes) / kAnswerBytes / took;
}

}  // namespace tocsin::bench
