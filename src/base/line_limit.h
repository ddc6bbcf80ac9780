// LineLimit: how many lines of one kind the log has in a second, for what a stranger can cause as often as they like.
// Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace tocsin {

class LineLimit {
 public:
  explicit LineLimit(int64_t each_second) : each_second_(each_second) {}

  /// Nothing if this one gets no line; otherwise how many got none since the last that did.
  std::optional<int64_t> Take(std::chrono::steady_clock::time_point now) {
    const std::lock_guard lock(mutex_);
    if (now - began_ >= std::chrono::seconds(1)) {
      began_ = now;
      lines_ = 0;
    }
    if (lines_ == each_second_) {
      ++left_out_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(left_out_, 0);
  }

 private:
  const int64_t each_second_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point began_{};
  int64_t lines_ = 0;  // since then
  int64_t left_out_ = 0;
};

}  // namespace tocsin
