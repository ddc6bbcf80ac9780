// The wheel against a sorted set, over random histories. A failing seed is printed; TOCSIN_SEED reruns it alone.
#include <cstdlib>
#include <random>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "storage/journal/wheel.h"

namespace tocsin::journal {
namespace {

struct VectorItems {
  std::vector<WheelItem>* items;
  WheelItem& operator()(uint32_t index) { return (*items)[index]; }
};

class History {
 public:
  explicit History(uint64_t seed)
      : random_(seed), items_(1), now_(Random(0, 40'000'000'000'000)), wheel_(VectorItems{&items_}, FromMs(now_)) {}

  void Run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      switch (Random(0, 9)) {
        case 0:
        case 1:
        case 2:
        case 3:
          Insert();
          break;
        case 4:
          Remove();
          break;
        case 5:
          Reschedule();
          break;
        default:
          Advance();
          break;
      }
    }
    now_ += 20'000LL * 86'400'000;
    while (!model_.empty() && !testing::Test::HasFatalFailure()) AdvanceTo(now_, 1'000);
  }

 private:
  int64_t Random(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }

  // Spans of every size, and often right at the edge of a unit.
  int64_t Span() {
    constexpr int64_t kUnits[] = {1, 1'000, 60'000, 3'600'000, 86'400'000, 86'400'000LL * 3700};
    const int64_t unit = kUnits[Random(0, Random(1, 5))];
    if (Random(0, 2) == 0) return Random(0, 3 * unit);
    const int64_t edge = (now_ / unit + Random(0, 3)) * unit + Random(-2, 2);
    return std::max<int64_t>(edge - now_, 0);
  }

  void Add(uint32_t index) {
    // Mostly rising, as submits are; sometimes an old one comes back.
    items_[index].seq = Random(0, 9) == 0 ? old_seq_-- : seq_++;
    const bool passed = items_[index].due_ms <= passed_;
    const bool in = wheel_.Insert(index);
    if (passed) ASSERT_FALSE(in);
    if (items_[index].due_ms > now_) ASSERT_TRUE(in);
    if (in) model_.emplace(items_[index].due_ms, items_[index].seq, index);
    if (!in) free_.push_back(index);
  }

  void Insert() {
    const int64_t due_ms = now_ + Span() - Random(0, 5);
    for (int64_t count = Random(1, Random(1, 30)); count > 0; --count) {
      if (free_.empty()) {
        free_.push_back(static_cast<uint32_t>(items_.size()));
        items_.emplace_back();
      }
      const uint32_t index = free_.back();
      free_.pop_back();
      items_[index].due_ms = due_ms + Random(0, Random(0, 3));
      Add(index);
    }
  }

  uint32_t Any() {
    const auto any = static_cast<uint32_t>(Random(1, static_cast<int64_t>(items_.size()) - 1));
    return items_[any].bucket == kNoBucket ? 0 : any;
  }

  void Remove() {
    if (items_.size() == 1) return;
    const uint32_t index = Any();
    if (index == 0) return;
    model_.erase({items_[index].due_ms, items_[index].seq, index});
    ASSERT_TRUE(wheel_.Remove(index));
    free_.push_back(index);
  }

  void Reschedule() {
    if (items_.size() == 1) return;
    const uint32_t index = Any();
    if (index == 0) return;
    model_.erase({items_[index].due_ms, items_[index].seq, index});
    const int64_t due_ms = now_ + Span();
    wheel_.Remove(index);
    items_[index].due_ms = due_ms;
    if (wheel_.Insert(index)) {
      model_.emplace(due_ms, items_[index].seq, index);
    } else {
      ASSERT_LE(due_ms, now_);
      free_.push_back(index);
    }
  }

  void Advance() {
    if (Random(0, 1) == 0) {
      now_ += Span();
    } else if (const Time next = wheel_.NextWork(FromMs(now_)); next != kNever) {
      now_ = ToMs(next);
    }
    AdvanceTo(now_, static_cast<size_t>(Random(0, Random(0, 1) == 0 ? 5 : 5'000)));
  }

  void AdvanceTo(int64_t now_ms, size_t budget) {
    size_t count = 0;
    const bool more = wheel_.Advance(FromMs(now_ms), budget, [&](uint32_t index) {
      ++count;
      ASSERT_FALSE(model_.empty());
      ASSERT_EQ(std::get<2>(*model_.begin()), index);
      ASSERT_LE(items_[index].due_ms, now_ms);
      passed_ = items_[index].due_ms - 1;
      model_.erase(model_.begin());
      free_.push_back(index);
    });
    ASSERT_LE(count, budget);
    ASSERT_EQ(wheel_.size(), model_.size());
    const int64_t earliest = model_.empty() ? ToMs(kNever) : std::get<0>(*model_.begin());
    const Time next = wheel_.NextWork(FromMs(now_ms));
    if (more) {
      ASSERT_EQ(next, FromMs(now_ms));
      return;
    }
    passed_ = now_ms;
    ASSERT_GT(earliest, now_ms);
    ASSERT_GT(next, FromMs(now_ms)) << "would spin";
    ASSERT_LE(ToMs(next), earliest) << "would be late";
    // Two seconds hold nothing but the millisecond level: exact there.
    if (earliest / 1'000 <= (now_ms + 1) / 1'000 + 1 && ToMs(next) / 1'000 == (now_ms + 1) / 1'000) {
      ASSERT_EQ(ToMs(next), earliest);
    }
  }

  std::mt19937_64 random_;
  std::vector<WheelItem> items_;
  std::vector<uint32_t> free_;
  std::set<std::tuple<int64_t, uint64_t, uint32_t>> model_;
  uint64_t seq_ = uint64_t{1} << 40;
  uint64_t old_seq_ = seq_ - 1;
  int64_t now_;
  int64_t passed_ = -1;  // every due time up to here is over
  Wheel<VectorItems> wheel_;
};

TEST(WheelModelTest, AgreesWithASortedSet) {
  const char* wanted = std::getenv("TOCSIN_SEED");
  const uint64_t first = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : std::random_device()();
  const uint64_t count = wanted != nullptr ? 1 : 300;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(testing::Message() << "TOCSIN_SEED=" << seed);
    History(seed).Run(1'000);
    ASSERT_FALSE(HasFatalFailure());
  }
}

}  // namespace
}  // namespace tocsin::journal
