// The Redis store passes the contract of Store on a real Redis: a single server that is killed by every Crash, one
// behind Sentinel, and a Cluster of 3 masters and 3 replicas, where a Crash is the end of the Tocsin node alone.
#include "real/redis_servers.h"
#include "spi/contract/store_contract.h"
#include "storage/redis/nodes_test_world.h"

namespace tocsin::redis {
namespace {

class RedisHarness : public StoreHarness {
 public:
  Store& store() override { return node_->store(); }
  VirtualClock& clock() override { return clock_; }
  void Pump() override { node_->Pump(); }
  void Restart() override { Open(); }
  void Crash() override { Open(); }
  bool supports_clock_steps() const override { return false; }
  bool keeps_leases() const override { return true; }
  /// One script that stores jobs does not reach Redis; others of the same call do.
  bool FailNextSync() override {
    node_->client().fails = [failed = std::make_shared<bool>(false)](const Command& command) {
      const bool submits = command.script() != nullptr && command.script()->name().starts_with("submit");
      return submits && !std::exchange(*failed, true);
    };
    return true;
  }

 protected:
  explicit RedisHarness(Options options) : options_(std::move(options)) {}
  /// Removes all that earlier tests left.
  void Empty() {
    auto client = Client::Make(io_, options_, metrics_);
    TOCSIN_CHECK(client);
    bool done = false;
    (*client)->CallEach(Command("FLUSHALL"), [&](const auto& replies) {
      TOCSIN_CHECK(replies);
      done = true;
    });
    while (!done) io_.run_one();
    (*client)->Close();
  }
  void Open() {
    node_.reset();
    node_ = std::make_unique<TestNode>(io_, options_, clock_, metrics_,
                                       StoreOptions{.prefix = prefix_, .node = "test", .clock = ClockSource::kCaller});
    node_->OwnAll();
  }
  void Close() { node_.reset(); }

 private:
  boost::asio::io_context io_;
  metrics::Registry metrics_;
  VirtualClock clock_;
  const Options options_;
  // One's own: what the test before published may still be on its way from one server of a Cluster to another.
  const std::string prefix_ = fmt::format("test{}", made_++);
  static inline int made_ = 0;
  std::unique_ptr<TestNode> node_;
};

Options At(Mode mode, const std::vector<uint16_t>& ports) {
  Options options;
  options.mode = mode;
  for (const uint16_t port : ports) options.endpoints.push_back({"127.0.0.1", port});
  options.master = real::RedisSentinels::kMasterName;
  return options;
}

/// Servers live as long as the test program: starting them takes longer than most tests.
template <class Servers, class... Args>
Servers& Shared(Args... args) {
  static const std::unique_ptr<Servers> servers = [&] {
    auto made = Servers::Make(args...);
    TOCSIN_CHECK(made);
    return *std::move(made);
  }();
  return *servers;
}

real::RedisServer& SingleServer() {
  real::RedisOptions options;
  options.append_fsync = "always";
  return Shared<real::RedisServer>(options);
}

class SingleHarness final : public RedisHarness {
 public:
  SingleHarness() : RedisHarness(At(Mode::kSingle, {SingleServer().port()})) {
    Empty();
    Open();
  }
  void Crash() override {
    Close();
    SingleServer().Kill();
    TOCSIN_CHECK(SingleServer().Start());
    Open();
  }
};

class SentinelHarness final : public RedisHarness {
 public:
  SentinelHarness() : RedisHarness(At(Mode::kSentinel, Shared<real::RedisSentinels>().SentinelPorts())) {
    Empty();
    Open();
  }
};

class ClusterHarness final : public RedisHarness {
 public:
  ClusterHarness() : RedisHarness(At(Mode::kCluster, Shared<real::RedisCluster>().Ports())) {
    Empty();
    Open();
  }
};

template <class Harness>
StoreMaker Maker() {
  return StoreMaker([] { return std::make_unique<Harness>(); });
}

INSTANTIATE_TEST_SUITE_P(RedisSingle, StoreContract, testing::Values(Maker<SingleHarness>()));
INSTANTIATE_TEST_SUITE_P(RedisSentinel, StoreContract, testing::Values(Maker<SentinelHarness>()));
INSTANTIATE_TEST_SUITE_P(RedisCluster, StoreContract, testing::Values(Maker<ClusterHarness>()));

}  // namespace
}  // namespace tocsin::redis
