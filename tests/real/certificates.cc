#include "real/certificates.h"

#include "real/process.h"

namespace tocsin::real {

namespace {

// The system's configuration would make every certificate one of an authority.
constexpr std::string_view kConfiguration =
    "[req]\n"
    "distinguished_name = name\n"
    "[name]\n"
    "[authority]\n"
    "basicConstraints = critical, CA:TRUE\n"
    "keyUsage = critical, keyCertSign\n"
    "[server]\n"
    "basicConstraints = CA:FALSE\n"
    "extendedKeyUsage = serverAuth\n"
    "subjectAltName = IP:127.0.0.1, DNS:localhost\n"
    "[client]\n"
    "basicConstraints = CA:FALSE\n"
    "extendedKeyUsage = clientAuth\n";

class Maker {
 public:
  Maker(std::string openssl, std::filesystem::path folder) : openssl_(std::move(openssl)), folder_(std::move(folder)) {
    WriteFile(folder_ / "openssl.cnf", kConfiguration);
  }

  std::string Cert(std::string_view name) const { return (folder_ / name).string() + ".crt"; }
  std::string Key(std::string_view name) const { return (folder_ / name).string() + ".key"; }

  /// A key and a certificate of `kind` (a section above), signed by `issuer`; by itself if that is empty.
  Status Make(const std::string& name, const std::string& kind, const std::string& issuer = {}) const {
    std::vector<std::string> words = {openssl_,
                                      "req",
                                      "-x509",
                                      "-config",
                                      (folder_ / "openssl.cnf").string(),
                                      "-newkey",
                                      "ec",
                                      "-pkeyopt",
                                      "ec_paramgen_curve:P-256",
                                      "-nodes",
                                      "-keyout",
                                      Key(name),
                                      "-out",
                                      Cert(name),
                                      "-days",
                                      "2",
                                      "-subj",
                                      "/CN=tocsin test " + name,
                                      "-extensions",
                                      kind};
    if (!issuer.empty()) words.insert(words.end(), {"-CA", Cert(issuer), "-CAkey", Key(issuer)});
    return Process(std::move(words), folder_, folder_ / "openssl.log").Run();
  }

 private:
  std::string openssl_;
  std::filesystem::path folder_;
};

}  // namespace

Result<Certificates> MakeCertificates(const std::filesystem::path& folder) {
  const std::string openssl = FindProgram("openssl");
  if (openssl.empty()) return Fail(Code::kIo, "the program openssl is not installed");
  const Maker maker(openssl, folder);
  TOCSIN_TRY(maker.Make("ca", "authority"));
  TOCSIN_TRY(maker.Make("wrong-ca", "authority"));
  TOCSIN_TRY(maker.Make("server", "server", "ca"));
  TOCSIN_TRY(maker.Make("client", "client", "ca"));
  return Certificates{.ca_file = maker.Cert("ca"),
                      .server_cert_file = maker.Cert("server"),
                      .server_key_file = maker.Key("server"),
                      .client_cert_file = maker.Cert("client"),
                      .client_key_file = maker.Key("client"),
                      .wrong_ca_file = maker.Cert("wrong-ca")};
}

}  // namespace tocsin::real
