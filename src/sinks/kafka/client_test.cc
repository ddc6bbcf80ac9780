#include "sinks/kafka/client.h"

#include <array>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "sinks/kafka/factory.h"

namespace tocsin::kafka {
namespace {

Options Some() {
  Options options;
  options.brokers = "127.0.0.1:1";
  options.username = "someone";
  options.password = "open-sesame";
  return options;
}

/// What librdkafka has understood; "(none)" where it was not told and has no default.
std::string Told(const Options& options, const char* name) {
  const Result<Conf> conf = MakeConf(options, Millis(7'000));
  EXPECT_TRUE(conf) << conf.error().message;
  std::array<char, 256> value{};
  size_t size = value.size();
  return rd_kafka_conf_get(conf->get(), name, value.data(), &size) == RD_KAFKA_CONF_OK ? value.data() : "(none)";
}

TEST(KafkaConf, AConfirmationIsOneOfAllReplicasAndRepeatsNothing) {
  EXPECT_EQ(Told(Some(), "acks"), "-1") << "all";
  EXPECT_EQ(Told(Some(), "enable.idempotence"), "true");
  EXPECT_EQ(Told(Some(), "message.timeout.ms"), "7000");
}

TEST(KafkaConf, EachSecurityIsAProtocolOfKafka) {
  const auto protocol = [](bool tls, const char* mechanism) {
    Options options = Some();
    options.tls = tls;
    options.sasl_mechanism = mechanism;
    return Told(options, "security.protocol");
  };
  EXPECT_EQ(protocol(false, ""), "plaintext");
  EXPECT_EQ(protocol(true, ""), "ssl");
  EXPECT_EQ(protocol(false, "PLAIN"), "sasl_plaintext");
  EXPECT_EQ(protocol(true, "PLAIN"), "sasl_ssl");
}

TEST(KafkaConf, ABrokersCertificateIsOfItsHost) {
  Options options = Some();
  options.tls = true;
  for (const char* const mechanism : {"", "PLAIN"}) {
    options.sasl_mechanism = mechanism;
    EXPECT_EQ(Told(options, "ssl.endpoint.identification.algorithm"), "https");
    EXPECT_EQ(Told(options, "enable.ssl.certificate.verification"), "true");
  }
}

TEST(KafkaConf, EachMechanismIsOneOfKafkaAndOfTheLibrary) {
  const RealClock clock;
  Options options = Some();
  for (const char* const mechanism : {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}) {
    options.sasl_mechanism = mechanism;
    for (const bool tls : {false, true}) {
      options.tls = tls;
      EXPECT_EQ(Told(options, "sasl.mechanisms"), mechanism);
      EXPECT_EQ(Told(options, "sasl.username"), "someone");
      EXPECT_EQ(Told(options, "sasl.password"), "open-sesame");
    }
    const auto made = Factory::Make(options, clock);  // makes a producer: the library says whether it can do that
    EXPECT_TRUE(made) << made.error().message;
  }
  options.sasl_mechanism.clear();
  EXPECT_EQ(Told(options, "sasl.password"), "(none)") << "nobody asks for it";
}

TEST(KafkaConf, EachCompressionIsACodecOfKafka) {
  Options options = Some();
  EXPECT_EQ(Told(options, "compression.codec"), "none");
  options.compression = "lz4";
  EXPECT_EQ(Told(options, "compression.codec"), "lz4");
}

}  // namespace
}  // namespace tocsin::kafka
