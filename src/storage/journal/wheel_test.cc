#include "storage/journal/wheel.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

constexpr int64_t kSecond = 1'000;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kDay = 24 * kHour;
constexpr int64_t kYear = 365 * kDay;
constexpr int64_t kStart = 20'000 * kDay;  // an hour, a minute and a second begin here too
constexpr size_t kPlenty = 1'000'000'000;

// Counts how often the wheel looks at an item: what its work really costs.
struct CountingItems {
  std::vector<WheelItem>* items;
  size_t* looks;
  WheelItem& operator()(uint32_t index) {
    ++*looks;
    return (*items)[index];
  }
};

class WheelTest : public testing::Test {
 protected:
  uint32_t New(int64_t due_ms, uint64_t seq) {
    items.push_back({.due_ms = due_ms, .seq = seq});
    return static_cast<uint32_t>(items.size() - 1);
  }
  uint32_t New(int64_t due_ms) { return New(due_ms, items.size()); }
  uint32_t Add(int64_t due_ms) {
    const uint32_t index = New(due_ms);
    EXPECT_TRUE(wheel.Insert(index));
    return index;
  }
  bool Reschedule(uint32_t index, int64_t due_ms) {
    wheel.Remove(index);
    items[index].due_ms = due_ms;
    return wheel.Insert(index);
  }
  bool Advance(int64_t now_ms, size_t budget = kPlenty) {
    now = now_ms;
    return wheel.Advance(FromMs(now_ms), budget, [&](uint32_t index) {
      EXPECT_LE(items[index].due_ms, now_ms);
      EXPECT_EQ(items[index].bucket, kNoBucket);
      fired.push_back(index);
    });
  }
  // Advances only when NextWork asks for it, as a shard does, until `index` has fired.
  int64_t RunUntilFired(uint32_t index) {
    while (fired.empty() || fired.back() != index) {
      const Time next = wheel.NextWork(FromMs(now));
      if (next == kNever) return -1;
      Advance(ToMs(next));
    }
    return now;
  }
  void ExpectOrdered() const {
    for (size_t i = 1; i < fired.size(); ++i) {
      const WheelItem& a = items[fired[i - 1]];
      const WheelItem& b = items[fired[i]];
      ASSERT_LT(std::pair(a.due_ms, a.seq), std::pair(b.due_ms, b.seq)) << "at " << i;
    }
  }

  std::vector<WheelItem> items = std::vector<WheelItem>(1);
  size_t looks = 0;
  int64_t now = kStart;
  std::vector<uint32_t> fired;
  Wheel<CountingItems> wheel{CountingItems{&items, &looks}, FromMs(kStart)};
};

TEST_F(WheelTest, EmptyWheelHasNothingToDo) {
  EXPECT_EQ(wheel.NextWork(FromMs(kStart)), kNever);
  EXPECT_FALSE(Advance(kStart + 50 * kYear));
  EXPECT_EQ(wheel.NextWork(FromMs(now)), kNever);
}

TEST_F(WheelTest, FiresAtTheExactMillisecond) {
  const uint32_t index = Add(kStart + 5);
  EXPECT_EQ(wheel.NextWork(FromMs(kStart)), FromMs(kStart + 5));
  EXPECT_FALSE(Advance(kStart + 4));
  EXPECT_TRUE(fired.empty());
  EXPECT_FALSE(Advance(kStart + 5));
  EXPECT_EQ(fired, std::vector{index});
  EXPECT_EQ(wheel.size(), 0U);
}

TEST_F(WheelTest, FiresExactlyAroundEveryBoundary) {
  // From just before, at and just after the end of every unit, to the same places of every later unit.
  for (const int64_t unit : {kSecond, kMinute, kHour, kDay, 3700 * kDay}) {
    for (const int64_t from : {-2, -1, 0, 1}) {
      for (const int64_t ahead : {kSecond, kMinute, kHour, kDay, 3699 * kDay, 3700 * kDay, 3701 * kDay}) {
        for (const int64_t count : {1, 2, 3}) {
          for (const int64_t off : {-2, -1, 0, 1}) {
            const int64_t begin = kStart + unit + from;
            const int64_t due = kStart + unit + ahead * count + off;
            wheel.Reset(FromMs(begin));
            now = begin;
            fired.clear();
            const uint32_t index = Add(due);
            ASSERT_EQ(RunUntilFired(index), due) << unit << " " << from << " " << ahead << " " << count << " " << off;
          }
        }
      }
    }
  }
}

TEST_F(WheelTest, SleepsBetweenTheUnitsOfALongTimer) {
  const uint32_t index = Add(kStart + 9 * kYear + 12'345'678);
  size_t wakes = 0;
  while (fired.empty()) {
    Advance(ToMs(wheel.NextWork(FromMs(now))));
    ASSERT_LE(++wakes, 8U);
  }
  EXPECT_EQ(fired, std::vector{index});
  EXPECT_EQ(now, items[index].due_ms);
}

