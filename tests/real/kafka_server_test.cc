#include "real/kafka_server.h"

#include <gtest/gtest.h>

namespace tocsin::real {
namespace {

TEST(KafkaServer, ServesAgainAfterItWasKilledAndPaused) {
  if (const std::string why = WhyNoKafka(); !why.empty()) GTEST_SKIP() << why;
  auto made = KafkaServer::Make();
  ASSERT_TRUE(made) << made.error().message;
  KafkaServer& server = **made;
  const std::string brokers = server.Brokers();
  server.Kill();
  EXPECT_FALSE(server.running());
  const Status started = server.Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(server.Brokers(), brokers);
  server.Pause();
  EXPECT_TRUE(server.running());
  server.Continue();
  server.Stop();
  EXPECT_FALSE(server.running());
}

}  // namespace
}  // namespace tocsin::real
