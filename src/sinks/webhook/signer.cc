#include "sinks/webhook/signer.h"

#include <array>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/params.h>

#include "base/result.h"
#include "base/text.h"

namespace tocsin::webhook {
namespace {

constexpr std::string_view kMark = "whsec_";
constexpr size_t kSecretsMax = 8;
constexpr size_t kSignatureBytes = 32;

std::unexpected<Error> Bad(std::string_view why) {
  return FailField(Code::kInvalidArgument, "delivery.secret", "delivery.secret names a secret that {}", why);
}

const unsigned char* Raw(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

/// Gone from memory when it is no longer needed.
struct Erased {
  std::string& bytes;
  ~Erased() { OPENSSL_cleanse(bytes.data(), bytes.size()); }
};

}  // namespace

Result<Signer> Signer::Make(std::string secrets) {
  const Erased erased{secrets};
  constexpr std::string_view kBlanks = " \t\r\n";
  Signer signer;
  std::string_view rest = secrets;
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
    if (rest.empty()) break;
    const size_t end = std::min(rest.find_first_of(kBlanks), rest.size());
    TOCSIN_TRY(signer.Add(rest.substr(0, end)));
    rest.remove_prefix(end);
  }
  if (signer.keys_.empty()) return Bad("is empty");
  return signer;
}

Status Signer::Add(std::string_view secret) {
  if (keys_.size() == kSecretsMax) return Bad(fmt::format("holds more than {} secrets", kSecretsMax));
  std::string decoded;
  const Erased erased{decoded};
  if (secret.starts_with(kMark)) {
    auto bytes = DecodeBase64(secret.substr(kMark.size()));
    if (!bytes || bytes->empty()) return Bad("begins with whsec_ and does not go on in base64");
    decoded = std::move(*bytes);
    secret = decoded;
  }
  EVP_MAC* hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
  Mac mac(EVP_MAC_CTX_new(hmac));
  EVP_MAC_free(hmac);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  if (!mac || EVP_MAC_init(mac.get(), Raw(secret), secret.size(), parameters) != 1) {
    return Fail(Code::kInternal, "OpenSSL has no HMAC with SHA-256");
  }
  keys_.push_back(std::move(mac));
  return {};
}

void Signer::Append(std::string& out, std::string_view head, std::string_view body) const {
  for (const Mac& key : keys_) {
    const Mac mac(EVP_MAC_CTX_dup(key.get()));
    TOCSIN_CHECK(mac != nullptr);
    std::array<unsigned char, kSignatureBytes> signature;
    size_t size = 0;
    const bool done = EVP_MAC_update(mac.get(), Raw(head), head.size()) == 1 &&
                      EVP_MAC_update(mac.get(), Raw(body), body.size()) == 1 &&
                      EVP_MAC_final(mac.get(), signature.data(), &size, signature.size()) == 1;
    TOCSIN_CHECK(done && size == signature.size());
    if (&key != &keys_.front()) out += ' ';
    out += "v1,";
    AppendBase64(out, {reinterpret_cast<const char*>(signature.data()), signature.size()});
  }
}

}  // namespace tocsin::webhook
