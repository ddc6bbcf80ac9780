// Processes of the coordinators' contract suite, forked from the test without exec: what runs in one is a function.
// They are killed with their objects, and with the test. The test itself has one thread, so that forking it is safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <sys/types.h>

namespace tocsin {

class ForkedProcess {
 public:
  /// `body` runs in the new process, which ends with it.
  explicit ForkedProcess(const std::function<void()>& body);
  ~ForkedProcess() { Kill(); }
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  void Kill();      // SIGKILL; returns when it is gone
  void Pause();     // SIGSTOP; returns when it stands still
  void Continue();  // SIGCONT

 private:
  pid_t pid_ = -1;
};

/// A wire to a port of loopback that can be cut: a process that passes bytes on.
class Wire {
 public:
  explicit Wire(uint16_t target);

  /// Where to connect instead of to the target.
  uint16_t port() const { return port_; }
  /// Nothing passes any more, and nobody is told.
  void Cut() { process_->Pause(); }
  void Mend() { process_->Continue(); }

 private:
  uint16_t port_ = 0;
  std::unique_ptr<ForkedProcess> process_;
};

}  // namespace tocsin
