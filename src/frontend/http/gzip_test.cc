#include "frontend/http/gzip.h"

#include "frontend/http/unzip_for_test.h"

namespace tocsin::http {
namespace {

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

std::string Noise(size_t size) {
  std::string noise;
  for (uint64_t x = 1; noise.size() < size;) {
    x = x * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
    noise += static_cast<char>(x >> 56);
  }
  return noise;
}

TEST(Gzip, LeavesWhatWouldNotShrink) {
  Gzip gzip;
  EXPECT_EQ(gzip.Compress(Noise(4'000)), "");
  EXPECT_NE(gzip.Compress(std::string(4'000, 'a')), "");
}

TEST(Packing, KnowsWhenItDoesNotPayAndWhatItTakes) {
  Packing packing(Noise(3 * kGzipBytesAtOnce));
  EXPECT_FALSE(packing.Step());
  EXPECT_TRUE(packing.Pays());
  EXPECT_FALSE(packing.Step());
  EXPECT_GT(packing.bytes(), 4 * kGzipBytesAtOnce + kPackingBytes);
  EXPECT_TRUE(packing.Step());
  EXPECT_FALSE(packing.Pays());
}

TEST(PackStream, PacksPieceByPiece) {
  PackStream stream;
  ASSERT_TRUE(stream.usable());
  const std::string text = Text(100'000) + Noise(50'000);
  std::string packed;
  for (size_t at = 0; at < text.size(); at += 30'000) {
    const std::string piece = stream.Pack(std::string_view(text).substr(at, 30'000), at + 30'000 >= text.size());
    EXPECT_FALSE(piece.empty());
    packed += piece;
  }
  EXPECT_LT(packed.size(), 100'000U);
  EXPECT_EQ(Unzip(packed, text.size()), text);
}

}  // namespace
}  // namespace tocsin::http
