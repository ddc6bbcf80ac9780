// The text of an access token, tocsin_<id>_<secret>, and the digest of its secret. The id (8 characters) finds the
// token in its file and may be shown. The secret (32 random bytes) is printed once, when it is made, and not kept:
// files and memory hold only its SHA-256. A plain hash is enough, because nobody can guess 256 random bits.
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

/// A new one, from the system's random bytes.
Result<std::string> MakeToken();
/// Nothing if `token` does not have the form of one. The views refer to `token`.
std::optional<TokenParts> SplitToken(std::string_view token);
bool IsTokenId(std::string_view text);

Digest DigestOf(std::string_view secret);
/// In constant time.
bool SameDigest(const Digest& a, const Digest& b);
/// 64 hexadecimal digits.
std::string DigestText(const Digest& digest);
std::optional<Digest> ParseDigest(std::string_view text);

}  // namespace tocsin::auth
