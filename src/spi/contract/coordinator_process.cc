#include "spi/contract/coordinator_process.h"

#include <array>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/result.h"

namespace tocsin {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

struct Pair {
  int near = -1;
  int far = -1;
};

/// Passes on what can be read; false when either side has ended.
bool Pass(int from, int to) {
  std::array<char, 16'384> bytes;
  const ssize_t size = read(from, bytes.data(), bytes.size());
  if (size <= 0) return false;
  for (ssize_t done = 0; done < size;) {
    const ssize_t sent = send(to, bytes.data() + done, static_cast<size_t>(size - done), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    done += sent;
  }
  return true;
}

void Accept(int listener, uint16_t target, std::vector<Pair>& pairs) {
  Pair pair{.near = accept(listener, nullptr, nullptr), .far = socket(AF_INET, SOCK_STREAM, 0)};
  const sockaddr_in address = Loopback(target);
  if (connect(pair.far, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    pairs.push_back(pair);
    return;
  }
  close(pair.near);
  close(pair.far);
}

[[noreturn]] void PassOn(int listener, uint16_t target) {
  std::vector<Pair> pairs;
  while (true) {
    std::vector<pollfd> polled = {{.fd = listener, .events = POLLIN, .revents = 0}};
    for (const Pair& pair : pairs) {
      polled.push_back({.fd = pair.near, .events = POLLIN, .revents = 0});
      polled.push_back({.fd = pair.far, .events = POLLIN, .revents = 0});
    }
    TOCSIN_CHECK(poll(polled.data(), polled.size(), -1) > 0);
    std::vector<Pair> left;
    for (size_t i = 0; i < pairs.size(); ++i) {
      const Pair pair = pairs[i];
      const bool lives = (polled[2 * i + 1].revents == 0 || Pass(pair.near, pair.far)) &&
                         (polled[2 * i + 2].revents == 0 || Pass(pair.far, pair.near));
      if (lives) {
        left.push_back(pair);
      } else {
        close(pair.near);
        close(pair.far);
      }
    }
    pairs = std::move(left);
    if (polled[0].revents != 0) Accept(listener, target, pairs);
  }
}

}  // namespace

ForkedProcess::ForkedProcess(const std::function<void()>& body) {
  const pid_t parent = getpid();
  pid_ = fork();
  TOCSIN_CHECK(pid_ >= 0);
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent) body();
  _exit(0);
}

void ForkedProcess::Kill() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  TOCSIN_CHECK(waitpid(pid_, nullptr, 0) == pid_);
  pid_ = -1;
}

void ForkedProcess::Pause() {
  int status = 0;
  kill(pid_, SIGSTOP);
  TOCSIN_CHECK(waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status));
}

void ForkedProcess::Continue() { kill(pid_, SIGCONT); }

Wire::Wire(uint16_t target) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  TOCSIN_CHECK(bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0 && listen(listener, 64) == 0);
  TOCSIN_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
  process_ = std::make_unique<ForkedProcess>([listener, target] { PassOn(listener, target); });
  close(listener);
}

}  // namespace tocsin
