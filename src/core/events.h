// EventHub: what happens on this node, for those who listen: figures, changes of topics, progress of operations,
// alerts, nodes that come and go, conditions of the log. The last events are kept, so that a listener who was away for
// a moment goes on where it was.
//
// Bounded: the hub keeps kEventsMax events and about kBytesMax bytes, whoever listens. A listener has no queue of its
// own, only a place among them: one that is too slow is overtaken and told so. The figures of topics are one event for
// all listeners: they name kNamesMax topics together at most, and those who name none share kUnnamedMax topics.
//
// Threads: thread-safe. A Listener belongs to one thread; only its `wake` is called on others, and must not block.
// The hub outlives its listeners. Listeners choose among the events without the lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/figures.h"
#include "core/requests.h"

namespace tocsin {

enum class EventKind : uint8_t {
  kFigures,  // of the whole node
  kTopic,    // figures of topics that changed
  kTopicChanged,
  kTopicDropped,
  kOperation,
  kAlert,
  kNode,
  kLog,
};
/// In the order of EventKind.
inline constexpr std::array<std::string_view, 8> kEventKindNames{"figures",   "topic", "topic_changed", "topic_dropped",
                                                                 "operation", "alert", "node",          "log"};

/// Named values, for kinds that are made elsewhere.
struct EventField {
  std::string name;
  std::variant<std::string, int64_t, bool> value;
};
using EventFields = std::vector<EventField>;

/// What a topic, or all of them, have done since the event before.
struct Activity {
  FigureValues values{};  // now
  FigureValues added{};   // since then
  Millis oldest_age{-1};  // of the ready jobs; below 0: none, or not known
};
struct TopicActivity {
  std::string topic;
  bool paused = false;
  Activity activity;
};

struct FiguresEvent {
  double seconds = 0;  // since the event before
  size_t topics = 0;
  Activity activity;
  Lateness lateness;  // of the deliveries since then
};
struct TopicsEvent {
  /// Of the topics of a prefix, for those who name none.
  struct Busiest {
    size_t changed = 0;              // topics that have
    std::vector<uint32_t> places{};  // of the busiest of them in `topics`, the busiest first
  };
  double seconds = 0;
  std::vector<TopicActivity> topics;                    // by name
  std::map<std::string, Busiest, std::less<>> busiest;  // by prefix

  /// Null if it is not among them.
  const TopicActivity* Find(std::string_view topic) const;
};
struct TopicChangedEvent {
  Topic topic;
  bool created = false;
};
using EventData =
    std::variant<std::monostate, FiguresEvent, TopicsEvent, TopicChangedEvent, OperationReport, EventFields>;

struct Event {
  uint64_t number = 0;
  EventKind kind{};
  std::string topic;  // empty: of the whole node, or of several topics
  Time at{};
  EventData data;
  size_t bytes = 0;
};
using EventPtr = std::shared_ptr<const Event>;

/// What a listener wants, and may see.
struct EventInterest {
  uint32_t kinds = UINT32_MAX;      // a bit for each
  std::vector<std::string> topics;  // sorted; none: all
  std::string prefix;               // of the topics that it may see
  bool node = true;                 // whether it may see what is of the whole node
  std::string token = {};           // the name of the caller's access token; empty: it has none

  bool Takes(EventKind kind) const { return (kinds >> static_cast<unsigned>(kind) & 1) != 0; }
  bool TakesTopic(std::string_view topic) const;
  bool Takes(const Event& event) const;
  /// The topics of the event that it wants: the busiest first, or those that it names in their order.
  std::vector<const TopicActivity*> Of(const TopicsEvent& event) const;
};

class EventHub {
 public:
  static constexpr size_t kEventsMax = 2048;
  static constexpr size_t kBytesMax = 4 << 20;
  static constexpr size_t kNamesMax = 1'000;    // topics that all listeners together name
  static constexpr size_t kUnnamedMax = 1'000;  // topics of one event for those who name none
  static constexpr size_t kBusiest = 50;        // of these, for one prefix, if there are not too many prefixes

  EventHub(const Clock& clock, size_t listeners_max);

  void Publish(EventKind kind, std::string topic, EventData data);

  /// How a listener's first event relates to what it saw before.
  enum class Begin : uint8_t { kStart /* it named no event */, kGoesOn, kUnknown /* of another run */, kTooOld };

  class Listener {
   public:
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    Begin begin() const { return begin_; }
    /// The event that it begins behind.
    uint64_t start() const { return start_; }
    const EventInterest& interest() const { return interest_; }
    struct Taken {
      std::vector<EventPtr> events;
      uint64_t number = 0;     // where the listener is now
      bool overtaken = false;  // events were lost: these are none
    };
    /// The next events that it wants, at most `max`. If there are none, `wake` is called when there are.
    Taken Take(size_t max);

   private:
    friend class EventHub;
    Listener(EventHub& hub, EventInterest interest, std::function<void()> wake)
        : hub_(hub), interest_(std::move(interest)), wake_(std::move(wake)) {}
    /// Under the hub's lock: some events behind at_. False if they are lost.
    bool Copy(std::vector<EventPtr>& events);

    EventHub& hub_;
    const EventInterest interest_;
    const std::function<void()> wake_;
    Begin begin_ = Begin::kStart;
    uint64_t start_ = 0;
    uint64_t at_ = 0;      // the last event that it has passed
    bool waiting_ = true;  // guarded by the hub's lock: wake_ is to be called
  };
  /// kOverloaded if too many listen, also with the same access token, or if they name too many topics. `last_id`: of
  /// the last event that it has seen; empty: none.
  Result<std::unique_ptr<Listener>> Listen(EventInterest interest, std::string_view last_id,
                                           std::function<void()> wake);

  /// What all listeners together want of the figures.
  struct Wanted {
    bool figures = false;
    bool topics = false;
    std::vector<std::string> names{};     // topics that somebody named, sorted
    std::vector<std::string> prefixes{};  // of those who named none

    /// How many topics an event shows for one prefix.
    size_t Busiest() const { return std::min(kBusiest, std::max<size_t>(1, kUnnamedMax / (prefixes.size() + 1))); }
  };
  Wanted WantedFigures() const;

  std::string IdOf(uint64_t number) const;
  size_t listeners() const;

 private:
  std::optional<uint64_t> NumberOf(std::string_view id) const;
  // mutex_ is held.
  Status CheckRoom(const EventInterest& interest) const;
  /// `by`: 1 for one that begins to listen, -1 for one that ends.
  void Note(const EventInterest& interest, int by);

  const Clock& clock_;
  const size_t listeners_max_;
  const uint32_t run_;  // a random number, in the ids

  mutable std::mutex mutex_;  // guards the rest
  std::deque<EventPtr> events_;
  size_t bytes_ = 0;  // of events_
  uint64_t last_ = 0;
  std::set<Listener*> listeners_;
  struct Held {
    size_t streams = 0;
    size_t names = 0;
  };
  std::map<std::string, Held> tokens_;  // by the name of the access token
  // How many listeners want each.
  std::map<std::string, size_t> names_;
  std::map<std::string, size_t> prefixes_;
  size_t figures_ = 0;
};

}  // namespace tocsin
