// Compresses answers. Gzip does the small ones, at once: one for each shard, used by its thread alone, because the
// compressor's state takes a quarter of a MiB, and making a new one for each answer would cost more than the
// compression. Packing does a large one in steps of less than a millisecond, so that what is due meanwhile on the
// shard's thread is not late.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tocsin::http {

constexpr size_t kGzipBytesMin = 1 << 10;      // below, the header of gzip outweighs what is saved
constexpr size_t kGzipBytesAtOnce = 64 << 10;  // above, Packing
constexpr size_t kPackingBytes = 272 << 10;    // of a Packing, without what it packs

/// Whether a client with this Accept-Encoding (RFC 9110, 12.5.3) takes gzip.
bool AcceptsGzip(std::string_view accept_encoding);

struct GzipStream;

class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  /// Empty if it would not be shorter.
  std::string Compress(std::string_view bytes);

 private:
  std::unique_ptr<GzipStream> stream_;  // made at the first use
};

/// Packs it as a whole, however large it is: for threads that have no jobs to serve. False if that does not pay:
/// then it is as it was.
bool PackAll(std::string& body);

class Packing {
 public:
  explicit Packing(std::string body);
  ~Packing();
  Packing(const Packing&) = delete;
  Packing& operator=(const Packing&) = delete;

  /// True when there is nothing left to do.
  bool Step();
  /// False once what is packed is not shorter than the body.
  bool Pays() const;
  /// What it takes in memory.
  size_t bytes() const { return body_.size() + packed_.size() + kPackingBytes; }
  std::string TakePacked() { return std::move(packed_); }
  std::string TakeBody() { return std::move(body_); }

 private:
  std::string body_;
  size_t done_ = 0;
  std::string packed_;
  std::unique_ptr<GzipStream> stream_;
};

}  // namespace tocsin::http
