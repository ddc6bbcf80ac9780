// The body of a job: own id, fingerprint, key, headers and payload as one string of bytes. It is the same in memory and
// in the journal, so that storing, copying forward and recovering a job is a memcpy.
//
//   flags u8 · [own id: bytes · fingerprint u64] · [key: bytes] · [headers: bytes of (name bytes · value bytes)...] ·
//   payload: the rest                                  ("bytes" is a varint length and that many bytes)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/codec.h"
#include "model/job.h"

namespace tocsin::journal {

struct Body {
  std::string_view own_id;
  uint64_t fingerprint = 0;  // only with an own id: other jobs cannot be submitted twice
  std::string_view key;
  std::string_view headers;  // encoded
  std::string_view payload;
};

constexpr uint8_t kBodyOwnId = 1;
constexpr uint8_t kBodyKey = 2;
constexpr uint8_t kBodyHeaders = 4;

/// The size of the body of `job`; EncodeBody writes exactly as much.
size_t BodySize(const NewJob& job);
void EncodeBody(const NewJob& job, char* out);
/// The same body with another payload.
std::string WithPayload(std::string_view body, std::string_view payload);

/// The bytes that count against a topic's capacity: own id, key, headers and payload.
size_t CountedBytes(std::string_view body);
size_t CountedBytes(const NewJob& job);

/// False if the bytes are not a body.
bool DecodeBody(std::string_view bytes, Body& body);
/// Appends the headers in `encoded`. False if it is malformed.
bool DecodeHeaders(std::string_view encoded, std::vector<HeaderView>& headers);

}  // namespace tocsin::journal
