#include "coordination/local/coordinator.h"

#include "net/asio_loop.h"
#include "spi/coordinator_contract.h"

namespace tocsin {
namespace {

class LocalSite final : public CoordinatorSite {
 public:
  Coordinator& coordinator() override { return coordinator_; }
  void Post(Task task) override { loop_.Post(std::move(task)); }
  void Run() override { loop_.Run(); }

 private:
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  LocalCoordinator coordinator_{loop_, clock_};
};

class LocalWorld final : public CoordinatorWorld {
 public:
  Millis session() const override { return Millis(1'000); }
  std::unique_ptr<CoordinatorSite> MakeSite(uint16_t) override { return std::make_unique<LocalSite>(); }
};

INSTANTIATE_TEST_SUITE_P(Local, CoordinatorContract,
                         testing::Values(WorldMaker([] { return std::make_unique<LocalWorld>(); })));

}  // namespace
}  // namespace tocsin
