#include "core/future_minutes.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tocsin {
namespace {

constexpr Millis kHour = std::chrono::hours(1);

/// The counts of some steps, in parts that the store does not refuse as too much.
struct Counting {
  Service& service;
  Loop& caller;
  std::string topic;
  LoadSpan span;
  Done<std::vector<uint64_t>> done;
  size_t each = span.steps;
  std::vector<uint64_t> jobs = {};
};

void CountPart(const std::shared_ptr<Counting>& counting) {
  const size_t first = counting->jobs.size();
  if (first >= counting->span.steps) return counting->done(std::move(counting->jobs));
  const size_t steps = std::min(counting->each, counting->span.steps - first);
  const LoadRequest request{.topic = counting->topic,
                            .from = counting->span.StartOf(first),
                            .to = counting->span.StartOf(first + steps),
                            .step = counting->span.step};
  counting->service.Load(counting->caller, request, [counting, first, steps](Result<LoadReport> part) {
    if (part) {
      counting->jobs.insert(counting->jobs.end(), part->counts.jobs.begin(), part->counts.jobs.end());
      TOCSIN_CHECK(counting->jobs.size() == first + steps);
      return CountPart(counting);
    }
    if (part.error().code != Code::kInvalidArgument || steps == 1) {
      return counting->done(std::unexpected(std::move(part).error()));
    }
    counting->each = steps / 2;
    CountPart(counting);
  });
}

struct Search {
  Service& service;
  Loop& caller;
  FutureCandidate what;
  Time now{};
  Done<FutureFinding> done;
  Time first{};  // minute
  Time end{};
  std::vector<uint64_t> hours = {};  // from the beginning of this one on
  size_t hour = 0;                   // the next one to look into
  ClearHours clear = {};

  Time StartOf(size_t index) const {
    return std::chrono::floor<std::chrono::hours>(first) + kHour * static_cast<int64_t>(index);
  }
  /// Whether the next hour has no minute with too many jobs, as far as that is known.
  bool KnowsClear() {
    if (hours[hour] <= what.limit) return true;
    const auto known = what.clear.find(StartOf(hour));
    if (known == what.clear.end() || !known->second.StillClear(hours[hour], what.limit, now)) return false;
    clear.insert(*known);
    return true;
  }
};

void LookIntoHours(const std::shared_ptr<Search>& search) {
  while (search->hour < search->hours.size() && search->KnowsClear()) ++search->hour;
  if (search->hour >= search->hours.size()) return search->done(FutureFinding{{}, std::move(search->clear)});
  const Time start = search->StartOf(search->hour);
  const Time from = std::max(start, search->first);
  const Time to = std::min(start + kHour, search->end);
  const LoadSpan span{.from = from, .step = kLoadMinute, .steps = static_cast<size_t>((to - from) / kLoadMinute)};
  const auto looked = [search, span, start](Result<std::vector<uint64_t>> minutes) {
    if (!minutes) return search->done(std::unexpected(std::move(minutes).error()));
    const uint64_t limit = search->what.limit;
    const auto full = std::ranges::find_if(*minutes, [limit](uint64_t jobs) { return jobs > limit; });
    if (full != minutes->end()) {
      const FutureMinute found{span.StartOf(static_cast<size_t>(full - minutes->begin())), *full};
      return search->done(FutureFinding{found, std::move(search->clear)});
    }
    // Of the first and the last hour only a part was searched.
    if (span.steps == static_cast<size_t>(kHour / kLoadMinute)) {
      search->clear[start] = {search->hours[search->hour], std::ranges::max(*minutes), search->now};
    }
    ++search->hour;
    LookIntoHours(search);
  };
  CountPart(std::make_shared<Counting>(search->service, search->caller, search->what.topic, span, looked));
}

}  // namespace

void FindFullMinute(Service& service, Loop& caller, FutureCandidate what, Time now, Done<FutureFinding> done) {
  const auto search = std::make_shared<Search>(service, caller, std::move(what), now, std::move(done));
  search->first = std::chrono::floor<std::chrono::minutes>(now) + kLoadMinute;
  search->end = search->first + AlertWatch::kFutureLength;
  const Time from = search->StartOf(0);
  const auto steps = static_cast<size_t>((search->end - from + kHour - Millis(1)) / kHour);
  const auto counted = [search](Result<std::vector<uint64_t>> hours) {
    if (!hours) return search->done(std::unexpected(std::move(hours).error()));
    search->hours = std::move(*hours);
    LookIntoHours(search);
  };
  CountPart(std::make_shared<Counting>(service, caller, search->what.topic,
                                       LoadSpan{.from = from, .step = kHour, .steps = steps}, counted));
}

}  // namespace tocsin
