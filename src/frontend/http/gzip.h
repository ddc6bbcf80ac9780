// Gzip: compresses answers. One for each shard, used by its thread alone: the compressor's state takes a quarter of a
// MiB, and making a new one for each answer would cost more than the compression.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace tocsin::http {

// Below, the header of gzip outweighs what is saved. Above, compressing would keep the shard's thread for more than a
// few milliseconds, while jobs are due on it: those answers go as they are.
constexpr size_t kGzipBytesMin = 1 << 10;
constexpr size_t kGzipBytesMax = 256 << 10;

/// Whether a client with this Accept-Encoding (RFC 9110, 12.5.3) takes gzip.
bool AcceptsGzip(std::string_view accept_encoding);

class Gzip {
 public:
  Gzip();
  ~Gzip();
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  /// Nothing where it would not be shorter.
  std::string Compress(std::string_view bytes);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;  // made at the first use
};

}  // namespace tocsin::http
