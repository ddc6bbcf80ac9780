#include "sinks/kafka/client_conf.h"

#include <array>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "sinks/kafka/sinks.h"

namespace tocsin::kafka {
namespace {

using Security = KafkaOptions::Security;
using Mechanism = KafkaOptions::Mechanism;
using Compression = KafkaOptions::Compression;

KafkaOptions Some() {
  KafkaOptions options;
  options.brokers = "127.0.0.1:1";
  options.username = "someone";
  options.password = "open-sesame";
  return options;
}

/// What librdkafka has understood; "(none)" where it was not told and has no default.
std::string Told(const KafkaOptions& options, const char* name) {
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
  const auto protocol = [](Security security) {
    KafkaOptions options = Some();
    options.security = security;
    return Told(options, "security.protocol");
  };
  EXPECT_EQ(protocol(Security::kPlaintext), "plaintext");
  EXPECT_EQ(protocol(Security::kTls), "ssl");
  EXPECT_EQ(protocol(Security::kSaslPlaintext), "sasl_plaintext");
  EXPECT_EQ(protocol(Security::kSaslTls), "sasl_ssl");
}

TEST(KafkaConf, ABrokersCertificateIsOfItsHost) {
  KafkaOptions options = Some();
  for (const Security security : {Security::kTls, Security::kSaslTls}) {
    options.security = security;
    EXPECT_EQ(Told(options, "ssl.endpoint.identification.algorithm"), "https");
    EXPECT_EQ(Told(options, "enable.ssl.certificate.verification"), "true");
  }
}

TEST(KafkaConf, EachMechanismIsOneOfKafkaAndOfTheLibrary) {
  const RealClock clock;
  KafkaOptions options = Some();
  const std::pair<Mechanism, const char*> mechanisms[] = {{Mechanism::kPlain, "PLAIN"},
                                                          {Mechanism::kScramSha256, "SCRAM-SHA-256"},
                                                          {Mechanism::kScramSha512, "SCRAM-SHA-512"}};
  for (const auto& [mechanism, name] : mechanisms) {
    options.mechanism = mechanism;
    for (const Security security : {Security::kSaslTls, Security::kSaslPlaintext}) {
      options.security = security;
      EXPECT_EQ(Told(options, "sasl.mechanisms"), name);
      EXPECT_EQ(Told(options, "sasl.username"), "someone");
      EXPECT_EQ(Told(options, "sasl.password"), "open-sesame");
    }
    const auto made = KafkaSinks::Make(options, clock);  // makes a producer: the library says whether it can do that
    EXPECT_TRUE(made) << made.error().message;
  }
  options.security = Security::kTls;
  EXPECT_EQ(Told(options, "sasl.password"), "(none)") << "nobody asks for it";
}

TEST(KafkaConf, EachCompressionIsACodecOfKafka) {
  KafkaOptions options = Some();
  EXPECT_EQ(Told(options, "compression.codec"), "none");
  options.compression = Compression::kLz4;
  EXPECT_EQ(Told(options, "compression.codec"), "lz4");
}

}  // namespace
}  // namespace tocsin::kafka
