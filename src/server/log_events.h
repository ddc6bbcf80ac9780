// The lines of the log that are events for those who listen (core/events.h): alerts, nodes that come and go, groups
// that are divided again, and conditions that begin or end. Others are for the log alone. No state.
#pragma once

#include <string_view>

#include "base/log_event.h"
#include "core/events.h"

namespace tocsin {

/// For WatchLog: `event` and `fields` are those of the line.
void PublishLogEvent(EventHub& events, std::string_view event, LogFields fields);

}  // namespace tocsin
