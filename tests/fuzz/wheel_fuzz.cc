// The timing wheel against a sorted map: every history of inserts, cancels, moves and advances must hand over the same
// items in the same order, never early, never late.
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/codec.h"
#include "base/result.h"
#include "storage/journal/wheel.h"

namespace tocsin::journal {
namespace {

struct VectorItems {
  std::vector<WheelItem>* items;
  WheelItem& operator()(uint32_t index) { return (*items)[index]; }
};

class History {
 public:
  explicit History(Reader& input)
      : input_(input),
        now_(static_cast<int64_t>(input.Varint() % (uint64_t{1} << 48))),
        wheel_({&items_}, FromMs(now_)) {}

  void Run() {
    while (!input_.done()) {
      switch (input_.Fixed<uint8_t>() % 6) {
        case 0:
        case 1:
          Insert();
          break;
        case 2:
          Remove();
          break;
        case 3:
          Reschedule();
          break;
        case 4:
          now_ += Span();
          [[fallthrough]];
        default:
          Advance(input_.Fixed<uint8_t>());
          break;
      }
    }
    now_ += int64_t{1} << 49;
    while (!model_.empty() && model_.begin()->first.first <= now_) Advance(1'000);
  }

 private:
  int64_t Span() {
    constexpr int64_t kUnits[] = {1, 1'000, 60'000, 3'600'000, 86'400'000, 86'400'000LL * 3700};
    const int64_t unit = kUnits[input_.Fixed<uint8_t>() % 6];
    const int64_t count = input_.Fixed<uint8_t>() % 4;
    const int64_t edge = (now_ / unit + count) * unit + input_.Fixed<int8_t>();
    return std::max<int64_t>(edge - now_, 0);
  }

  void Insert() {
    const auto index = static_cast<uint32_t>(items_.size());
    items_.push_back({.due_ms = now_ + Span(), .seq = uint64_t{input_.Fixed<uint8_t>()} << 32 | index});
    if (wheel_.Insert(index)) {
      model_.emplace(std::pair(items_[index].due_ms, items_[index].seq), index);
    } else {
      TOCSIN_CHECK(items_[index].due_ms <= now_);
    }
  }

  uint32_t Any() { return static_cast<uint32_t>(input_.Fixed<uint16_t>() % items_.size()); }

  void Remove() {
    const uint32_t index = Any();
    if (index == 0) return;
    const bool in = model_.erase({items_[index].due_ms, items_[index].seq}) == 1;
    TOCSIN_CHECK(wheel_.Remove(index) == in);
  }

  void Reschedule() {
    const uint32_t index = Any();
    if (index == 0) return;
    model_.erase({items_[index].due_ms, items_[index].seq});
    wheel_.Remove(index);
    items_[index].due_ms = now_ + Span();
    if (wheel_.Insert(index)) {
      model_.emplace(std::pair(items_[index].due_ms, items_[index].seq), index);
    } else {
      TOCSIN_CHECK(items_[index].due_ms <= now_);
    }
  }

  void Advance(size_t budget) {
    size_t count = 0;
    const bool more = wheel_.Advance(FromMs(now_), budget, [&](uint32_t index) {
      ++count;
      TOCSIN_CHECK(!model_.empty() && model_.begin()->second == index && items_[index].due_ms <= now_);
      model_.erase(model_.begin());
    });
    TOCSIN_CHECK(count <= budget && wheel_.size() == model_.size());
    const Time next = wheel_.NextWork(FromMs(now_));
    if (more) {
      TOCSIN_CHECK(next == FromMs(now_));
    } else if (!model_.empty()) {
      TOCSIN_CHECK(model_.begin()->first.first > now_ && next > FromMs(now_) &&
                   ToMs(next) <= model_.begin()->first.first);
    }
  }

  Reader& input_;
  int64_t now_;
  std::vector<WheelItem> items_ = std::vector<WheelItem>(1);
  std::map<std::pair<int64_t, uint64_t>, uint32_t> model_;
  Wheel<VectorItems> wheel_;
};

}  // namespace
}  // namespace tocsin::journal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tocsin::Reader input({reinterpret_cast<const char*>(data), size});
  tocsin::journal::History(input).Run();
  return 0;
}
