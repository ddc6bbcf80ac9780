#include "real/ports.h"

#include <random>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/result.h"

namespace tocsin::real {

namespace {

// Linux gives 32768 and above to outgoing connections.
constexpr uint16_t kFirst = 11'000;
constexpr uint16_t kLast = 31'999;
constexpr int kTries = 200;
constexpr int kStarts = 5;

bool CanBind(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  TOCSIN_CHECK(fd >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int yes = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return bound;
}

}  // namespace

uint16_t FreePort() {
  // By chance, so that tests that run beside each other hardly ever meet.
  static std::mt19937 random(std::random_device{}());
  std::uniform_int_distribution<uint16_t> ports(kFirst, kLast);
  uint16_t port = ports(random);
  for (int i = 0; !CanBind(port); ++i) {
    TOCSIN_CHECK(i < kTries);
    port = ports(random);
  }
  return port;
}

Status StartOnFreePorts(const std::function<Status()>& start) {
  Status started = start();
  for (int i = 1; !started && i < kStarts; ++i) {
    const std::string& why = started.error().message;
    if (!why.contains("Address already in use") && !why.contains("eaddrinuse")) break;
    started = start();
  }
  return started;
}

}  // namespace tocsin::real
