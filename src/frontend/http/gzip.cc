#include "frontend/http/gzip.h"

#include <algorithm>
#include <array>
#include <optional>

#include <zlib.h>

#include "base/result.h"
#include "frontend/http/header_check.h"

namespace tocsin::http {
namespace {

constexpr int kLevel = 1;             // JSON shrinks to a fifth at the lowest cost
constexpr int kGzipWindow = 15 + 16;  // asks zlib for gzip
constexpr int kMemory = 8;

/// Takes the part before the next `separator` from the text, without the blanks around it.
std::string_view Cut(std::string_view& text, char separator) {
  const size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = Trimmed(text.substr(0, at));
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

/// A weight of zero, with any number of digits, means "not this one".
bool IsRefused(std::string_view parameters) {
  while (!parameters.empty()) {
    const std::string_view parameter = Cut(parameters, ';');
    if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) continue;
    return parameter.substr(2).find_first_not_of("0.") == std::string_view::npos;
  }
  return false;
}

}  // namespace

bool AcceptsGzip(std::string_view accept_encoding) {
  std::optional<bool> any;
  while (!accept_encoding.empty()) {
    std::string_view coding = Cut(accept_encoding, ',');
    const std::string_view name = Cut(coding, ';');
    if (SameIgnoringCase(name, "gzip") || SameIgnoringCase(name, "x-gzip")) return !IsRefused(coding);
    if (name == "*") any = !IsRefused(coding);
  }
  return any.value_or(false);
}

struct GzipStream {
  GzipStream() : usable(deflateInit2(&z, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) == Z_OK) {}
  ~GzipStream() { deflateEnd(&z); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  void Give(std::string_view bytes) {
    z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // zlib reads only
    z.avail_in = static_cast<uInt>(bytes.size());
  }
  void Deflate(std::string_view bytes, int flush, std::string& packed) {
    Give(bytes);
    std::array<char, 16 << 10> out;
    do {
      z.next_out = reinterpret_cast<Bytef*>(out.data());
      z.avail_out = out.size();
      TOCSIN_CHECK(deflate(&z, flush) != Z_STREAM_ERROR);
      packed.append(out.data(), out.size() - z.avail_out);
    } while (z.avail_out == 0);
  }

  z_stream z{};
  const bool usable;
};

Gzip::Gzip() = default;
Gzip::~Gzip() = default;

std::string Gzip::Compress(std::string_view bytes) {
  if (stream_ == nullptr) stream_ = std::make_unique<GzipStream>();
  if (!stream_->usable) return {};
  z_stream& z = stream_->z;
  TOCSIN_CHECK(bytes.size() <= kGzipBytesAtOnce && deflateReset(&z) == Z_OK);
  std::string out(bytes.size(), '\0');
  stream_->Give(bytes);
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) return {};  // the result would not be shorter
  out.resize(z.total_out);
  return out;
}

PackStream::PackStream() : stream_(std::make_unique<GzipStream>()) {}
PackStream::~PackStream() = default;

bool PackStream::usable() const { return stream_->usable; }

std::string PackStream::Pack(std::string_view piece, bool last) {
  std::string packed;
  stream_->Deflate(piece, last ? Z_FINISH : Z_SYNC_FLUSH, packed);
  return packed;
}

bool Packing::Step() {
  if (!stream_.usable()) return true;
  const std::string_view slice = std::string_view(body_).substr(done_, kGzipBytesAtOnce);
  done_ += slice.size();
  const bool last = done_ == body_.size();
  packed_ += stream_.Pack(slice, last);
  return last;
}

}  // namespace tocsin::http
