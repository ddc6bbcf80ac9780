#include "core/events.h"

#include <algorithm>
#include <charconv>
#include <random>

namespace tocsin {
namespace {

/// About what an event takes in memory.
size_t BytesOf(const Event& event) {
  size_t bytes = sizeof(Event) + event.topic.size();
  if (const auto* const topics = std::get_if<TopicsEvent>(&event.data)) {
    for (const TopicActivity& each : topics->topics) bytes += sizeof(TopicActivity) + each.topic.size();
    for (const auto& [prefix, busiest] : topics->busiest) bytes += prefix.size() + 128 + 4 * busiest.places.size();
  }
  if (const auto* const changed = std::get_if<TopicChangedEvent>(&event.data)) {
    for (const auto& [name, value] : changed->topic.delivery.settings) bytes += name.size() + value.size() + 64;
  }
  if (const auto* const fields = std::get_if<EventFields>(&event.data)) {
    for (const EventField& field : *fields) {
      const auto* const text = std::get_if<std::string>(&field.value);
      bytes += sizeof(EventField) + field.name.size() + (text == nullptr ? 0 : text->size());
    }
  }
  return bytes;
}

}  // namespace

bool EventInterest::TakesTopic(std::string_view topic) const {
  return topic.starts_with(prefix) && (topics.empty() || std::ranges::binary_search(topics, topic));
}

bool EventInterest::Takes(const Event& event) const {
  if (!Takes(event.kind)) return false;
  if (const auto* const batch = std::get_if<TopicsEvent>(&event.data)) return !Of(*batch).empty();
  return event.topic.empty() ? node : TakesTopic(event.topic);
}

std::vector<const TopicActivity*> EventInterest::Of(const TopicsEvent& event) const {
  std::vector<const TopicActivity*> wanted;
  if (topics.empty()) {
    const auto busiest = event.busiest.find(prefix);
    if (busiest == event.busiest.end()) return wanted;
    for (const uint32_t place : busiest->second.places) wanted.push_back(&event.topics[place]);
    return wanted;
  }
  for (const std::string& topic : topics) {
    if (!topic.starts_with(prefix)) continue;
    if (const TopicActivity* const activity = event.Find(topic)) wanted.push_back(activity);
  }
  return wanted;
}

const TopicActivity* TopicsEvent::Find(std::string_view topic) const {
  const auto at =
      std::ranges::lower_bound(topics, topic, {}, [](const auto& each) { return std::string_view(each.topic); });
  return at != topics.end() && at->topic == topic ? &*at : nullptr;
}

EventHub::EventHub(const Clock& clock, size_t listeners_max)
    : clock_(clock), listeners_max_(listeners_max), run_(std::random_device{}()) {}

void EventHub::Publish(EventKind kind, std::string topic, EventData data) {
  auto event = std::make_shared<Event>();
  event->kind = kind;
  event->topic = std::move(topic);
  event->at = clock_.Now().utc;
  event->data = std::move(data);
  event->bytes = BytesOf(*event);
  std::vector<EventPtr> old;  // freed without the lock
  const std::lock_guard lock(mutex_);
  event->number = ++last_;
  bytes_ += event->bytes;
  events_.push_back(event);
  while (events_.size() > kEventsMax || (bytes_ > kBytesMax && events_.size() > 1)) {
    bytes_ -= events_.front()->bytes;
    old.push_back(std::move(events_.front()));
    events_.pop_front();
  }
  // Whether a listener wants figures of topics is its own to find out, on its thread.
  const bool batch = std::holds_alternative<TopicsEvent>(event->data);
  for (Listener* const listener : listeners_) {
    const EventInterest& interest = listener->interest_;
    if (!listener->waiting_ || !(batch ? interest.Takes(kind) : interest.Takes(*event))) continue;
    listener->waiting_ = false;
    listener->wake_();
  }
}

Result<std::unique_ptr<EventHub::Listener>> EventHub::Listen(EventInterest interest, std::string_view last_id,
                                                             std::function<void()> wake) {
  std::unique_ptr<Listener> listener(new Listener(*this, std::move(interest), std::move(wake)));
  const auto seen = NumberOf(last_id);
  const std::lock_guard lock(mutex_);
  TOCSIN_TRY(CheckRoom(listener->interest_));
  listener->at_ = last_;
  if (!last_id.empty()) {
    const uint64_t first = events_.empty() ? last_ + 1 : events_.front()->number;
    const bool known = seen && *seen <= last_;
    listener->begin_ = !known ? Begin::kUnknown : *seen + 1 < first ? Begin::kTooOld : Begin::kGoesOn;
    if (listener->begin_ == Begin::kGoesOn) listener->at_ = *seen;
  }
  listener->start_ = listener->at_;
  listeners_.insert(listener.get());
  Note(listener->interest_, 1);
  return listener;
}

Status EventHub::CheckRoom(const EventInterest& interest) const {
  const size_t free = listeners_max_ - std::min(listeners_max_, listeners_.size());
  if (free == 0) {
    return Fail(Code::kOverloaded, "{} event streams are open, as many as limits.event_streams allows", listeners_max_);
  }
  const auto known = tokens_.find(interest.token);
  const Held own = known == tokens_.end() ? Held() : known->second;
  if (own.streams >= free) {
    return Fail(Code::kOverloaded, "this access token has {} event streams open, and leaves only {} to others",
                own.streams, free);
  }
  const auto is_new = [this](const std::string& topic) { return !names_.contains(topic); };
  const size_t names = names_.size() + static_cast<size_t>(std::ranges::count_if(interest.topics, is_new));
  const size_t own_names = interest.token.empty() ? 0 : own.names + interest.topics.size();
  if (names > kNamesMax || own_names > kNamesMax - names) {
    return Fail(Code::kOverloaded, "event streams name too many topics already, {} of {}: name fewer, or none",
                names_.size(), kNamesMax);
  }
  return {};
}

void EventHub::Note(const EventInterest& interest, int by) {
  const auto note = [by](std::map<std::string, size_t>& counts, const std::string& name) {
    size_t& count = counts[name];
    count = by > 0 ? count + 1 : count - 1;
    if (count == 0) counts.erase(name);
  };
  if (!interest.token.empty()) {
    Held& held = tokens_[interest.token];
    held.streams += by > 0 ? 1 : -1;
    held.names += by > 0 ? interest.topics.size() : -interest.topics.size();
    if (held.streams == 0) tokens_.erase(interest.token);
  }
  if (interest.node && interest.Takes(EventKind::kFigures)) figures_ += static_cast<size_t>(by);
  if (!interest.Takes(EventKind::kTopic)) return;
  if (interest.topics.empty()) note(prefixes_, interest.prefix);
  for (const std::string& topic : interest.topics) {
    if (topic.starts_with(interest.prefix)) note(names_, topic);
  }
}

EventHub::Listener::~Listener() {
  const std::lock_guard lock(hub_.mutex_);
  if (hub_.listeners_.erase(this) > 0) hub_.Note(interest_, -1);
}

bool EventHub::Listener::Copy(std::vector<EventPtr>& events) {
  constexpr size_t kAtOnce = 64;
  const uint64_t first = hub_.events_.empty() ? hub_.last_ + 1 : hub_.events_.front()->number;
  if (at_ + 1 < first) return false;
  const auto begin = hub_.events_.begin() + static_cast<ptrdiff_t>(at_ + 1 - first);
  const auto count = std::min<ptrdiff_t>(kAtOnce, hub_.events_.end() - begin);
  events.assign(begin, begin + count);
  return true;
}

EventHub::Listener::Taken EventHub::Listener::Take(size_t max) {
  Taken taken;
  std::vector<EventPtr> next;
  while (taken.events.size() < max) {
    {
      const std::lock_guard lock(hub_.mutex_);
      if (!Copy(next)) {
        // What it has until now comes first; the next call tells of the loss.
        if (!taken.events.empty()) break;
        taken.overtaken = true;
        at_ = hub_.last_;
      }
      waiting_ = next.empty() && taken.events.empty() && !taken.overtaken;
    }
    if (next.empty() || taken.overtaken) break;
    for (EventPtr& event : next) {
      if (taken.events.size() == max) break;
      at_ = event->number;
      if (interest_.Takes(*event)) taken.events.push_back(std::move(event));
    }
    next.clear();
  }
  taken.number = at_;
  return taken;
}

EventHub::Wanted EventHub::WantedFigures() const {
  const auto keys = [](const std::map<std::string, size_t>& counts) {
    std::vector<std::string> all;
    for (const auto& [key, count] : counts) all.push_back(key);
    return all;
  };
  const std::lock_guard lock(mutex_);
  return {.figures = figures_ > 0,
          .topics = !names_.empty() || !prefixes_.empty(),
          .names = keys(names_),
          .prefixes = keys(prefixes_)};
}

std::string EventHub::IdOf(uint64_t number) const { return fmt::format("{:08x}-{}", run_, number); }

std::optional<uint64_t> EventHub::NumberOf(std::string_view id) const {
  const std::string run = fmt::format("{:08x}-", run_);
  if (!id.starts_with(run)) return std::nullopt;
  uint64_t number = 0;
  const char* const end = id.data() + id.size();
  const auto [at, error] = std::from_chars(id.data() + run.size(), end, number);
  return error == std::errc{} && at == end ? std::optional(number) : std::nullopt;
}

size_t EventHub::listeners() const {
  const std::lock_guard lock(mutex_);
  return listeners_.size();
}

}  // namespace tocsin
