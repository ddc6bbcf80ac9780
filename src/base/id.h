// Server ids: 64-bit snowflakes, (milliseconds since 2020 << 12 | sequence) << 10 | slot. Unique and rising within a
// slot of a topic. They contain the slot, so a lookup by id needs no key. As text: 'j' and 13 digits of Crockford's
// base 32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace tocsin {

using Uid = uint64_t;

constexpr uint32_t kSlotBits = 10;
constexpr uint32_t kSlotsMax = 1U << kSlotBits;

constexpr uint32_t SlotOf(Uid uid) { return static_cast<uint32_t>(uid & (kSlotsMax - 1)); }

std::string UidText(Uid uid);
/// When the id was given out, on the steady timeline. A little later if many were given out at once.
Time CreatedAt(Uid uid);
/// Nothing if `text` does not have the form of a server id.
std::optional<Uid> ParseUid(std::string_view text);

/// Gives out rising ids. They follow the steady timeline, so a stepped wall clock cannot repeat one. More than 4096 ids
/// in a millisecond use up the numbers of the next milliseconds.
class UidSource {
 public:
  Uid Next(Time now, uint32_t slot);
  /// No id at or below `used` is given out again.
  void Restore(Uid used);

 private:
  uint64_t last_ = 0;  // without the slot
};

}  // namespace tocsin
