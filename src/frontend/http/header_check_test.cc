#include "frontend/http/header_check.h"

#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

const std::string kStart = "POST /v1 HTTP/1.1\r\nHost: a\r\n";

TEST(CheckHeader, TakesOrdinaryHeaders) {
  EXPECT_TRUE(CheckHeader(kStart));
  EXPECT_TRUE(CheckHeader(kStart + "Content-Length: 12\r\nAccept: */*\r\n"));
  EXPECT_TRUE(CheckHeader(kStart + "transfer-encoding:\tChunked \r\n"));
  EXPECT_TRUE(CheckHeader(kStart + "Expect: 100-Continue\r\n"));
  EXPECT_TRUE(CheckHeader("GET / HTTP/1.0\r\n"));
}

TEST(CheckHeader, RefusesWhatTwoParsersReadInTwoWays) {
  const std::pair<std::string, std::string_view> refused[] = {
      {kStart + "Content-Length: 1\r\ncontent-length: 1\r\n", "Content-Length twice"},
      {kStart + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "both Content-Length and Transfer-Encoding"},
      {kStart + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding twice"},
      {kStart + "Transfer-Encoding: gzip, chunked\r\n", "chunked"},
      {kStart + "Content-Length: 1, 1\r\n", "not a number"},
      {kStart + "Content-Length: +1\r\n", "not a number"},
      {kStart + "Content-Length: \r\n", "not a number"},
      {kStart + "HOST: b\r\n", "Host twice"},
      {kStart + "X-A: 1\r\n  folded\r\n", "folded"},
      {kStart + "X-A: 1\nX-B: 2\r\n", "CR LF"},
      {kStart + "X-A\r\n", "colon"},
      {kStart + "Expect: a-miracle\r\n", "100-continue"},
      {"GET / HTTP/1.1\r\n", "no Host"},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1"},
  };
  for (const auto& [header, words] : refused) {
    const Status status = CheckHeader(header);
    ASSERT_FALSE(status) << header;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
  }
}

TEST(CheckHeader, RefusesPagesOfOtherSites) {
  const std::string start = "POST / HTTP/1.1\r\nHost: localhost:7420\r\n";
  EXPECT_TRUE(CheckHeader(start + "Origin: http://LocalHost:7420\r\n"));
  EXPECT_TRUE(CheckHeader("POST / HTTP/1.1\r\nOrigin: http://a\r\nHost: a\r\n"));
  for (const char* origin : {"http://evil.example", "http://localhost:7421", "http://localhost", "null", "",
                             "localhost:7420", "http://localhost:7420.evil.example"}) {
    const Status status = CheckHeader(start + "Origin: " + origin + "\r\n");
    ASSERT_FALSE(status) << origin;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(status.error().field, "origin");
  }
  EXPECT_FALSE(CheckHeader(start + "Origin: http://localhost:7420\r\nOrigin: http://localhost:7420\r\n"));
  EXPECT_FALSE(CheckHeader("POST / HTTP/1.0\r\nOrigin: http://a\r\n"));
}

}  // namespace
}  // namespace tocsin::http
