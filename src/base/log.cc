#include "base/log.h"

#include <array>
#include <atomic>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace tocsin {
namespace {

constexpr std::array kSpdlogLevels{spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
                                   spdlog::level::off};

std::atomic<LogLevel> enabled_from = LogLevel::kInfo;

spdlog::logger& Logger() {
  static spdlog::logger logger = [] {
    spdlog::logger made("tocsin", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
    made.set_level(spdlog::level::trace);
    return made;
  }();
  return logger;
}

}  // namespace

void SetLogLevel(LogLevel level) { enabled_from.store(level, std::memory_order_relaxed); }

bool LogEnabled(LogLevel level) { return level >= enabled_from.load(std::memory_order_relaxed); }

void WriteLog(LogLevel level, std::string_view line) {
  Logger().log(kSpdlogLevels[static_cast<size_t>(level)], spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace tocsin
