#include "base/hash.h"

#include <array>
#include <bit>
#include <cstring>
#include <random>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace tocsin {
namespace {

constexpr std::array<uint32_t, 256> CrcTable(uint32_t polynomial) {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? polynomial : 0);
    table[i] = value;
  }
  return table;
}

constexpr auto kIeee = CrcTable(0xEDB88320);

uint32_t CrcBytes(const std::array<uint32_t, 256>& table, std::string_view bytes, uint32_t crc) {
  for (const char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xFF] ^ (crc >> 8);
  return crc;
}

uint64_t Load(const char* at, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, at, size);
  return word;
}

struct SipHash {
  explicit SipHash(const std::array<uint64_t, 2>& key)
      : a(key[0] ^ 0x736F6D6570736575ULL),
        b(key[1] ^ 0x646F72616E646F6DULL),
        c(key[0] ^ 0x6C7967656E657261ULL),
        d(key[1] ^ 0x7465646279746573ULL) {}

  void Round() {
    a += b;
    b = std::rotl(b, 13) ^ a;
    a = std::rotl(a, 32);
    c += d;
    d = std::rotl(d, 16) ^ c;
    a += d;
    d = std::rotl(d, 21) ^ a;
    c += b;
    b = std::rotl(b, 17) ^ c;
    c = std::rotl(c, 32);
  }
  void Add(uint64_t word) {
    d ^= word;
    Round();
    a ^= word;
  }
  uint64_t End() {
    c ^= 0xFF;
    for (int i = 0; i < 3; ++i) Round();
    return a ^ b ^ c ^ d;
  }

  uint64_t a, b, c, d;
};

std::array<uint64_t, 2> RandomKey() {
  std::random_device random;
  std::array<uint64_t, 2> key{};
  for (uint64_t& word : key) word = uint64_t{random()} << 32 | random();
  return key;
}

}  // namespace

uint32_t Crc32(std::string_view bytes) { return ~CrcBytes(kIeee, bytes, ~0U); }

uint32_t Crc32c(std::string_view bytes, uint32_t seed) {
  const uint32_t start = ~seed;
#if defined(__SSE4_2__)
  const char* at = bytes.data();
  size_t left = bytes.size();
  uint64_t crc = start;
  for (; left >= 8; at += 8, left -= 8) crc = _mm_crc32_u64(crc, Load(at, 8));
  auto crc32 = static_cast<uint32_t>(crc);
  for (; left > 0; ++at, --left) crc32 = _mm_crc32_u8(crc32, static_cast<uint8_t>(*at));
  return ~crc32;
#else
  static constexpr auto kCastagnoli = CrcTable(0x82F63B78);
  return ~CrcBytes(kCastagnoli, bytes, start);
#endif
}

uint64_t Hash64(std::string_view bytes, uint64_t seed) {
  uint64_t hash = Mix64(seed, bytes.size());
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 16; at += 16, left -= 16) hash = Mix64(Load(at, 8) ^ hash, Load(at + 8, 8));
  if (left > 8) return Mix64(Load(at, 8) ^ hash, Load(at + 8, left - 8));
  if (left > 0) hash ^= Load(at, left);
  return Mix64(hash, left);
}

uint64_t TableHash(std::string_view bytes, uint64_t seed) {
  static const std::array<uint64_t, 2> key = RandomKey();
  SipHash hash(key);
  hash.Add(seed);
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) hash.Add(Load(at, 8));
  hash.Add(uint64_t{bytes.size()} << 56 | (left == 0 ? 0 : Load(at, left)));
  return hash.End();
}

}  // namespace tocsin
