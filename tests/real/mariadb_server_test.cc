#include "real/mariadb_server.h"

#include <gmock/gmock.h>

namespace tocsin::real {
namespace {

TEST(MariaDbServer, StartsAgainAfterItWasKilled) {
  if (const std::string why = WhyNoMariaDb(); !why.empty()) GTEST_SKIP() << why;
  auto made = MariaDbServer::Make();
  ASSERT_TRUE(made) << made.error().message;
  MariaDbServer& server = **made;
  EXPECT_TRUE(server.running());
  const uint16_t port = server.port();
  server.Kill();
  EXPECT_FALSE(server.running());
  const Status started = server.Start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(server.port(), port);
  server.Stop();
  EXPECT_FALSE(server.running());
}

}  // namespace
}  // namespace tocsin::real
