#include "base/id.h"

#include <unordered_set>

#include <gtest/gtest.h>

namespace tocsin {
namespace {

constexpr Time kNow = FromMs(1'800'000'000'000);

TEST(Id, TextRoundTripsAndSortsAsTheNumber) {
  std::string before;
  for (const Uid uid : {Uid{0}, Uid{1}, Uid{31}, Uid{32}, Uid{1} << 40, (Uid{1} << 63) + 5, UINT64_MAX}) {
    const std::string text = UidText(uid);
    EXPECT_EQ(text.size(), 14U);
    EXPECT_EQ(ParseUid(text), uid);
    EXPECT_LT(before, text);
    before = text;
  }
  EXPECT_EQ(UidText(0), "j0000000000000");
}

TEST(Id, TellsWhenItWasGivenOut) {
  UidSource source;
  for (const Time now : {kNow, kNow + Millis(1), kNow + std::chrono::days(3653)}) {
    EXPECT_EQ(CreatedAt(source.Next(now, 0)), now);
    EXPECT_EQ(CreatedAt(source.Next(now, kSlotsMax - 1)), now) << "whatever the slot and the sequence";
  }
}

TEST(Id, OtherTextsAreNoServerIds) {
  const std::string good = UidText(12345);
  for (const std::string& bad : {std::string(), good.substr(1), good + "0", "k" + good.substr(1), "J" + good.substr(1),
                                 good.substr(0, 13) + "u", good.substr(0, 13) + "A", std::string("jzzzzzzzzzzzzz"),
                                 std::string("jg000000000000"), std::string("order-00000001")}) {
    EXPECT_FALSE(ParseUid(bad)) << bad;
  }
}

TEST(Id, RisesAndCarriesTheSlot) {
  UidSource source;
  Uid before = 0;
  for (uint32_t i = 0; i < 3000; ++i) {
    const Uid uid = source.Next(kNow + Millis(i / 10), i % kSlotsMax);
    EXPECT_EQ(SlotOf(uid), i % kSlotsMax);
    EXPECT_GT(uid >> kSlotBits, before >> kSlotBits) << "whatever the slots";
    before = uid;
  }
}

TEST(Id, DoesNotRepeatWhenTheClockGoesBack) {
  UidSource source;
  const Uid first = source.Next(kNow, 1);
  EXPECT_GT(source.Next(kNow - std::chrono::hours(1), 1), first);
  EXPECT_GT(source.Next(FromMs(0), 1), first) << "before the epoch of ids";
}

TEST(Id, MoreThan4096InAMillisecondBorrowFromTheNext) {
  UidSource source;
  std::unordered_set<Uid> seen;
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(seen.insert(source.Next(kNow, 0)).second);
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(seen.insert(source.Next(kNow + Millis(1), 0)).second);
}

TEST(Id, RestoreKeepsUsedIdsUsed) {
  UidSource before;
  Uid last = 0;
  for (int i = 0; i < 10'000; ++i) last = before.Next(kNow, 1023);
  UidSource after;
  after.Restore(last);
  EXPECT_GT(after.Next(kNow - std::chrono::days(1), 0) >> kSlotBits, last >> kSlotBits);
  const Uid next = after.Next(kNow, 0);
  after.Restore(5);
  EXPECT_GT(after.Next(kNow, 0), next) << "an older one changes nothing";
}

}  // namespace
}  // namespace tocsin
