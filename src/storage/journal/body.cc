#include "storage/journal/body.h"

#include <cstring>

namespace tocsin::journal {
namespace {

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

size_t BytesSize(std::string_view bytes) { return VarintSize(bytes.size()) + bytes.size(); }

size_t HeadersSize(const NewJob& job) {
  size_t size = 0;
  for (const HeaderView& header : job.headers) size += BytesSize(header.name) + BytesSize(header.value);
  return size;
}

class Out {
 public:
  explicit Out(char* at) : at_(at) {}
  void Byte(uint8_t value) { *at_++ = static_cast<char>(value); }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<uint8_t>(value | 0x80));
    Byte(static_cast<uint8_t>(value));
  }
  void Raw(std::string_view bytes) {
    if (bytes.empty()) return;
    std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  void Bytes(std::string_view bytes) {
    Varint(bytes.size());
    Raw(bytes);
  }
  void Word(uint64_t value) {
    std::memcpy(at_, &value, sizeof(value));
    at_ += sizeof(value);
  }

 private:
  char* at_;
};

}  // namespace

size_t BodySize(const NewJob& job) {
  size_t size = 1 + job.payload.size();
  if (!job.id.empty()) size += BytesSize(job.id) + sizeof(uint64_t);
  if (!job.key.empty()) size += BytesSize(job.key);
  if (!job.headers.empty()) {
    const size_t headers = HeadersSize(job);
    size += VarintSize(headers) + headers;
  }
  return size;
}

void EncodeBody(const NewJob& job, char* out) {
  Out at(out);
  at.Byte(static_cast<uint8_t>((job.id.empty() ? 0 : kBodyOwnId) | (job.key.empty() ? 0 : kBodyKey) |
                               (job.headers.empty() ? 0 : kBodyHeaders)));
  if (!job.id.empty()) {
    at.Bytes(job.id);
    at.Word(Fingerprint(job));
  }
  if (!job.key.empty()) at.Bytes(job.key);
  if (!job.headers.empty()) {
    at.Varint(HeadersSize(job));
    for (const HeaderView& header : job.headers) {
      at.Bytes(header.name);
      at.Bytes(header.value);
    }
  }
  at.Raw(job.payload);
}

std::string WithPayload(std::string_view bytes, std::string_view payload) {
  Body body;
  DecodeBody(bytes, body);
  std::string changed(bytes.substr(0, bytes.size() - body.payload.size()));
  changed += payload;
  return changed;
}

size_t CountedBytes(std::string_view bytes) {
  if (bytes[0] == 0) return bytes.size() - 1;
  Body body;
  std::vector<HeaderView> headers;
  DecodeBody(bytes, body);
  DecodeHeaders(body.headers, headers);
  size_t size = body.own_id.size() + body.key.size() + body.payload.size();
  for (const HeaderView& header : headers) size += header.name.size() + header.value.size();
  return size;
}

size_t CountedBytes(const NewJob& job) {
  size_t size = job.id.size() + job.key.size() + job.payload.size();
  for (const HeaderView& header : job.headers) size += header.name.size() + header.value.size();
  return size;
}

bool DecodeBody(std::string_view bytes, Body& body) {
  Reader reader(bytes);
  const auto flags = reader.Fixed<uint8_t>();
  if (flags & kBodyOwnId) {
    body.own_id = reader.Bytes();
    body.fingerprint = reader.Fixed<uint64_t>();
  }
  if (flags & kBodyKey) body.key = reader.Bytes();
  if (flags & kBodyHeaders) body.headers = reader.Bytes();
  if (!reader.ok() || flags > (kBodyOwnId | kBodyKey | kBodyHeaders)) return false;
  body.payload = reader.Take(reader.left());
  return true;
}

bool DecodeHeaders(std::string_view encoded, std::vector<HeaderView>& headers) {
  Reader reader(encoded);
  while (reader.ok() && !reader.done()) {
    const std::string_view name = reader.Bytes();
    const std::string_view value = reader.Bytes();
    if (reader.ok()) headers.push_back({name, value});
  }
  return reader.ok();
}

}  // namespace tocsin::journal
