#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "clients/redis/client.h"

namespace tocsin::redis {
namespace {

/// The field that Make refuses; empty where it does not.
std::string Refused(const Options& options) {
  boost::asio::io_context io;
  metrics::Registry metrics;
  const auto client = Client::Make(io, options, metrics);
  if (client) return "";
  EXPECT_EQ(client.error().code, Code::kInvalidArgument);
  return client.error().field;
}

Options One() {
  Options options;
  options.endpoints = {{"127.0.0.1", 1}};
  return options;
}

TEST(Options, OfEachModeAreTaken) {
  EXPECT_EQ(Refused(One()), "");
  Options sentinel = One();
  sentinel.mode = Mode::kSentinel;
  sentinel.master = "m";
  EXPECT_EQ(Refused(sentinel), "");
  Options cluster = One();
  cluster.mode = Mode::kCluster;
  cluster.endpoints.push_back({"::1", 2});
  EXPECT_EQ(Refused(cluster), "");
}

TEST(Options, ThatContradictAreRefusedByName) {
  EXPECT_EQ(Refused({}), "endpoints");
  Options two = One();
  two.endpoints.push_back({"127.0.0.1", 2});
  EXPECT_EQ(Refused(two), "endpoints");
  Options portless = One();
  portless.endpoints[0].port = 0;
  EXPECT_EQ(Refused(portless), "endpoints");
  Options nameless = One();
  nameless.mode = Mode::kSentinel;
  EXPECT_EQ(Refused(nameless), "master");
  Options user = One();
  user.username = "alice";
  EXPECT_EQ(Refused(user), "password");
  Options times = One();
  times.backoff_max = Millis(1);
  EXPECT_EQ(Refused(times), "backoff_min");
}

TEST(Options, OfTlsNameTheFileThatCannotBeUsed) {
  const std::string file = testing::TempDir() + "/no_certificate.pem";
  std::ofstream(file) << "nothing";
  Options options = One();
  options.tls.on = true;
  options.tls.ca_file = testing::TempDir() + "/missing.pem";
  EXPECT_EQ(Refused(options), "tls.ca_file");
  options.tls.ca_file = "";
  EXPECT_EQ(Refused(options), "");
  options.tls.cert_file = file;
  EXPECT_EQ(Refused(options), "tls.key_file");
  options.tls.key_file = file;
  EXPECT_EQ(Refused(options), "tls.cert_file");
  std::filesystem::remove(file);
}

TEST(Endpoint, IsShownWithTheBracketsOfIpv6) {
  EXPECT_EQ((Endpoint{"localhost", 1}).Text(), "localhost:1");
  EXPECT_EQ((Endpoint{"::1", 2}).Text(), "[::1]:2");
}

}  // namespace
}  // namespace tocsin::redis
