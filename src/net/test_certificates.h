// Certificates for tests: an authority, and what it issues, in PEM. With keys of P-256, which take no time to make.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace tocsin::net {

class TestCertificates {
 public:
  struct Issued {
    std::string certificate;
    std::string key;
  };

  TestCertificates() : key_(EVP_EC_gen("P-256")), name_(NameOf("authority")) {
    ca_ = TextOf([&](BIO* out) { return PEM_write_bio_X509(out, Sign("authority", key_.get(), 3600).get()); });
  }

  const std::string& ca() const { return ca_; }

  /// `seconds`: until it expires; negative: it has.
  Issued Issue(const std::string& name, long seconds = 3600) const {
    const Key key(EVP_EC_gen("P-256"));
    return {TextOf([&](BIO* out) { return PEM_write_bio_X509(out, Sign(name, key.get(), seconds).get()); }),
            TextOf([&](BIO* out) {
              return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
            })};
  }

 private:
  struct Freeing {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(X509_NAME* name) const { X509_NAME_free(name); }
    void operator()(BIO* bio) const { BIO_free(bio); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Freeing>;
  using Name = std::unique_ptr<X509_NAME, Freeing>;

  static Name NameOf(const std::string& text) {
    Name name(X509_NAME_new());
    X509_NAME_add_entry_by_txt(name.get(), "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.c_str()),
                               -1, -1, 0);
    return name;
  }

  std::unique_ptr<X509, Freeing> Sign(const std::string& name, EVP_PKEY* key, long seconds) const {
    std::unique_ptr<X509, Freeing> made(X509_new());
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), std::rand() + 1L);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -7200);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds);
    X509_set_subject_name(made.get(), NameOf(name).get());
    X509_set_issuer_name(made.get(), name_.get());
    X509_set_pubkey(made.get(), key);
    const bool authority = key == key_.get();
    X509_EXTENSION* const constraints =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, authority ? "critical,CA:TRUE" : "CA:FALSE");
    X509_add_ext(made.get(), constraints, -1);
    X509_EXTENSION_free(constraints);
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return made;
  }

  template <class Write>
  static std::string TextOf(Write write) {
    const std::unique_ptr<BIO, Freeing> out(BIO_new(BIO_s_mem()));
    if (write(out.get()) != 1) std::abort();
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(out.get(), &bytes);
    return {bytes, static_cast<size_t>(size)};
  }

  const Key key_;
  const Name name_;
  std::string ca_;
};

}  // namespace tocsin::net
