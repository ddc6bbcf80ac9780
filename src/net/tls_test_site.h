// What tests of the server's TLS share: an authority, and servers with a certificate of it.
#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "net/server_tls.h"
#include "net/test_certificates.h"

namespace tocsin::net {

inline const TestCertificates& Certificates() {
  static const TestCertificates certificates;
  return certificates;
}

inline ServerTls::Options OptionsOf(const TestCertificates::Issued& issued) {
  return {.certificate = {"tls.certificate", "c.pem", issued.certificate}, .key = {"tls.key", "k.pem", issued.key}};
}

inline Time Now() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

inline std::shared_ptr<const ServerTls> MakeTls(const ServerTls::Options& options) {
  auto made = ServerTls::Make(options, Now());
  EXPECT_TRUE(made) << made.error().message;
  return *made;
}

}  // namespace tocsin::net
