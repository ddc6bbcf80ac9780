// Skew: by how much the clock of the node is ahead of that of MySQL, and by how much delays are corrected for it.
// Values; one thread.
//
// Invariants: the correction stays the same as long as it is about right, so that a row that is read twice asks for the
// same moment. When the clocks were compared last, the node's was ahead by less than kSkewMin more than the correction:
// so much too early may a delay end, and no more.
#pragma once

#include "base/time.h"

namespace tocsin::outbox {

/// What is less is not corrected.
constexpr Millis kSkewMin{500};

/// One comparison of the clocks.
struct ClockSample {
  Millis ahead{0};       // of the node's clock, at most: as if the question had taken no time to get there
  Millis round_trip{0};  // of the question, by the node's clock
};

class Skew {
 public:
  /// False if the question took too long to tell much: it should be asked again soon. Such a sample counts only if
  /// there is no better one: delays may then end late, and not early.
  bool Take(const ClockSample& sample);

  Millis measured() const { return measured_; }
  Millis correction() const { return correction_; }

 private:
  bool any_ = false;
  bool sharp_ = false;  // what was measured
  Millis measured_{0};
  Millis correction_{0};
};

}  // namespace tocsin::outbox
