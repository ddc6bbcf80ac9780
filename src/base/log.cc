#include "base/log.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <mutex>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/log_event.h"
#include "base/text.h"

namespace tocsin {
namespace {

constexpr std::array kSpdlogLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
                                   spdlog::level::off};

std::atomic<LogLevel> enabled_from = LogLevel::kInfo;
std::atomic<LogFormat> log_format = LogFormat::kText;

bool IsJson() { return log_format.load(std::memory_order_relaxed) == LogFormat::kJson; }

/// What stands around the text that Write gets.
const char* Pattern() {
  return IsJson() ? R"({"time":"%Y-%m-%dT%H:%M:%S.%e%z","level":"%l",%v})" : "%Y-%m-%dT%H:%M:%S.%e%z %l %v";
}

spdlog::logger& Logger() {
  static spdlog::logger logger = [] {
    spdlog::logger made("tocsin", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern(Pattern());
    made.set_level(spdlog::level::trace);
    return made;
  }();
  return logger;
}

spdlog::level::level_enum SpdlogLevel(LogLevel level) { return kSpdlogLevels[static_cast<size_t>(level)]; }

void Write(LogLevel level, std::string_view text) {
  Logger().log(SpdlogLevel(level), spdlog::string_view_t(text.data(), text.size()));
}

/// In quotes, as JSON has it.
void AppendQuoted(std::string& out, std::string_view text) {
  const bool utf8 = IsUtf8(text);
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < ' ') {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else if (static_cast<unsigned char>(c) > '~' && !utf8) {
      out += "\\ufffd";
    } else {
      out += c;
    }
  }
  out += '"';
}

bool IsBare(std::string_view text) {
  constexpr auto kPlain = [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\'; };
  return !text.empty() && std::ranges::all_of(text, kPlain);
}

void AppendField(std::string& out, const LogField& field) {
  if (IsJson()) {
    fmt::format_to(std::back_inserter(out), ",\"{}\":", field.name);
  } else {
    fmt::format_to(std::back_inserter(out), " {}=", field.name);
  }
  if (const auto* const number = std::get_if<int64_t>(&field.value)) {
    fmt::format_to(std::back_inserter(out), "{}", *number);
    return;
  }
  if (const auto* const flag = std::get_if<bool>(&field.value)) {
    out += *flag ? "true" : "false";
    return;
  }
  const std::string_view text = std::get<std::string_view>(field.value);
  if (!IsJson() && IsBare(text)) {
    out += text;
  } else {
    AppendQuoted(out, text);
  }
}

std::string TextOf(std::string_view event, LogFields fields) {
  std::string text = IsJson() ? fmt::format("\"event\":\"{}\"", event) : std::string(event);
  for (const LogField& field : fields) AppendField(text, field);
  return text;
}

struct Watching {
  std::mutex mutex;
  LogWatcher watcher;
};

Watching& Watched() {
  static Watching watching;
  return watching;
}

}  // namespace

void SetLogLevel(LogLevel level) { enabled_from.store(level, std::memory_order_relaxed); }

void SetLogFormat(LogFormat format) {
  log_format.store(format, std::memory_order_relaxed);
  Logger().set_pattern(Pattern());
}

bool LogEnabled(LogLevel level) { return level >= enabled_from.load(std::memory_order_relaxed); }

void WriteLog(LogLevel level, std::string_view line) {
  if (!IsJson()) return Write(level, line);
  const LogField message{"message", line};
  Write(level, TextOf("note", {&message, 1}));
}

void WatchLog(LogWatcher watcher) {
  const std::lock_guard lock(Watched().mutex);
  Watched().watcher = std::move(watcher);
}

void LogEvent(LogLevel level, std::string_view event, LogFields fields) {
  {
    const std::lock_guard lock(Watched().mutex);
    if (Watched().watcher) Watched().watcher(event, fields);
  }
  if (LogEnabled(level)) Write(level, TextOf(event, fields));
}

void LogEventAlways(std::string_view event, LogFields fields) {
  if (LogEnabled(LogLevel::kError)) Write(LogLevel::kInfo, TextOf(event, fields));
}

std::string EventLine(LogLevel level, std::string_view event, LogFields fields) {
  const std::string text = TextOf(event, fields);
  spdlog::pattern_formatter formatter(Pattern());
  spdlog::memory_buf_t line;
  formatter.format(spdlog::details::log_msg("tocsin", SpdlogLevel(level), text), line);
  return {line.data(), line.size()};
}

}  // namespace tocsin
