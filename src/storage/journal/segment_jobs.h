// SegmentJobs: which jobs of one shard have their latest put in which segment, so that an old segment can be emptied by
// copying forward the few jobs that it still holds. A job that ended or was put again stays in the list; whoever walks
// the list compares the job's own segment number. The shard's thread owns it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/check.h"

namespace tocsin::journal {

class SegmentJobs {
 public:
  /// Segments come in rising order.
  void Add(uint64_t segment, uint32_t job) {
    if (segments_.empty() || segments_.back().number < segment) segments_.push_back({segment, 0, 0, {}});
    Segment& last = segments_.back();
    TOCSIN_CHECK(last.number == segment);
    last.jobs.push_back(job);
    ++last.live;
  }

  /// A job whose put was in `segment` ended, or was put again.
  void Remove(uint64_t segment) {
    // Numbers are nearly dense: an idle shard leaves out a few, so the guess is at most a little too high.
    size_t guess = std::min(segment - segments_.front().number, segments_.size() - 1);
    while (segments_[guess].number != segment) --guess;
    --segments_[guess].live;
  }

  /// Forgets the oldest segments as long as no job lives in them. Returns the oldest one still needed, or `none`.
  uint64_t Oldest(uint64_t none) {
    while (!segments_.empty() && segments_.front().live == 0) segments_.pop_front();
    return segments_.empty() ? none : segments_.front().number;
  }

  /// The next job of the oldest segment's list, whether its put is still there or not; 0 at the end.
  uint32_t NextOfOldest() {
    if (segments_.empty()) return 0;
    Segment& oldest = segments_.front();
    return oldest.walked == oldest.jobs.size() ? 0 : oldest.jobs[oldest.walked++];
  }

 private:
  struct Segment {
    uint64_t number = 0;
    uint32_t live = 0;
    size_t walked = 0;
    std::vector<uint32_t> jobs;
  };
  std::deque<Segment> segments_;
};

}  // namespace tocsin::journal
