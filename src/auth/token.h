// The text of a token, tocsin_<id>_<secret>, and the digest of its secret. The id (8 characters) finds the token in its
// file and may be shown; the secret (32 random bytes) is printed once, when it is made, and kept nowhere: files and
// memory hold its SHA-256 alone. A plain hash is enough, because nobody can guess 256 random bits.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::auth {

constexpr size_t kTokenIdSize = 8;

using Digest = std::array<uint8_t, 32>;

struct TokenParts {
  std::string_view id;
  std::string_view secret;
};

/// A new one, from the system's randomness.
Result<std::string> MakeToken();
/// Nothing where `token` does not have the form of one. The views are of `token`.
std::optional<TokenParts> SplitToken(std::string_view token);
bool IsTokenId(std::string_view text);

Digest DigestOf(std::string_view secret);
/// Takes the same time wherever the two differ.
bool SameDigest(const Digest& a, const Digest& b);
/// 64 hexadecimal digits.
std::string DigestText(const Digest& digest);
std::optional<Digest> ParseDigest(std::string_view text);

}  // namespace tocsin::auth
