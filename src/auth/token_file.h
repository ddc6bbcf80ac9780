// The file of access tokens, version 1: text, mode 0600, changed only by `tocsin token` and read by the server.
// Comments begin with #. The first other line is "tocsin-tokens 1"; each further line is a token, with one tab between
// its fields:
//
//   id  scopes (submit,consume)  topics (a prefix and *)  created (UTC)  SHA-256 of the secret  name
//
// To change the format: raise the number, keep reading 1, and keep a file of version 1 as a test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/grant.h"
#include "auth/token.h"
#include "base/time.h"

namespace tocsin::auth {

struct TokenRecord {
  std::string id;
  Grant grant;
  std::string created;
  Digest digest{};
};

/// The error names the line. An empty text has no tokens.
Result<std::vector<TokenRecord>> ParseTokens(std::string_view text);
std::string TokensText(const std::vector<TokenRecord>& records);

Result<std::vector<TokenRecord>> ListTokens(const std::string& path);
/// Adds an access token, and creates the file if there is none. Returns its text, which is not kept anywhere.
Result<std::string> CreateToken(const std::string& path, const Grant& grant, Time now);
/// kNotFound if the file has no such id.
Status RevokeToken(const std::string& path, const std::string& id);

}  // namespace tocsin::auth
