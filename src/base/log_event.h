// LogEvent: a line of the log that has a name and named fields, for programs that read the log. As text
//   TIME LEVEL EVENT name=value name="another value"
// and as JSON (log.format) an object with the same names. Never payloads, headers or secrets. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/log.h"

namespace tocsin {

enum class LogFormat : uint8_t { kText, kJson };

/// Of all later lines. For the start, before other threads log.
void SetLogFormat(LogFormat format);

struct LogField {
  std::string_view name;
  std::variant<std::string_view, int64_t, bool> value;
};
using LogFields = std::span<const LogField>;

void LogEvent(LogLevel level, std::string_view event, LogFields fields);
/// At info, and also if log.level is above that; not if it is off.
void LogEventAlways(std::string_view event, LogFields fields);

/// From now on `watcher` is told of every LogEvent, whatever log.level is: under a lock, so it must neither block nor
/// log. Null: nobody is told.
using LogWatcher = std::function<void(std::string_view event, LogFields fields)>;
void WatchLog(LogWatcher watcher);

/// The whole line that LogEvent writes, with its time and its end.
std::string EventLine(LogLevel level, std::string_view event, LogFields fields);

}  // namespace tocsin
