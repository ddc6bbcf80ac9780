#include "auth/token.h"

#include <algorithm>
#include <span>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

namespace tocsin::auth {
namespace {

constexpr std::string_view kMark = "tocsin_";
constexpr std::string_view kBase32 = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view kHex = "0123456789abcdef";
constexpr size_t kIdBytes = 5;
constexpr size_t kSecretBytes = 32;
constexpr size_t kSecretSize = (kSecretBytes * 8 + 4) / 5;
static_assert(kIdBytes * 8 / 5 == kTokenIdSize);

void AppendBase32(std::string& out, std::span<const uint8_t> bytes) {
  uint32_t pending = 0;
  int bits = 0;
  for (const uint8_t byte : bytes) {
    pending = pending << 8 | byte;
    for (bits += 8; bits >= 5; bits -= 5) out += kBase32[pending >> (bits - 5) & 31];
  }
  if (bits > 0) out += kBase32[pending << (5 - bits) & 31];
}

bool IsBase32(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return kBase32.contains(c); });
}

}  // namespace

Result<std::string> MakeToken() {
  std::array<uint8_t, kIdBytes> id{};
  std::array<uint8_t, kSecretBytes> secret{};
  if (RAND_bytes(id.data(), id.size()) != 1 || RAND_priv_bytes(secret.data(), secret.size()) != 1) {
    return Fail(Code::kIo, "the system gives no random bytes");
  }
  std::string token(kMark);
  AppendBase32(token, id);
  token += '_';
  AppendBase32(token, secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return token;
}

bool IsTokenId(std::string_view text) { return text.size() == kTokenIdSize && IsBase32(text); }

std::optional<TokenParts> SplitToken(std::string_view token) {
  if (token.size() != kMark.size() + kTokenIdSize + 1 + kSecretSize || !token.starts_with(kMark)) return std::nullopt;
  token.remove_prefix(kMark.size());
  const TokenParts parts{.id = token.substr(0, kTokenIdSize), .secret = token.substr(kTokenIdSize + 1)};
  if (token[kTokenIdSize] != '_' || !IsTokenId(parts.id) || !IsBase32(parts.secret)) return std::nullopt;
  return parts;
}

Digest DigestOf(std::string_view secret) {
  Digest digest{};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return digest;
}

bool SameDigest(const Digest& a, const Digest& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string DigestText(const Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::optional<Digest> ParseDigest(std::string_view text) {
  Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t nibble = kHex.find(text[i]);
    if (nibble == std::string_view::npos) return std::nullopt;
    digest[i / 2] = static_cast<uint8_t>(digest[i / 2] << 4 | nibble);
  }
  return digest;
}

}  // namespace tocsin::auth
