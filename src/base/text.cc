#include "base/text.h"

#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace tocsin {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kHex = "0123456789ABCDEF";
constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> kBase64Digits = [] {
  std::array<uint8_t, 256> digits;
  digits.fill(kNoDigit);
  for (size_t i = 0; i < kBase64.size(); ++i) digits[static_cast<uint8_t>(kBase64[i])] = static_cast<uint8_t>(i);
  return digits;
}();

/// Bytes of the sequence that begins at `p`, 0 if it is malformed. Only for a first byte that is not ASCII.
size_t SequenceLength(const uint8_t* p, size_t left) {
  const auto follows = [&](size_t i) { return (p[i] & 0xC0) == 0x80; };
  if (p[0] >= 0xC2 && p[0] <= 0xDF) return left >= 2 && follows(1) ? 2 : 0;
  if (p[0] >= 0xE0 && p[0] <= 0xEF) {
    if (left < 3 || !follows(1) || !follows(2)) return 0;
    const bool overlong = p[0] == 0xE0 && p[1] < 0xA0;
    const bool surrogate = p[0] == 0xED && p[1] > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (p[0] >= 0xF0 && p[0] <= 0xF4) {
    if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return 0;
    const bool overlong = p[0] == 0xF0 && p[1] < 0x90;
    const bool past_end = p[0] == 0xF4 && p[1] > 0x8F;
    return overlong || past_end ? 0 : 4;
  }
  return 0;
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = p + bytes.size();
  while (p < end) {
    // Most payloads are ASCII: eight bytes at a step.
    if (end - p >= 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      if ((word & 0x8080808080808080ULL) == 0) {
        p += 8;
        continue;
      }
    }
    if (*p < 0x80) {
      ++p;
      continue;
    }
    const size_t length = SequenceLength(p, static_cast<size_t>(end - p));
    if (length == 0) return false;
    p += length;
  }
  return true;
}

void AppendBase64(std::string& out, std::string_view bytes) {
  const size_t begin = out.size();
  out.resize(begin + (bytes.size() + 2) / 3 * 4, '=');
  char* to = out.data() + begin;
  const auto* from = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 3; left -= 3, from += 3) {
    const uint32_t group = uint32_t{from[0]} << 16 | uint32_t{from[1]} << 8 | from[2];
    *to++ = kBase64[group >> 18];
    *to++ = kBase64[group >> 12 & 63];
    *to++ = kBase64[group >> 6 & 63];
    *to++ = kBase64[group & 63];
  }
  if (left == 0) return;
  const uint32_t group = uint32_t{from[0]} << 16 | (left == 2 ? uint32_t{from[1]} << 8 : 0U);
  *to++ = kBase64[group >> 18];
  *to++ = kBase64[group >> 12 & 63];
  if (left == 2) *to = kBase64[group >> 6 & 63];
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes(text.size() / 4 * 3, '\0');
  char* to = bytes.data();
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t group = 0;
    const size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t digit = i < digits ? kBase64Digits[static_cast<uint8_t>(text[at + i])] : uint8_t{0};
      if (digit == kNoDigit) return std::nullopt;
      group = group << 6 | digit;
    }
    // Bits that fall outside the last byte are zero, so that bytes have one spelling.
    if ((digits == 3 && (group & 0xFF) != 0) || (digits == 2 && (group & 0xFFFF) != 0)) return std::nullopt;
    *to++ = static_cast<char>(group >> 16);
    *to++ = static_cast<char>(group >> 8);
    *to++ = static_cast<char>(group);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

void AppendPercent(std::string& out, std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
  for (const char c : text) {
    if (kPlain.contains(c)) {
      out += c;
    } else {
      out += {'%', kHex[static_cast<uint8_t>(c) >> 4], kHex[static_cast<uint8_t>(c) & 15]};
    }
  }
}

std::optional<std::string> DecodePercent(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const size_t high = kHex.find(Capital(text[++i]));
      const size_t low = kHex.find(Capital(text[++i]));
      if (high > 15 || low > 15) return std::nullopt;
      out += static_cast<char>(high << 4 | low);
    }
  }
  return out;
}

std::string Shown(std::string_view name) {
  constexpr size_t kShownBytes = 64;
  std::string_view cut = name.substr(0, kShownBytes);
  // Drop the character that the cut broke, which is at most three bytes.
  for (size_t i = 0; i < 3 && cut.size() < name.size() && !IsUtf8(cut); ++i) cut.remove_suffix(1);
  std::string shown;
  if (IsUtf8(cut)) {
    shown = cut;
  } else {
    for (const char c : name.substr(0, kShownBytes)) {
      const auto byte = static_cast<unsigned char>(c);
      shown += byte < 0x80 ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
  }
  return name.size() > kShownBytes ? shown + "..." : shown;
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);  // distances of the prefix of `a` so far to every prefix of `b`
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace tocsin
