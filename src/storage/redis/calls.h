// Helpers that the calls of the Redis store share.
#pragma once

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

#include "model/names.h"
#include "storage/redis/allowances.h"

namespace tocsin::redis {

/// The error for a server that took too long.
inline Error NoAnswer() { return {Code::kUnavailable, "Redis does not answer", {}}; }

/// The member that a reference by server id means on this slot; empty if it is none.
inline std::string MemberIn(const JobRef& job, uint32_t slot) {
  const auto uid = job.uid != 0 ? std::optional(job.uid) : ParseUid(job.id);
  return uid && SlotOf(*uid) == slot ? MemberOf(*uid >> kSlotBits) : std::string();
}

/// A due time as the scripts take it.
inline int64_t WhenOf(Timeline timeline, Millis delay, Time due) {
  return timeline == Timeline::kSteady ? delay.count() : std::max(ToMs(due), kAbsoluteMin);
}

/// A limit of a topic; empty if there is none.
inline void AddLimit(Command& command, uint64_t limit) {
  const auto most = static_cast<int64_t>(std::min<uint64_t>(limit, std::numeric_limits<int64_t>::max()));
  limit == 0 ? command.Add("") : command.Add(most);
}

/// If the slots have allowances: the era from which on those count.
inline void AddEra(Command& command, const StoredTopic& topic) {
  Allowances::Shared(topic) ? command.Add(static_cast<int64_t>(topic.era())) : command.Add("");
}

/// A number that Redis gives as text; -1 for anything else.
inline int64_t ParseMs(std::string_view text) {
  int64_t number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Cuts off the first word of a message.
inline std::string_view NextWord(std::string_view& text) {
  const size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

/// A due time that a script answered: -1 and 0 are never.
inline Time DueOf(int64_t ms) { return ms <= 0 ? kNever : FromMs(ms); }

/// Collects the answers of several slots to one call, in the order of the call, and answers when all have. If only a
/// part of the items failed, each of them says so itself: an error for the call would hide what was done.
template <class T>
struct Gather {
  explicit Gather(size_t size, Done<std::vector<T>> the_done) : outcomes(size), done(std::move(the_done)) {}

  std::vector<T> outcomes;
  std::optional<Error> error;
  size_t left = 1;    // parts under way, and one for the caller until it has sent all
  size_t failed = 0;  // items
  Done<std::vector<T>> done;

  void Fail(Error why) {
    if (!error) error = std::move(why);
    Leave();
  }
  /// The items at these places have failed.
  void Fail(Error why, std::span<const uint32_t> places) {
    Note(std::move(why), places);
    Leave();
  }
  void Note(Error why, std::span<const uint32_t> places) {
    for (const uint32_t at : places) {
      if constexpr (requires { outcomes[at].outcome; }) {
        outcomes[at] = {.outcome = FailedOutcome<decltype(T::outcome)>(why.code)};
      } else {
        outcomes[at] = FailedOutcome<T>(why.code);
      }
    }
    failed += places.size();
    // An unknown outcome counts for more than one that is known.
    if (!error || NothingWasDone(error->code)) error = std::move(why);
  }
  void Leave() {
    if (--left > 0) return;
    if (error && (failed == 0 || failed == outcomes.size())) return done(std::unexpected(std::move(*error)));
    done(std::move(outcomes));
  }
};

/// For answers without a value.
inline std::shared_ptr<Gather<char>> Join(Done<void> done) {
  return std::make_shared<Gather<char>>(0, [done = std::move(done)](Result<std::vector<char>> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    done({});
  });
}

/// Makes `gather` wait for one more answer, of any type, to what this returns.
inline auto OneMore(const std::shared_ptr<Gather<char>>& gather) {
  ++gather->left;
  return [gather](auto answer) {
    if (!answer) return gather->Fail(std::move(answer).error());
    gather->Leave();
  };
}

/// The items of a call that go to one slot in one script. Kept, with the arguments of each item, until all of it is
/// answered: a script that has read enough answers only for the first items, and one that found no room may find some
/// later.
template <class Outcome, size_t N>
struct Portion {
  std::string topic;
  uint32_t slot = 0;
  Moment now;
  std::shared_ptr<Gather<Outcome>> gather;
  int asks = 0;              // requests for room so far
  std::vector<uint32_t> at;  // their places in the call
  std::vector<std::array<std::string, N>> items;

  /// An empty one of the same call and slot.
  std::shared_ptr<Portion> Like() const { return std::make_shared<Portion>(topic, slot, now, gather, asks); }
  /// The first `each` arguments of every item.
  void AddItems(Command& command, size_t each = N) const {
    for (const auto& item : items) {
      for (const std::string& argument : std::span(item).first(each)) command.Add(argument);
    }
  }
  void Take(Portion& from, size_t i) {
    at.push_back(from.at[i]);
    items.push_back(std::move(from.items[i]));
  }
  /// Cuts off the items that the script did not look at; null if it looked at all.
  std::shared_ptr<Portion> Rest(size_t looked) {
    if (looked >= at.size()) return nullptr;
    auto rest = Like();
    for (size_t i = looked; i < at.size(); ++i) rest->Take(*this, i);
    at.resize(looked);
    items.resize(looked);
    return rest;
  }
  /// Takes the items that were refused for lack of room.
  std::shared_ptr<Portion> Refused() {
    auto refused = Like();
    for (size_t i = 0; i < at.size(); ++i) {
      const auto outcome = gather->outcomes[at[i]].outcome;
      if (outcome == decltype(outcome)::kOverCapacity) refused->Take(*this, i);
    }
    return refused;
  }
};

/// The places of a call's items by the slot that they belong to, in their order.
template <class Item, class SlotOf>
std::map<uint32_t, std::vector<uint32_t>> BySlot(std::span<const Item> items, SlotOf slot_of) {
  std::map<uint32_t, std::vector<uint32_t>> parts;
  for (size_t i = 0; i < items.size(); ++i) parts[slot_of(items[i])].push_back(static_cast<uint32_t>(i));
  return parts;
}

}  // namespace tocsin::redis
