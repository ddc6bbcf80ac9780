#include "net/chunked.h"

#include <gmock/gmock.h>

namespace tocsin::net {
namespace {

using Step = ChunkedDecoder::Step;
using testing::HasSubstr;

constexpr size_t kBodyMax = 100'000;

struct Decoded {
  Step step = Step::kMore;
  std::string body;
  std::string rest;
  Error problem;
};

/// `piece`: how many bytes arrive at a time.
Decoded Decode(std::string_view bytes, size_t piece = SIZE_MAX, size_t body_bytes_max = kBodyMax) {
  ChunkedDecoder decoder;
  Decoded decoded;
  while (decoded.step == Step::kMore && !bytes.empty()) {
    std::string_view next = bytes.substr(0, piece);
    const size_t offered = next.size();
    decoded.step = decoder.Decode(next, decoded.body, body_bytes_max);
    bytes.remove_prefix(offered - next.size());
  }
  decoded.rest = bytes;
  decoded.problem = decoder.problem();
  return decoded;
}

std::string Filled(std::string_view before, size_t bytes, std::string_view after) {
  return std::string(before) + std::string(bytes, 'x') + std::string(after);
}

TEST(ChunkedTest, BodiesAreTheSameInPiecesOfAnySize) {
  const std::string text =
      "4\r\nfour\r\n"
      "0a\r\n0123\r\n6789\r\n"
      "00C;name=\"value; quoted\" ; other\r\ntwelve bytes\r\n"
      "1 \t; spaced\r\n!\r\n"
      "000\r\n";
  for (const std::string_view trailer : {"", "Digest: a:b\r\nX-Empty:\r\nContent-Length: 9\r\n"}) {
    const std::string whole = text + std::string(trailer) + "\r\nGET / HTTP/1.1";
    for (size_t piece = 1; piece <= whole.size(); ++piece) {
      const Decoded decoded = Decode(whole, piece);
      ASSERT_EQ(decoded.step, Step::kDone) << decoded.problem.message;
      EXPECT_EQ(decoded.body, "four0123\r\n6789twelve bytes!");
      EXPECT_EQ(decoded.rest, "GET / HTTP/1.1");
    }
  }
}

TEST(ChunkedTest, WhatIsNotCompleteNeedsMore) {
  const std::string_view whole = "4;e\r\nfour\r\n0\r\nA: b\r\n\r\n";
  for (size_t size = 1; size < whole.size(); ++size) EXPECT_EQ(Decode(whole.substr(0, size)).step, Step::kMore);
  EXPECT_EQ(Decode(whole).step, Step::kDone);
}

TEST(ChunkedTest, BadFramingIsRefused) {
  for (const std::string_view bad : {
           "\r\n",
           " 4\r\nfour\r\n",
           "-4\r\nfour\r\n",
           "+4\r\nfour\r\n",
           "0x4\r\nfour\r\n",
           "g\r\n",
           ";e\r\n",
           "4 \r\nfour\r\n",
           "4 4\r\n",
           "4\nfour\r\n",
           "4\rfour\r\n",
           "4\r\nfour!\r\n",
           "4\r\nfour\n",
           "4\r\nfour\r!",
           "4;\nfour\r\n",
           "4;e\x01\r\n",
           "4;e\r\r\n",
           "00000000000000004\r\nfour\r\n",
           "0\r\nname\r\n\r\n",
           "0\r\n: value\r\n\r\n",
           "0\r\n name: value\r\n\r\n",
           "0\r\nname : value\r\n\r\n",
           "0\r\nname: value\n\r\n",
           "0\r\nname: val\rue\r\n\r\n",
           "0\r\nname: value\r\n folded\r\n\r\n",
           "0\r\n\n",
           "0\r\n\r\r",
           "0\r\nn\x80: v\r\n\r\n",
           "0\r\nname: \x7f\r\n\r\n",
       }) {
    for (const size_t piece : {SIZE_MAX, size_t{1}}) {
      const Decoded decoded = Decode(bad, piece);
      EXPECT_EQ(decoded.step, Step::kBad) << bad;
      EXPECT_EQ(decoded.problem.code, Code::kInvalidArgument) << bad;
      EXPECT_FALSE(decoded.problem.message.empty()) << bad;
    }
  }
}

TEST(ChunkedTest, ABodyOverItsLimitIsRefusedByItsAnnouncement) {
  EXPECT_EQ(Decode("4\r\nfour\r\n0\r\n\r\n", 1, 4).step, Step::kDone);
  EXPECT_EQ(Decode("5\r\n", 1, 4).step, Step::kBodyTooLarge);
  EXPECT_EQ(Decode("4\r\nfour\r\n1\r\n", 1, 4).step, Step::kBodyTooLarge);
  EXPECT_EQ(Decode("ffffffffffffffff\r\n", 1, 4).step, Step::kBodyTooLarge);
  EXPECT_EQ(Decode("4\r\nfour\r\nffffffffffffffff\r\n").step, Step::kBodyTooLarge);
}

TEST(ChunkedTest, ExtensionsAreBounded) {
  constexpr size_t kMax = ChunkedDecoder::kExtensionBytesMax;
  EXPECT_EQ(Decode(Filled("1;", kMax - 1, "\r\n!\r\n0\r\n\r\n")).step, Step::kDone);
  for (const size_t bytes : {kMax, size_t{70'000}}) {
    const Decoded decoded = Decode(Filled("1;", bytes, "\r\n!\r\n0\r\n\r\n"), 1'000);
    EXPECT_EQ(decoded.step, Step::kBad);
    EXPECT_EQ(decoded.problem.code, Code::kTooLarge);
    EXPECT_THAT(decoded.problem.message, HasSubstr("256"));
  }
}

TEST(ChunkedTest, TrailersAreBoundedInAll) {
  constexpr size_t kMax = ChunkedDecoder::kTrailerBytesMax;
  EXPECT_EQ(Decode(Filled("0\r\nname:", kMax - 9, "\r\n\r\n")).step, Step::kDone);
  std::string many = "0\r\n";
  while (many.size() < 2 * kMax) many += "name: value\r\n";
  for (const std::string& trailer :
       {Filled("0\r\nname:", kMax - 8, "\r\n\r\n"), Filled("0\r\nname:", 70'000, "\r\n\r\n"),
        Filled("0\r\n", 70'000, ": value\r\n\r\n"), Filled("0\r\n", 70'000, ""), many}) {
    const Decoded decoded = Decode(trailer, 1'000);
    EXPECT_EQ(decoded.step, Step::kBad);
    EXPECT_EQ(decoded.problem.code, Code::kTooLarge);
    EXPECT_THAT(decoded.problem.message, HasSubstr("16384"));
  }
}

}  // namespace
}  // namespace tocsin::net
