// Compresses answers. Gzip compresses small ones in one step. Each shard has one, for its thread alone: its state takes
// a quarter of a MiB, and making one for each answer would cost more than the compression. PackStream compresses an
// answer piece by piece, while it is made and sent. Packing does so with a large one that is there already, in steps of
// less than a millisecond, so that jobs of the shard are not late.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::http {

constexpr size_t kGzipBytesMin = 1 << 10;      // below, gzip's header costs more than it saves
constexpr size_t kGzipBytesAtOnce = 64 << 10;  // above, Packing
constexpr size_t kPackingBytes = 272 << 10;    // memory of a PackStream

/// Whether a client with this Accept-Encoding (RFC 9110, 12.5.3) accepts gzip.
bool AcceptsGzip(std::string_view accept_encoding);

struct GzipStream;

class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  /// Empty if the result would not be shorter.
  std::string Compress(std::string_view bytes);

 private:
  std::unique_ptr<GzipStream> stream_;  // made at the first use
};

class PackStream {
 public:
  PackStream();
  ~PackStream();
  PackStream(const PackStream&) = delete;
  PackStream& operator=(const PackStream&) = delete;

  /// False if there is no memory: Pack must not be called.
  bool usable() const;
  /// What to send for this piece; all of it can be unpacked when it arrives.
  std::string Pack(std::string_view piece, bool last);

 private:
  const std::unique_ptr<GzipStream> stream_;
};

class Packing {
 public:
  explicit Packing(std::string body) : body_(std::move(body)) {}

  /// True when there is nothing left to do.
  bool Step();
  /// False if the result is not shorter than the body.
  bool Pays() const { return stream_.usable() && packed_.size() < body_.size(); }
  /// Memory that it takes.
  size_t bytes() const { return body_.size() + packed_.size() + kPackingBytes; }
  std::string TakePacked() { return std::move(packed_); }
  std::string TakeBody() { return std::move(body_); }

 private:
  std::string body_;
  size_t done_ = 0;
  std::string packed_;
  PackStream stream_;
};

}  // namespace tocsin::http
