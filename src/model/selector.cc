#include "model/selector.h"

#include <algorithm>

#include "base/text_search.h"

namespace tocsin {
namespace {

/// A time that a job does not have is in no range, unless that is asked for.
bool IsIn(const TimeRange& range, Time time) {
  if (!range.Bounds()) return true;
  return time == Time{} || time == kNever ? range.or_none : range.Has(time);
}

bool HasHeader(const Selector& what, const JobView& job) {
  return std::ranges::any_of(job.headers, [&](const HeaderView& header) {
    return header.name == what.header && (!what.header_value || header.value == *what.header_value);
  });
}

bool HasId(const Selector& what, const JobView& job) {
  const std::string uid = UidText(job.uid);
  return std::ranges::any_of(
      what.ids, [&](const std::string& id) { return id == uid || (!job.own_id.empty() && id == job.own_id); });
}

bool BeginsWith(const JobView& job, std::string_view prefix) {
  return job.own_id.empty() ? UidText(job.uid).starts_with(prefix) : job.own_id.starts_with(prefix);
}

}  // namespace

bool Selector::Empty() const {
  return states.All() && ids.empty() && id_prefix.empty() && key.empty() && header.empty() && payload.empty() &&
         reason.empty() && reason_is.empty() && holder.empty() && !due.Bounds() && !created.Bounds() &&
         !died.Bounds() && !attempts_min && !attempts_max;
}

Selector OfState(State state) { return {.states = StateSet::Of(state)}; }

bool Matches(const Selector& what, const JobView& job, Time now) {
  return MatchesRest(what, job, now) && (what.ids.empty() || HasId(what, job)) &&
         TextSearch(what.payload).IsIn(job.payload);
}

bool MatchesRest(const Selector& what, const JobView& job, Time now) {
  // What costs least comes first.
  if (!what.states.Has(job.state, job.due, now)) return false;
  if (!IsIn(what.due, job.due) || !IsIn(what.created, job.created) || !IsIn(what.died, job.died)) return false;
  if (what.attempts_min && job.attempt < *what.attempts_min) return false;
  if (what.attempts_max && job.attempt > *what.attempts_max) return false;
  if (!what.key.empty() && job.key != what.key) return false;
  if (!what.holder.empty() && job.holder != what.holder) return false;
  if (!what.id_prefix.empty() && !BeginsWith(job, what.id_prefix)) return false;
  if (!what.header.empty() && !HasHeader(what, job)) return false;
  if (!what.reason_is.empty() && job.reason != what.reason_is) return false;
  return what.reason.empty() || TextSearch(what.reason).IsIn(job.reason);
}

}  // namespace tocsin
