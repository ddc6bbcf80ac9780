#include "base/id.h"

#include <algorithm>

namespace tocsin {
namespace {

constexpr int64_t kEpochMs = 1'577'836'800'000;  // 2020-01-01T00:00:00Z
constexpr std::string_view kDigits = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr size_t kTextSize = 14;
constexpr uint32_t kSequenceBits = 12;

}  // namespace

std::string UidText(Uid uid) {
  std::string text(kTextSize, 'j');
  for (size_t i = kTextSize; i-- > 1; uid >>= 5) text[i] = kDigits[uid & 31];
  return text;
}

Time CreatedAt(Uid uid) { return FromMs(kEpochMs + static_cast<int64_t>(uid >> (kSlotBits + kSequenceBits))); }

std::optional<Uid> ParseUid(std::string_view text) {
  if (text.size() != kTextSize || text[0] != 'j') return std::nullopt;
  Uid uid = 0;
  for (const char c : text.substr(1)) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    if (uid >> 59 != 0) return std::nullopt;  // would overflow 64 bits
    uid = uid << 5 | digit;
  }
  return uid;
}

Uid UidSource::Next(Time now, uint32_t slot) {
  const auto floor = static_cast<uint64_t>(std::max<int64_t>(0, ToMs(now) - kEpochMs)) << kSequenceBits;
  last_ = std::max(last_ + 1, floor);
  return last_ << kSlotBits | slot;
}

void UidSource::Restore(Uid used) { last_ = std::max(last_, used >> kSlotBits); }

}  // namespace tocsin
