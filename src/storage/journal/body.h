// The body of a job: the texts that a submit brought, as one string of bytes. It is the same in memory and in the
// journal, so that storing, copying forward and recovering a job is a memcpy. body.cc has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/codec.h"
#include "model/job.h"

namespace tocsin::journal {

/// The size of the body of `job`; EncodeBody writes exactly as much.
size_t BodySize(const NewJob& job);
void EncodeBody(const NewJob& job, char* out);
/// The same body with another payload.
std::string WithPayload(std::string_view body, std::string_view payload);

/// CountedBytes of the job that has the body.
size_t CountedBytes(std::string_view body);

/// Fills the view's texts, which point into `bytes`. False if the bytes are not a body.
bool DecodeBody(std::string_view bytes, JobView& view);

/// The same without the headers, of a body that DecodeBody has accepted.
void DecodeTexts(std::string_view bytes, JobView& view);

/// When the job was created, in UTC, if a copy brought that along; otherwise Time{}: its uid tells. Of a body that
/// DecodeBody has accepted.
Time CreatedIn(std::string_view bytes);

/// How own ids are looked up and compared.
struct BodyId {
  std::string_view own_id;
  uint64_t fingerprint = 0;  // only with an own id: other jobs cannot be submitted twice
  std::string_view key;
};
/// Of a body that DecodeBody has accepted.
BodyId DecodeId(std::string_view bytes);

}  // namespace tocsin::journal
