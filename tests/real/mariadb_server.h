// A real MariaDB for tests: Debian's mariadbd on a free port of 127.0.0.1 and 127.0.0.2, with its data in a temporary
// folder. The package's service is not used. It speaks TLS, too, on the same port, with a certificate for 127.0.0.1.
//
//   if (const std::string why = real::WhyNoMariaDb(); !why.empty()) GTEST_SKIP() << why;
//   auto server = real::MariaDbServer::Make();
//   ASSERT_TRUE(server) << server.error().message;
#pragma once

#include <memory>
#include <string>

#include "real/certificates.h"
#include "real/process.h"

namespace tocsin::real {

/// Empty if MariaDB can be run; otherwise the reason for GTEST_SKIP.
std::string WhyNoMariaDb();

class MariaDbServer {
 public:
  static constexpr const char* kDatabase = "shop";
  static constexpr const char* kUsername = "tocsin";  // may do everything
  static constexpr const char* kPassword = "wire-9f2e-horse";

  static Result<std::unique_ptr<MariaDbServer>> Make();

  uint16_t port() const { return port_; }
  const Certificates& certificates() const { return certificates_; }
  bool running() { return process_->running(); }

  void Stop() { process_->Stop(); }
  void Kill() { process_->Kill(); }
  void Pause() { process_->Pause(); }
  void Continue() { process_->Continue(); }
  /// Again, on the same port and data, after Stop or Kill.
  Status Start();

 private:
  MariaDbServer() = default;
  Status Install();
  void Configure();

  Folder folder_;
  Certificates certificates_;
  uint16_t port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace tocsin::real
