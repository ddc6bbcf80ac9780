// The names of the store's keys. All keys of a group begin with the same hash tag, so that they live on one server of a
// Cluster; scripts.h says what each holds.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "clients/redis/command.h"

namespace tocsin::redis {

enum class Part : uint8_t {
  kMeta,
  kStore,
  kJob,
  kPrepare,
  kDead,
  kEnded,
  kId,
  kNote,
  kCount,
  kEvent,
  kRoom,
  kClaim,
  kNext,
  kChore,
  kOwner
};

constexpr std::array<std::string_view, 15> kPartNames{"meta",  "store", "job",  "prepare", "dead",
                                                      "ended", "id",    "note", "count",   "event",
                                                      "room",  "claim", "next", "chore",   "owner"};
constexpr Part kFirstOfGroup = Part::kNext;

/// What slot.lua takes.
constexpr std::initializer_list<Part> kSlotParts = {Part::kMeta,    Part::kStore, Part::kJob,   Part::kNext,
                                                    Part::kPrepare, Part::kDead,  Part::kEnded, Part::kId,
                                                    Part::kNote,    Part::kCount, Part::kEvent, Part::kChore};

/// Of one slot, with those of its group.
class SlotKeys {
 public:
  SlotKeys(std::string_view prefix, uint32_t group, std::string_view slot)
      : tag_(fmt::format("{{{}.{}}}", prefix, group)), slot_(fmt::format("{}{}:", tag_, slot)) {}

  std::string Of(Part part) const {
    const std::string& beginning = part < kFirstOfGroup ? slot_ : tag_;
    return beginning + std::string(kPartNames[static_cast<size_t>(part)]);
  }
  Command Call(const Script& script, std::initializer_list<Part> parts) const {
    Command command(script, parts.size(), Of(*parts.begin()));
    for (const Part* part = parts.begin() + 1; part != parts.end(); ++part) command.Add(Of(*part));
    return command;
  }
  /// A plain command on one key, which is its first argument.
  Command Call(std::string_view name, Part part) const { return {name, Of(part)}; }

 private:
  std::string tag_;
  std::string slot_;
};

/// Keys of no slot, which all nodes share.
struct SharedKeys {
  explicit SharedKeys(std::string_view prefix)
      : topics(fmt::format("{{{}}}topics", prefix)),
        topics_version(fmt::format("{{{}}}topics:version", prefix)),
        channel(fmt::format("{}:news", prefix)) {}
  const std::string topics;          // hash: name -> settings (EncodeTopic)
  const std::string topics_version;  // rises with every change of a topic
  const std::string channel;         // "<group> <due ms>" and "topics"
};

}  // namespace tocsin::redis
