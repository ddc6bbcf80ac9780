// Finds the first minute of the next day in which more jobs of a topic become due than a limit. It asks for hours first
// and for the minutes of those hours that hold enough, because a store without counts of minutes (Redis) counts each
// step that it is asked for. Hours that an earlier search found clear are left out. If the store refuses to count so
// much at once, as Redis does for a topic with many slots, it is asked for less, down to one step.
#pragma once

#include <string>

#include "core/alert_watch.h"
#include "core/service.h"

namespace tocsin {

/// Begins with the minute after this one. On the thread of `caller`, one of the shards' loops, where `done` runs too.
void FindFullMinute(Service& service, Loop& caller, FutureCandidate what, Time now, Done<FutureFinding> done);

}  // namespace tocsin
