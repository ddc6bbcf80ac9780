// Checksums and hashes. Crc32c protects stored records. Crc32 (IEEE, as in zlib) maps keys to slots, in the same way in
// every store and client. Hash64 is stored as a fingerprint of a job's content, and places topics. All three are part
// of stored formats, so their values never change (hash_test.cc pins them).
//
// TableHash is for tables in memory whose keys come from clients, and is never stored. It has a random key in every
// process: a client that knows this code still cannot choose keys that collide, which would make a table slow.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tocsin {

uint32_t Crc32c(std::string_view bytes, uint32_t seed = 0);
uint32_t Crc32(std::string_view bytes);
uint64_t Hash64(std::string_view bytes, uint64_t seed = 0);

/// A full-width mix of two words: the finisher of Hash64.
inline uint64_t Mix64(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15ULL) * (b ^ 0xD6E8FEB86659FD93ULL);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// SipHash-1-3 of `seed` and `bytes`.
uint64_t TableHash(std::string_view bytes, uint64_t seed = 0);

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return TableHash(text); }
};
struct WordHash {
  size_t operator()(uint64_t word) const { return TableHash({}, word); }
};
/// A hash map by text that is searched with a view, without making a string.
template <class T>
using TextMap = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace tocsin