TEST_F(WheelTest, WakesOneUnitBeforeToMoveDown) {
  const uint32_t index = Add(kStart + 5 * kHour + 10);
  EXPECT_EQ(wheel.NextWork(FromMs(kStart)), FromMs(kStart + 4 * kHour));
  EXPECT_FALSE(Advance(kStart + 4 * kHour));
  EXPECT_EQ(wheel.NextWork(FromMs(now)), FromMs(kStart + 5 * kHour - kMinute));
  EXPECT_FALSE(Advance(kStart + 5 * kHour - kMinute));
  EXPECT_EQ(wheel.NextWork(FromMs(now)), FromMs(kStart + 5 * kHour - kSecond));
  EXPECT_FALSE(Advance(kStart + 5 * kHour - kSecond));
  EXPECT_EQ(wheel.NextWork(FromMs(now)), FromMs(items[index].due_ms));
}

TEST_F(WheelTest, ATimerWrittenBehindTheReadCursorIsRefusedNotForgotten) {
  Advance(kStart + 1500);
  for (const int64_t due : {kStart + 1500, kStart + 1499, kStart, int64_t{0}, int64_t{-1}}) {
    const uint32_t index = New(due);
    EXPECT_FALSE(wheel.Insert(index)) << due;
    EXPECT_EQ(items[index].bucket, kNoBucket);
  }
  EXPECT_EQ(wheel.size(), 0U);
  const uint32_t index = Add(kStart + 1501);
  EXPECT_EQ(RunUntilFired(index), kStart + 1501);
}

TEST_F(WheelTest, ATimerInsertedIntoTheBacklogIsFoundInItsPlace) {
  const uint32_t first = Add(kStart + 10);
  const uint32_t last = Add(kStart + 900);
  EXPECT_TRUE(Advance(kStart + 5 * kSecond, 1));
  // The cursor stands at +10: +11 is in the past of the clock, yet ahead of the cursor.
  const uint32_t middle = Add(kStart + 11);
  const uint32_t same = Add(kStart + 10);
  EXPECT_FALSE(wheel.Insert(New(kStart + 9)));
  EXPECT_FALSE(Advance(kStart + 5 * kSecond));
  EXPECT_EQ(fired, (std::vector{first, same, middle, last}));
}

TEST_F(WheelTest, CancelIsNotLostWhenALongTimerMovesToAFinerLevel) {
  for (const int64_t delay :
       {2 * kDay + 3 * kHour + 5 * kMinute + 7 * kSecond + 11, 40 * kDay, 3 * kHour, 3 * kMinute}) {
    // Cancelled at every stage of the way down, whichever level it is in by then.
    for (int stage = 0;; ++stage) {
      wheel.Reset(FromMs(now));
      fired.clear();
      const uint32_t index = Add(now + delay);
      const uint32_t other = Add(now + delay);
      for (int wake = 0; wake < stage; ++wake) Advance(ToMs(wheel.NextWork(FromMs(now))), 1);
      if (!fired.empty()) {
        Advance(now);
        ASSERT_EQ(fired, (std::vector{index, other}));
        ASSERT_GE(stage, 3);
        break;
      }
      ASSERT_TRUE(wheel.Remove(index));
      ASSERT_FALSE(wheel.Remove(index));
      ASSERT_EQ(RunUntilFired(other), items[other].due_ms);
      ASSERT_EQ(fired, std::vector{other});
      ASSERT_EQ(wheel.size(), 0U);
    }
  }
}

TEST_F(WheelTest, ADelayBeyondTheRangeNeverFiresEarly) {
  const uint32_t never = Add(std::numeric_limits<int64_t>::max());
  const uint32_t almost = Add(std::numeric_limits<int64_t>::max() - 1);
  const uint32_t far = Add(kStart + 35 * kYear);
  EXPECT_FALSE(wheel.Insert(New(std::numeric_limits<int64_t>::min())));
  EXPECT_EQ(RunUntilFired(far), kStart + 35 * kYear);
  EXPECT_EQ(fired, std::vector{far});
  EXPECT_FALSE(Advance(kStart + 5000 * kYear));
  EXPECT_EQ(fired.size(), 1U);
  EXPECT_GT(wheel.NextWork(FromMs(now)), FromMs(now));
  EXPECT_TRUE(wheel.Remove(never));
  EXPECT_TRUE(wheel.Remove(almost));
  EXPECT_FALSE(wheel.Advance(kNever, kPlenty, [](uint32_t) { FAIL(); }));
}

