#include "base/hash.h"

#include <array>
#include <cstring>

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

}  // namespace tocsin
