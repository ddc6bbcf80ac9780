// Signer: signs requests as Standard Webhooks says: v1,<base64 of HMAC-SHA256 over id.timestamp.body>. One for a sink,
// on its thread. Only OpenSSL's objects hold the keys.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/evp.h>

#include "base/result.h"

namespace tocsin::webhook {

class Signer {
 public:
  /// `secrets` is what is stored under a secret's name: one secret, or several with blanks between them. Each of them
  /// signs, so that receivers can change from one to the next. whsec_<base64> stands for the bytes that it encodes; any
  /// other text is the key itself. Errors name delivery.secret, and never hold any part of a secret.
  static Result<Signer> Make(std::string secrets);

  /// "v1,<base64>", once for each secret, with a blank between two. `head` is "id.timestamp.".
  void Append(std::string& out, std::string_view head, std::string_view body) const;

 private:
  struct Free {
    void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
  };
  using Mac = std::unique_ptr<EVP_MAC_CTX, Free>;

  Status Add(std::string_view secret);

  std::vector<Mac> keys_;  // each ready for the first byte
};

}  // namespace tocsin::webhook
