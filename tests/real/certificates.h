// Certificates for tests of TLS, made by the openssl command for each test: an authority, a server's (for 127.0.0.1 and
// localhost), a client's, and an authority that signed neither.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tocsin::real {

struct Certificates {
  std::string ca_file;
  std::string server_cert_file;
  std::string server_key_file;
  std::string client_cert_file;
  std::string client_key_file;
  std::string wrong_ca_file;  // a client that trusts only this one must refuse the server
};

Result<Certificates> MakeCertificates(const std::filesystem::path& folder);

}  // namespace tocsin::real