TEST_F(WheelTest, RescheduleMovesBothWays) {
  const uint32_t index = Add(kStart + 3 * kDay);
  const uint32_t other = Add(kStart + 100);
  EXPECT_TRUE(Reschedule(index, kStart + 50));
  EXPECT_TRUE(Reschedule(other, kStart + 2 * kHour));
  EXPECT_EQ(RunUntilFired(index), kStart + 50);
  EXPECT_FALSE(Reschedule(other, kStart + 50));
  EXPECT_EQ(wheel.size(), 0U);
  EXPECT_TRUE(Reschedule(other, kStart + 51));
  EXPECT_EQ(RunUntilFired(other), kStart + 51);
}

TEST_F(WheelTest, ExpiredMayInsertRemoveAndReschedule) {
  const uint32_t first = Add(kStart + 10);
  const uint32_t cancelled = Add(kStart + 10);
  const uint32_t moved = Add(kStart + 10);
  std::vector<uint32_t> order;
  const auto expired = [&](uint32_t index) {
    order.push_back(index);
    if (index != first) return;
    EXPECT_TRUE(wheel.Remove(cancelled));
    EXPECT_TRUE(Reschedule(moved, kStart + 12));
    EXPECT_TRUE(wheel.Insert(New(kStart + 10)));
    EXPECT_FALSE(wheel.Insert(New(kStart + 9)));
  };
  EXPECT_FALSE(wheel.Advance(FromMs(kStart + 20), kPlenty, expired));
  EXPECT_EQ(order, (std::vector{first, uint32_t{4}, moved}));
}

TEST_F(WheelTest, AJumpCostsItemsAndNotElapsedTime) {
  for (int64_t year = 1; year <= 9; ++year) Add(kStart + year * kYear + year * 1'234'567);
  looks = 0;
  EXPECT_FALSE(Advance(kStart + 10 * kYear));
  EXPECT_EQ(fired.size(), 9U);
  ExpectOrdered();
  EXPECT_LE(looks, 9U * 5 * 8);
}

TEST_F(WheelTest, BacklogOfYearsIsHandedOverInOrder) {
  const int64_t due_max = kStart + 20 * kYear;
  for (int64_t i = 0; i < 20'000; ++i) Add(kStart + 1 + i * 7'919'123'457 % (due_max - kStart));
  while (Advance(due_max, 100)) continue;
  EXPECT_EQ(fired.size(), 20'000U);
  ExpectOrdered();
}

TEST_F(WheelTest, AMillionInOneMillisecondDrainWithoutAStall) {
  constexpr size_t kItems = 1'000'000;
  constexpr size_t kBudget = 1'000;
  const int64_t due = kStart + 3 * kHour + 30 * kMinute;
  for (size_t i = 0; i < kItems; ++i) Add(due);
  size_t latecomers = 0;
  for (size_t calls = 0; fired.size() < kItems + latecomers; ++calls) {
    ASSERT_LE(calls, 6 * kItems / kBudget);
    // Jobs that come in while the others are on their way down must not put a bucket out of order.
    if (calls % 100 == 0 && now < due) {
      Add(due);
      ++latecomers;
    }
    looks = 0;
    Advance(ToMs(wheel.NextWork(FromMs(now))), kBudget);
    ASSERT_LE(looks, 10 * kBudget);
  }
  EXPECT_GE(latecomers, 20U);
  EXPECT_EQ(now, due);
  ExpectOrdered();
}

TEST_F(WheelTest, WorkIsBoundedByTheBudgetAndOneSort) {
  constexpr uint64_t kItems = 5'000;
  constexpr size_t kBudget = 64;
  // Four buckets in falling order of seq, and one more at a coarse level.
  for (uint64_t i = 0; i < 5 * kItems; ++i) {
    const uint64_t place = i % 5;
    const int64_t due = place < 4 ? kStart + 100 + static_cast<int64_t>(place) : kStart + 5 * kSecond;
    ASSERT_TRUE(wheel.Insert(New(due, 5 * kItems - i)));
  }
  size_t sorts = 0;
  for (bool more = true; more;) {
    looks = 0;
    more = Advance(kStart + 6 * kSecond, kBudget);
    ASSERT_LE(looks, 10 * kBudget + 6 * kItems);
    if (looks > 10 * kBudget) ++sorts;
  }
  EXPECT_EQ(sorts, 5U);
  EXPECT_EQ(fired.size(), 5 * kItems);
  ExpectOrdered();
}

TEST_F(WheelTest, ABudgetOfOneAlwaysGetsOn) {
  for (int64_t i = 0; i < 100; ++i)
    ASSERT_TRUE(wheel.Insert(New(kStart + 2 * kDay + i % 3, static_cast<uint64_t>(200 - i))));
  size_t calls = 1;
  while (Advance(kStart + 3 * kDay, 1)) ASSERT_LE(++calls, 600U);
  EXPECT_EQ(fired.size(), 100U);
  ExpectOrdered();
}

TEST_F(WheelTest, ResetIsForEmptyWheels) {
  Add(kStart + 1);
  EXPECT_DEATH(wheel.Reset(FromMs(kStart)), "size_ == 0");
}

}  // namespace
}  // namespace tocsin::journal
