#include "base/episode.h"

#include <algorithm>
#include <mutex>

namespace tocsin {
namespace {

using KeptValue = std::variant<std::string, int64_t, bool>;

/// The episodes that are under way. One lock for all: it is taken only when one begins or ends, and while the line of
/// one is held back.
struct UnderWay {
  std::mutex mutex;
  std::vector<Episode*> episodes;
};

UnderWay& Present() {
  static UnderWay present;
  return present;
}

KeptValue Copied(const decltype(LogField::value)& value) {
  if (const auto* const text = std::get_if<std::string_view>(&value)) return std::string(*text);
  if (const auto* const number = std::get_if<int64_t>(&value)) return *number;
  return std::get<bool>(value);
}

}  // namespace

Episode::Episode(std::string_view event, Millis quiet) : event_(event), quiet_(quiet) {
  Present();  // made first, so destroyed after every static episode
}

Episode::~Episode() {
  const std::lock_guard lock(Present().mutex);
  std::erase(Present().episodes, this);
}

void Episode::Begin(TimePoint now, LogFields fields) {
  last_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  if (shown_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(Present().mutex);
  if (!on_) {
    on_ = true;
    began_ = now;
    ++times_;
    fields_.clear();
    for (const LogField& field : fields) {
      fields_.push_back({std::string(field.name), Copied(field.value)});
    }
    Present().episodes.push_back(this);
  }
  Show(now);
}

void Episode::End(TimePoint now, LogFields fields) {
  if (!on()) return;
  const std::lock_guard lock(Present().mutex);
  if (on_) Close(now, fields);
}

void Episode::Show(TimePoint now) {
  if (shown_ || now < hold_until_) return;
  shown_ = true;
  std::vector<LogField> fields{{"state", "begin"}};
  for (const Kept& kept : fields_) {
    const auto show = [&fields, &kept](const auto& value) { fields.push_back({kept.name, value}); };
    std::visit(show, kept.value);
  }
  if (times_ > 1) fields.push_back({"times", times_});
  LogEvent(LogLevel::kWarn, event_, fields);
  fields_.clear();
}

void Episode::Close(TimePoint now, LogFields fields) {
  on_ = false;
  std::erase(Present().episodes, this);
  if (!shown_) return;  // it counts in the next line
  shown_ = false;
  hold_until_ = now + kHold;
  std::vector<LogField> all{{"state", "end"}};
  all.insert(all.end(), fields.begin(), fields.end());
  all.push_back({"lasted_ms", std::chrono::duration_cast<Millis>(now - began_).count()});
  all.push_back({"times", std::exchange(times_, 0)});
  LogEvent(LogLevel::kWarn, event_, all);  // at the level of the beginning: whoever sees one sees both
}

void Episode::Look(TimePoint now) {
  const TimePoint last{TimePoint::duration(last_.load(std::memory_order_relaxed))};
  if (quiet_ > Millis(0) && now - last >= quiet_) return Close(now, {});
  Show(now);
}

void LookAtEpisodes(Episode::TimePoint now) {
  const std::lock_guard lock(Present().mutex);
  const std::vector<Episode*> episodes = Present().episodes;
  for (Episode* const episode : episodes) episode->Look(now);
}

void NoteOverload(std::string_view why) {
  constexpr Millis kQuiet{5'000};
  static Episode overload("overload", kQuiet);
  const LogField fields[] = {{"why", why}};
  overload.Begin(std::chrono::steady_clock::now(), fields);
}

}  // namespace tocsin
