// A real RabbitMQ for tests: one node of Debian's package with nothing shared with others: its own name service (epmd),
// cookie, data and configuration in a temporary folder, on free ports of 127.0.0.1. The package's service is not used.
//
//   if (const std::string why = real::WhyNoRabbitMq(); !why.empty()) GTEST_SKIP() << why;
//   auto server = real::RabbitMqServer::Make();
//   ASSERT_TRUE(server) << server.error().message;
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "real/certificates.h"
#include "real/process.h"

namespace tocsin::real {

/// Empty if RabbitMQ can be run; otherwise the reason for GTEST_SKIP.
std::string WhyNoRabbitMq();

class RabbitMqServer {
 public:
  static constexpr const char* kUsername = "tocsin";
  static constexpr const char* kPassword = "wire-9f2e-horse";

  static Result<std::unique_ptr<RabbitMqServer>> Make();

  uint16_t port() const { return port_; }
  /// Of a second door with TLS, for which certificates() are made.
  uint16_t tls_port() const { return tls_port_; }
  const Certificates& certificates() const { return certificates_; }
  bool running() { return process_->running(); }

  void Stop() { process_->Stop(); }
  void Kill() { process_->Kill(); }
  void Pause() { process_->Pause(); }
  void Continue() { process_->Continue(); }
  /// Again, on the same ports and data, after Stop or Kill.
  Status Start();

  /// rabbitmqctl with these words; takes some seconds.
  Status Control(const std::vector<std::string>& words);
  /// All that it has logged, over all its runs.
  std::string Log() const;

 private:
  RabbitMqServer() = default;
  Status StartNames();
  void Configure();
  /// The program, with the environment that makes it this node's.
  std::vector<std::string> Command(const char* program) const;

  Folder folder_;
  Certificates certificates_;
  uint16_t names_port_ = 0;
  uint16_t port_ = 0;
  uint16_t tls_port_ = 0;
  uint16_t distribution_port_ = 0;
  std::unique_ptr<Process> names_;
  std::unique_ptr<Process> process_;
};

}  // namespace tocsin::real
