// MemberProcess: one member of the coordinators' contract suite, in a process of its own, so that it can be killed and
// stopped like a node. It reports every view through a pipe; the test reads them in order, with deadlines.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/loop.h"
#include "spi/contract/coordinator_process.h"
#include "spi/coordinator.h"

namespace tocsin {

/// A coordinator and the loop that it lives on, in the process of one member.
class CoordinatorSite {
 public:
  virtual ~CoordinatorSite() = default;
  virtual Coordinator& coordinator() = 0;
  virtual void Post(Task task) = 0;  // from any thread
  virtual void Run() = 0;            // makes this thread the loop's, for good
};

class MemberProcess {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Report {
    enum class Kind : uint8_t {
      kView,     // of `changed`
      kCurrent,  // the answer to AskCurrent
      kLeft,     // the answer to Leave
      kEnded,    // the process has ended by itself
    };
    Kind kind = Kind::kEnded;
    TimePoint at{};    // when it was said; all processes of a machine have the same clock
    Members members;   // of kView and kCurrent
    bool ok = false;   // of kLeft
    std::string text;  // as it came, for failures
  };

  /// Joins.
  MemberProcess(Member self, const std::function<std::unique_ptr<CoordinatorSite>()>& make_site);
  ~MemberProcess();
  MemberProcess(const MemberProcess&) = delete;
  MemberProcess& operator=(const MemberProcess&) = delete;

  void Leave() { Send('l'); }
  void Refresh() { Send('r'); }
  void AskCurrent() { Send('c'); }
  void Kill() { process_->Kill(); }
  void Pause() { process_->Pause(); }
  void Continue() { process_->Continue(); }

  /// The next report; nothing where none comes until then.
  std::optional<Report> Next(TimePoint deadline);

 private:
  void Send(char command);

  std::unique_ptr<ForkedProcess> process_;
  int commands_ = -1;
  int reports_ = -1;
  std::string received_;
};

}  // namespace tocsin
