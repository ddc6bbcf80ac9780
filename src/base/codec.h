// Little-endian integers and varints in byte strings, for every stored format. A Reader never reads past its end:
// instead, it returns zero and ok() becomes false.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tocsin {

static_assert(std::endian::native == std::endian::little, "stored formats are little-endian and copied as they are");

template <class T>
inline void PutFixed(std::string& out, T value) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  out.append(raw, sizeof(T));
}

inline void PutVarint(std::string& out, uint64_t value) {
  char raw[10];
  size_t n = 0;
  while (value >= 0x80) {
    raw[n++] = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  raw[n++] = static_cast<char>(value);
  out.append(raw, n);
}

/// Small magnitudes of either sign become small numbers.
inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1); }

inline void PutBytes(std::string& out, std::string_view bytes) {
  PutVarint(out, bytes.size());
  out.append(bytes);
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  bool done() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const char* at() const { return at_; }

  template <class T>
  T Fixed() {
    T value{};
    if (left() < sizeof(T)) return Broken<T>();
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) return Broken<uint64_t>();
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte >= 0x80) continue;
      if (shift == 63 && byte > 1) break;  // more than 64 bits
      return value;
    }
    return Broken<uint64_t>();
  }

  std::string_view Bytes() { return Take(Varint()); }

  std::string_view Take(uint64_t size) {
    if (!ok_ || left() < size) return Broken<std::string_view>();
    const std::string_view bytes(at_, size);
    at_ += size;
    return bytes;
  }

 private:
  template <class T>
  T Broken() {
    ok_ = false;
    at_ = end_;
    return T{};
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace tocsin
