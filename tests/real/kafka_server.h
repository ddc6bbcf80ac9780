// A real Kafka broker for tests: one node in KRaft mode, run by java from the jars that tools/kafka_jars.sh gets, on
// free ports of 127.0.0.1, with its data in a temporary folder. Topics are made when they are first named.
//
//   if (const std::string why = real::WhyNoKafka(); !why.empty()) GTEST_SKIP() << why;
//   auto server = real::KafkaServer::Make();
//   ASSERT_TRUE(server) << server.error().message;
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "real/certificates.h"
#include "real/process.h"

namespace tocsin::real {

/// Empty if Kafka can be run; otherwise the reason for GTEST_SKIP.
std::string WhyNoKafka();

struct KafkaServerOptions {
  int partitions = 1;                      // of a topic that is made
  std::optional<Certificates> tls;         // a second door, with TLS and SASL
  std::string username = "tocsin";         // of the second door, for all mechanisms
  std::string password = "correct horse";  // the same
};

class KafkaServer {
 public:
  static Result<std::unique_ptr<KafkaServer>> Make(KafkaServerOptions options = {});

  /// "127.0.0.1:port", as clients want it.
  std::string Brokers() const;
  std::string SecureBrokers() const;
  bool running() { return process_->running(); }

  void Stop() { process_->Stop(); }
  void Kill() { process_->Kill(); }
  void Pause() { process_->Pause(); }
  void Continue() { process_->Continue(); }
  /// Again, on the same ports and data, after Stop or Kill.
  Status Start();
  std::string Output() const { return process_->Output(); }

 private:
  explicit KafkaServer(KafkaServerOptions options) : options_(std::move(options)) {}
  void Configure();
  Status Format();
  std::string SecureDoor() const;

  KafkaServerOptions options_;
  Folder folder_;
  uint16_t port_ = 0;
  uint16_t controller_port_ = 0;
  uint16_t secure_port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace tocsin::real
