#include "cli/text/progress.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/text/stderr.h"

namespace tocsin::cli {
namespace {

constexpr Millis kRedraw{100};
constexpr int kBarWidth = 30;

}  // namespace

Progress::Progress(const Clock& clock, std::string verb)
    : clock_(clock), verb_(std::move(verb)), terminal_(isatty(STDERR_FILENO) == 1), began_(clock.IoNow()) {}

void Progress::Show(int64_t jobs, double part) {
  const auto now = clock_.IoNow();
  if (!terminal_ || now - shown_ < kRedraw) return;
  shown_ = now;
  visible_ = true;
  PrintStderr("\r{}\x1b[K", ProgressLine(verb_, jobs, part, now - began_));
}

void Progress::Clear() {
  if (!visible_) return;
  visible_ = false;
  PrintStderr("\r\x1b[K");
}

std::string ProgressLine(const std::string& verb, int64_t jobs, double part, std::chrono::nanoseconds took) {
  const double seconds = std::max(0.001, std::chrono::duration<double>(took).count());
  std::string line = fmt::format("{} {} jobs  {}/s", verb, Grouped(jobs),
                                 Grouped(static_cast<int64_t>(static_cast<double>(jobs) / seconds)));
  if (part < 0) return line;
  const int filled = static_cast<int>(std::clamp(part, 0.0, 1.0) * kBarWidth);
  return line + fmt::format("  [{}{}] {:.0f} %", std::string(static_cast<size_t>(filled), '#'),
                            std::string(static_cast<size_t>(kBarWidth - filled), ' '),
                            std::clamp(part, 0.0, 1.0) * 100);
}

std::string Grouped(int64_t number) {
  std::string text = std::to_string(number);
  const auto begin = static_cast<std::ptrdiff_t>(number < 0);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > begin; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

}  // namespace tocsin::cli
