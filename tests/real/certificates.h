// Certificates for tests of TLS, made anew by the openssl command: an authority, a server's (127.0.0.1 and localhost),
// a client's, and an authority that has signed neither.
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
  std::string wrong_ca_file;  // a client that trusts this one alone must refuse the server
};

Result<Certificates> MakeCertificates(const std::filesystem::path& folder);

}  // namespace tocsin::real
