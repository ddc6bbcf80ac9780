#include "frontend/http/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace tocsin::http {
namespace {

std::string Unzip(std::string_view packed, size_t bytes_max) {
  std::string out(bytes_max, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(Gzip, KnowsWhoTakesIt) {
  for (const char* yes : {"gzip", "GZip", "deflate, gzip", "gzip;q=0.5", "br;q=1.0, gzip;q=0.001", "*", "*;q=0.1",
                          "identity, *", "gzip ; q=1", "*;q=0, gzip", "x-gzip", " gzip,", "gzip;level=9"}) {
    EXPECT_TRUE(AcceptsGzip(yes)) << yes;
  }
  for (const char* no : {"", "identity", "br, deflate", "gzip;q=0", "gzip;q=0.000", "gzip; Q=0", "*;q=0", "gzipped",
                         "*, gzip;q=0", ",,", ";q=1"}) {
    EXPECT_FALSE(AcceptsGzip(no)) << no;
  }
}

std::string Text(size_t size) {
  std::string text;
  while (text.size() < size) text += "{\"id\":\"" + std::to_string(text.size() * 7919) + "\"},";
  text.resize(size);
  return text;
}

TEST(Packing, PacksInSteps) {
  for (const size_t steps : {1, 2, 50}) {
    const std::string text = Text(steps * kGzipBytesAtOnce - (steps == 2 ? 1 : 0));
    Packing packing(text);
    for (size_t i = 1; i < steps; ++i) EXPECT_FALSE(packing.Step());
    EXPECT_TRUE(packing.Step());
    const std::string packed = packing.TakePacked();
    EXPECT_LT(packed.size(), text.size() / 2);
    EXPECT_EQ(Unzip(packed, text.size()), text);
  }
}

TEST(Gzip, PacksAgainAndAgain) {
  Gzip gzip;
  for (const size_t size : {kGzipBytesMin, size_t{5'000}, kGzipBytesAtOnce}) {
    const std::string text = Text(size);
    const std::string packed = gzip.Compress(text);
    EXPECT_LT(packed.size(), text.size() / 2);
    EXPECT_EQ(Unzip(packed, size), text);
  }
}

TEST(Gzip, LeavesWhatWouldNotShrink) {
  Gzip gzip;
  std::string noise;
  for (uint64_t i = 1, x = 1; i <= 4'000; ++i) {
    x = x * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    noise += static_cast<char>(x >> 56);
  }
  EXPECT_EQ(gzip.Compress(noise), "");
  EXPECT_NE(gzip.Compress(std::string(4'000, 'a')), "");
}

}  // namespace
}  // namespace tocsin::http
