// The embedded store passes the contract of Store on a simulated disk: every Crash is a power cut.
#include "sim/sim_node.h"
#include "spi/contract/store_contract.h"

namespace tocsin::journal {
namespace {

class JournalHarness final : public StoreHarness {
 public:
  JournalHarness() { TOCSIN_CHECK(node_.Open()); }

  Store& store() override { return node_.store(); }
  VirtualClock& clock() override { return node_.clock(); }
  void Pump() override { node_.Pump(); }
  void Restart() override { TOCSIN_CHECK(node_.CloseAndOpen()); }
  void Crash() override {
    node_.CutPower(Survive::kNothing, 1);
    TOCSIN_CHECK(node_.Open());
  }
  bool FailNextSync() override {
    node_.disk().FailNth(SimOp::kSync, 1);
    return true;
  }
  size_t largest_payload() const override { return 15 << 10; }  // of segments of 64 KiB
  std::optional<uint64_t> DiskBytes() override { return node_.disk().BytesUsed(); }

 private:
  SimNode node_;
};

INSTANTIATE_TEST_SUITE_P(Journal, StoreContract,
                         testing::Values(StoreMaker([] { return std::make_unique<JournalHarness>(); })));

}  // namespace
}  // namespace tocsin::journal
