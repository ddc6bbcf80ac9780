// Deadline: when a connection has to have done something. A value.
//
// A transfer may take long as long as it moves: its deadline begins again with every kMovedBytes.
#pragma once

#include <chrono>
#include <cstddef>

namespace tocsin::net {

class Deadline {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr size_t kMovedBytes = 64 << 10;

  void Set(TimePoint at) {
    at_ = at;
    moved_ = 0;
  }
  /// Sets it, unless it is set and fewer than kMovedBytes have moved since.
  void Extend(TimePoint at) {
    if (!IsSet() || moved_ >= kMovedBytes) Set(at);
  }
  /// Bytes of the transfer arrived or left.
  void Moved(size_t bytes) { moved_ += bytes; }
  void Clear() { Set(TimePoint::max()); }
  bool IsSet() const { return at_ != TimePoint::max(); }
  bool HasPassed(TimePoint now) const { return now >= at_; }

 private:
  TimePoint at_ = TimePoint::max();
  size_t moved_ = 0;  // since it was set
};

}  // namespace tocsin::net
