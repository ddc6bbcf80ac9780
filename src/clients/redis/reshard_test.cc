// Slots that move under load: every command is carried out once.
#include "clients/redis/client_test_site.h"

namespace tocsin::redis {
namespace {

class ReshardTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = real::WhyNoRedis(); !why.empty()) GTEST_SKIP() << why;
    auto made = real::RedisCluster::Make();
    ASSERT_TRUE(made) << made.error().message;
    cluster_ = std::move(*made);
  }
  int64_t Stored(const std::string& key) {
    const uint16_t port = cluster_->MasterOf(HashSlot(key)).value();
    return std::stoll("0" + cluster_->Ask(port, {"GET", key}).value().text);
  }

  std::unique_ptr<real::RedisCluster> cluster_;
};

TEST_F(ReshardTest, NoIncrementIsLostOrDoubledWhileSlotsMove) {
  constexpr int kSlots = 16;
  ClientSite site(At(Mode::kCluster, cluster_->Ports()));
  Listening listening(site, "news");
  ASSERT_TRUE(listening.Hears());
  std::vector<std::string> keys;
  for (int tag = 0; tag < kSlots; ++tag) {
    for (int i = 0; i < 8; ++i) keys.push_back(fmt::format("{{{}}}{}", tag, i));
  }
  Incrementing load(site, keys, 100);
  ASSERT_TRUE(load.WaitForMore(2'000));
  // Each slot goes round the masters, its keys one by one, so that many commands meet it half way.
  for (int tag = 0; tag < kSlots; ++tag) {
    const int slot = HashSlot(std::to_string(tag));
    const uint16_t from = cluster_->MasterOf(slot).value();
    for (const uint16_t to : cluster_->Masters()) {
      if (to == from) continue;
      const auto migration = cluster_->BeginMigration(slot, to);
      ASSERT_TRUE(migration) << migration.error().message;
      for (;;) {
        const auto moved = cluster_->MoveKeys(*migration, 1);
        ASSERT_TRUE(moved) << moved.error().message;
        if (*moved == 0) break;
      }
      ASSERT_TRUE(cluster_->EndMigration(*migration));
    }
  }
  ASSERT_TRUE(load.WaitForMore(2'000));
  load.Stop();
  EXPECT_EQ(load.strange, std::vector<std::string>());
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(load.unknown()[i], 0) << keys[i];
    EXPECT_EQ(Stored(keys[i]), load.told()[i]) << keys[i];
  }
  EXPECT_GT(site.Count("tocsin_redis_redirects_total", {{"kind", "moved"}}), 0);
  EXPECT_GT(site.Count("tocsin_redis_redirects_total", {{"kind", "ask"}}), 0);
  EXPECT_TRUE(listening.Hears());
}

TEST_F(ReshardTest, AMasterThatDiesUnderLoadLosesNothingThatWasAnsweredAndCopied) {
  Options options = At(Mode::kCluster, cluster_->Ports());
  options.command_timeout = Millis(2'000);
  ClientSite site(options);
  std::vector<std::string> keys;
  for (int i = 0; i < 64; ++i) keys.push_back(fmt::format("k{}", i));
  Incrementing load(site, keys, 64);
  ASSERT_TRUE(load.WaitForMore(2'000));
  const int slot = HashSlot(keys[0]);
  const uint16_t old = cluster_->KillMasterOf(slot).value();
  ASSERT_TRUE(cluster_->WaitForNewMaster(slot, old));
  ASSERT_TRUE(load.WaitForMore(5'000));
  load.Stop();
  EXPECT_EQ(load.strange, std::vector<std::string>());
  for (size_t i = 0; i < keys.size(); ++i) {
    const int64_t stored = Stored(keys[i]);
    // A replica that takes over may lack what was answered in the last moment: fewer, never more.
    EXPECT_LE(stored, load.told()[i] + load.unknown()[i]) << keys[i];
    if (cluster_->MasterOf(HashSlot(keys[i])).value() != cluster_->MasterOf(slot).value()) {
      EXPECT_GE(stored, load.told()[i]) << keys[i];
    }
  }
}

}  // namespace
}  // namespace tocsin::redis
