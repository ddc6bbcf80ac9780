// The frames of the probe. Little-endian, fixed sizes: as little as a queue can say.
//
//   request: head (kind, count, due_ms or most), then
//            submit:  count payloads of `size` bytes     answer: head (count)
//            reserve: nothing                            answer: head (count), then count x (token, payload)
//            ack:     count tokens of 8 bytes            answer: head (count)
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tocsin::bench::probe {

enum Kind : uint32_t { kSubmit = 1, kReserve = 2, kAck = 3 };

struct Head {
  uint32_t kind = 0;
  uint32_t count = 0;    // of jobs; of a reserve: at most
  int64_t due_ms = 0;    // of a submit
  uint32_t payload = 0;  // bytes of each
  uint32_t bytes = 0;    // behind this head
};

using TokenNumber = uint64_t;

template <class T>
void AppendRaw(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T>
T ReadRaw(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

}  // namespace tocsin::bench::probe
