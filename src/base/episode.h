// Episode: a condition that operators look for and that lasts for a while, such as a full disk. The log has one line
// when it begins and one when it ends:
//   TIME warning disk_full state=begin error="..."
//   TIME warning disk_full state=end lasted_ms=5210 times=1
// A condition that comes and goes does not fill the log: for ten seconds after an end no beginning gets a line. `times`
// says how often it began since the line before that named an end. One that still lasts after the ten seconds gets its
// line then.
//
// Begin and End may be called for every request: without a change they take no lock. Both are thread-safe. The server
// calls LookAtEpisodes every second.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log_event.h"
#include "base/time.h"

namespace tocsin {

class Episode {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr Millis kHold{10'000};

  /// `event` is a literal. With `quiet` the condition ends when Begin was not called for so long.
  explicit Episode(std::string_view event, Millis quiet = Millis(0));
  /// Without a line.
  ~Episode();
  Episode(const Episode&) = delete;
  Episode& operator=(const Episode&) = delete;

  /// The condition is there: for its beginning, and for as long as it lasts. `fields` are those of the first call.
  void Begin(TimePoint now, LogFields fields);
  /// It is gone, or was not there.
  void End(TimePoint now, LogFields fields = {});
  bool on() const { return on_.load(std::memory_order_relaxed); }

 private:
  friend void LookAtEpisodes(TimePoint now);
  struct Kept {
    std::string name;
    std::variant<std::string, int64_t, bool> value;
  };

  // The caller holds the lock of all episodes.
  void Show(TimePoint now);
  void Close(TimePoint now, LogFields fields);
  void Look(TimePoint now);

  const std::string_view event_;
  const Millis quiet_;
  std::atomic<bool> on_ = false;
  std::atomic<bool> shown_ = false;       // on_, and its line is written
  std::atomic<TimePoint::rep> last_ = 0;  // Begin

  // Guarded by the lock of all episodes.
  std::vector<Kept> fields_;  // until its line is written
  TimePoint began_{};
  TimePoint hold_until_ = TimePoint::min();
  int64_t times_ = 0;
};

/// Ends those that are quiet, and writes the lines that were held back.
void LookAtEpisodes(Episode::TimePoint now);

/// The node refused something because it has too much to do: one episode for all reasons. `why` is a literal.
void NoteOverload(std::string_view why);

}  // namespace tocsin
