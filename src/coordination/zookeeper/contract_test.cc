#include "coordination/zookeeper/coordinator.h"
#include "net/asio_loop.h"
#include "real/zookeeper_server.h"
#include "spi/contract/coordinator_contract.h"

namespace tocsin {
namespace {

constexpr Millis kSession{2'000};

class ZookeeperSite final : public CoordinatorSite {
 public:
  ZookeeperSite(uint16_t port, std::string path)
      : coordinator_(ZookeeperCoordinator::Make(
                         loop_, loop_.io(), clock_,
                         {.hosts = fmt::format("127.0.0.1:{}", port), .path = std::move(path), .session = kSession})
                         .value()) {}

  Coordinator& coordinator() override { return *coordinator_; }
  void Post(Task task) override { loop_.Post(std::move(task)); }
  void Run() override { loop_.Run(); }

 private:
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  std::unique_ptr<ZookeeperCoordinator> coordinator_;
};

/// One server for all tests, since it starts slowly; each has a path of its own.
class ZookeeperWorld final : public CoordinatorWorld {
 public:
  explicit ZookeeperWorld(real::ZooKeeperServer& server) : server_(server) {}

  static Result<std::unique_ptr<CoordinatorWorld>> Make() {
    if (const std::string why = real::WhyNoZooKeeper(); !why.empty()) return Fail(Code::kUnavailable, "{}", why);
    static const auto server = real::ZooKeeperServer::Make();
    if (!server) return Fail(Code::kInternal, "{}", server.error().message);
    // As a test may have left it that failed.
    (*server)->Continue();
    if (!(*server)->running()) TOCSIN_TRY((*server)->Start());
    return std::make_unique<ZookeeperWorld>(**server);
  }

  Millis session() const override { return kSession; }
  uint16_t port() const override { return server_.port(); }
  std::unique_ptr<CoordinatorSite> MakeSite(uint16_t port) override {
    return std::make_unique<ZookeeperSite>(port, path_);
  }
  void KillServer() override { server_.Kill(); }
  Status StartServer() override { return server_.Start(); }
  void PauseServer() override { server_.Pause(); }
  void ContinueServer() override { server_.Continue(); }

 private:
  static inline int worlds = 0;

  real::ZooKeeperServer& server_;
  const std::string path_ = fmt::format("/test/{}", ++worlds);
};

INSTANTIATE_TEST_SUITE_P(Zookeeper, CoordinatorContract, testing::Values(WorldMaker(&ZookeeperWorld::Make)));
INSTANTIATE_TEST_SUITE_P(Zookeeper, SharedCoordinatorContract, testing::Values(WorldMaker(&ZookeeperWorld::Make)));

}  // namespace
}  // namespace tocsin
