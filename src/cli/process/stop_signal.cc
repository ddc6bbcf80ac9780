#include "cli/process/stop_signal.h"

#include <csignal>

#include <poll.h>
#include <sys/signalfd.h>

#include "base/check.h"

namespace tocsin::cli {

StopSignal::StopSignal() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &both, nullptr);
  fd_ = Descriptor(::signalfd(-1, &both, SFD_CLOEXEC | SFD_NONBLOCK));
  TOCSIN_CHECK(fd_.open());
}

bool StopSignal::Wait(Millis limit) {
  pollfd poll{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, static_cast<int>(limit.count())) <= 0) return false;
  signalfd_siginfo info{};
  return ::read(fd_.get(), &info, sizeof(info)) == sizeof(info);
}

}  // namespace tocsin::cli
