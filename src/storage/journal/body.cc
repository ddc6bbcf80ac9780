// flags u8 · [created: ms i64] · [own id: bytes · fingerprint u64] · [key: bytes] ·
// [headers: bytes of (name bytes · value bytes)...] · payload: the rest
// ("bytes" is a varint length and that many bytes)
#include "storage/journal/body.h"

#include <cstring>

namespace tocsin::journal {
namespace {

constexpr uint8_t kOwnId = 1;
constexpr uint8_t kKey = 2;
constexpr uint8_t kHeaders = 4;
constexpr uint8_t kCreated = 8;  // a copy brought along when the job was created
constexpr uint8_t kFlags = kOwnId | kKey | kHeaders | kCreated;

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

bool HasCreated(const NewJob& job) { return job.restored && job.restored->created != Time{}; }

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

BodyId ReadId(uint8_t flags, Reader& reader) {
  BodyId id;
  if (flags & kCreated) reader.Fixed<int64_t>();
  if (flags & kOwnId) {
    id.own_id = reader.Bytes();
    id.fingerprint = reader.Fixed<uint64_t>();
  }
  if (flags & kKey) id.key = reader.Bytes();
  return id;
}

bool ReadHeaders(std::string_view encoded, std::vector<HeaderView>& headers) {
  Reader reader(encoded);
  while (reader.ok() && !reader.done()) {
    const std::string_view name = reader.Bytes();
    headers.push_back({name, reader.Bytes()});
  }
  return reader.ok();
}

}  // namespace

size_t BodySize(const NewJob& job) {
  size_t size = 1 + job.payload.size();
  if (HasCreated(job)) size += sizeof(int64_t);
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
  at.Byte(static_cast<uint8_t>((job.id.empty() ? 0 : kOwnId) | (job.key.empty() ? 0 : kKey) |
                               (job.headers.empty() ? 0 : kHeaders) | (HasCreated(job) ? kCreated : 0)));
  if (HasCreated(job)) at.Word(static_cast<uint64_t>(ToMs(job.restored->created)));
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
  JobView old;
  DecodeBody(bytes, old);
  std::string changed(bytes.substr(0, bytes.size() - old.payload.size()));
  changed += payload;
  return changed;
}

size_t CountedBytes(std::string_view bytes) {
  if (bytes[0] == 0) return bytes.size() - 1;
  JobView view;
  DecodeBody(bytes, view);
  return CountedBytes(view);
}

bool DecodeBody(std::string_view bytes, JobView& view) {
  Reader reader(bytes);
  const auto flags = reader.Fixed<uint8_t>();
  const BodyId id = ReadId(flags, reader);
  view.own_id = id.own_id;
  view.key = id.key;
  if (flags & kHeaders && !ReadHeaders(reader.Bytes(), view.headers)) return false;
  if (!reader.ok() || flags > kFlags) return false;
  view.payload = reader.Take(reader.left());
  return true;
}

void DecodeTexts(std::string_view bytes, JobView& view) {
  Reader reader(bytes);
  const auto flags = reader.Fixed<uint8_t>();
  const BodyId id = ReadId(flags, reader);
  view.own_id = id.own_id;
  view.key = id.key;
  if (flags & kHeaders) reader.Bytes();
  view.payload = reader.Take(reader.left());
}

Time CreatedIn(std::string_view bytes) {
  Reader reader(bytes);
  return reader.Fixed<uint8_t>() & kCreated ? FromMs(reader.Fixed<int64_t>()) : Time{};
}

BodyId DecodeId(std::string_view bytes) {
  Reader reader(bytes);
  return ReadId(reader.Fixed<uint8_t>(), reader);
}

}  // namespace tocsin::journal
