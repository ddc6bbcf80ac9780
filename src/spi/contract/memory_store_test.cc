#include "spi/contract/memory_store.h"

#include "sim/manual_loop.h"
#include "spi/contract/store_contract.h"

namespace tocsin {
namespace {

class MemoryHarness final : public StoreHarness {
 public:
  explicit MemoryHarness(bool later) : store_(later ? &loop_ : nullptr) {}

  Store& store() override { return store_; }
  VirtualClock& clock() override { return clock_; }
  void Pump() override { loop_.RunAll(); }
  void Restart() override {
    Pump();
    store_.Reopen();
  }
  void Crash() override { Restart(); }  // everything is durable at once

 private:
  ManualLoop loop_;
  VirtualClock clock_;
  MemoryStore store_;
};

INSTANTIATE_TEST_SUITE_P(MemoryAtOnce, StoreContract,
                         testing::Values(StoreMaker([] { return std::make_unique<MemoryHarness>(false); })));
INSTANTIATE_TEST_SUITE_P(MemoryLater, StoreContract,
                         testing::Values(StoreMaker([] { return std::make_unique<MemoryHarness>(true); })));

}  // namespace
}  // namespace tocsin
