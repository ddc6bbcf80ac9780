// The text of an access token, tocsin_<id>_<secret>, and the digest of its secret. The id (8 characters) finds the
// token in its file and may be shown. The secret (32 random bytes) is printed once, when it is made, and not kept:
// files and memory hold only its SHA-256. A plain hash is enough, because nobody can guess 256 random bits.
//
// A file of access tokens may also name clients by the certificate that they show (TLS): the subject of a verified one
// lets its client do what a token would.
//
// The file of access tokens, version 2: text, mode 0600, changed only by `tocsin token` and read by the server.
// Comments begin with #. The first other line is "tocsin-tokens 2"; each further line is a token or a certificate, with
// one tab between its fields:
//
//   id  scopes (submit,consume)  topics (a prefix and *)  created (UTC)  SHA-256 of the secret  name
//   id  scopes                   topics                   created        certificate CN=worker  name
//
// Version 1 has no certificates. A file without any is still written as version 1, which older servers read.
//
// To change the format: raise the number, keep reading 1 and 2, and keep a file of version 2 as a test.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/access.h"
#include "base/time.h"

namespace tocsin::auth {

using Digest = std::array<uint8_t, 32>;

struct TokenParts {
  std::string_view id;
  std::string_view secret;
};

/// A new one, from the system's random bytes.
Result<std::string> MakeToken();
/// Nothing if `token` does not have the form of one. The views refer to `token`.
std::optional<TokenParts> SplitToken(std::string_view token);

Digest DigestOf(std::string_view secret);
/// In constant time.
bool SameDigest(const Digest& a, const Digest& b);
/// 64 hexadecimal digits.
std::string DigestText(const Digest& digest);
std::optional<Digest> ParseDigest(std::string_view text);

struct TokenRecord {
  std::string id;
  Grant grant;
  std::string created;
  Digest digest{};
  std::string certificate = {};  // the subject of a client's certificate (RFC 2253), in place of a secret
};

/// The error names the line. An empty text has no tokens.
Result<std::vector<TokenRecord>> ParseTokens(std::string_view text);
std::string TokensText(const std::vector<TokenRecord>& records);

Result<std::vector<TokenRecord>> ListTokens(const std::string& path);
/// Adds an access token, and creates the file if there is none. Returns its text, which is not kept anywhere.
Result<std::string> CreateToken(const std::string& path, const Grant& grant, Time now);
/// Adds the subject of a certificate in place of a token. Returns its id. kConflict if the file has the subject.
Result<std::string> CreateCertificate(const std::string& path, const Grant& grant, const std::string& subject,
                                      Time now);
/// kNotFound if the file has no such id.
Status RevokeToken(const std::string& path, const std::string& id);

}  // namespace tocsin::auth
