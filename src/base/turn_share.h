// TurnShare: how much one turn of a loop does of a work that is many small items, such as the answers of all callers
// that waited for the same event. When the share is spent, the owner posts the rest to its loop, and renews the share
// there. Bounded in time, and in items too: each of them ends in a system call if it answers a socket.
#pragma once

#include <utility>

#include "base/clock.h"

namespace tocsin {

class TurnShare {
 public:
  static constexpr size_t kItems = 128;
  static constexpr std::chrono::microseconds kTime{500};

  explicit TurnShare(const Clock& clock) : clock_(clock) {}

  void Renew() {
    items_ = 0;
    time_ = {};
  }
  bool Spent() const { return items_ >= kItems || time_ >= kTime; }

  /// Before the first item of a run. Time between runs is not counted.
  void Begin() { begun_ = clock_.IoNow(); }
  /// After each item. True if the share is spent.
  bool Did() {
    const IoTime now = clock_.IoNow();
    time_ += now - std::exchange(begun_, now);
    ++items_;
    return Spent();
  }

 private:
  const Clock& clock_;
  size_t items_ = 0;
  std::chrono::nanoseconds time_{0};
  IoTime begun_{};
};

}  // namespace tocsin
