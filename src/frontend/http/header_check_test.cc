#include "frontend/http/header_check.h"

#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

Status Check(std::string_view header) { return CheckHeader(header, Pages::kOfThisMachine); }

const std::string kStart = "POST /v1 HTTP/1.1\r\nHost: a\r\n";

TEST(CheckHeader, TakesOrdinaryHeaders) {
  EXPECT_TRUE(Check(kStart));
  EXPECT_TRUE(Check(kStart + "Content-Length: 12\r\nAccept: */*\r\n"));
  EXPECT_TRUE(Check(kStart + "transfer-encoding:\tChunked \r\n"));
  EXPECT_TRUE(Check(kStart + "Expect: 100-Continue\r\n"));
  EXPECT_TRUE(Check(kStart + "Content-Encoding: Identity\r\n"));
  EXPECT_TRUE(Check("GET / HTTP/1.0\r\n"));
  EXPECT_TRUE(Check("GET http://A:80/path?q=http://b HTTP/1.1\r\nHost: a:80\r\n"));
  EXPECT_TRUE(Check("GET /path?q=http://b HTTP/1.1\r\nHost: a:80\r\n"));
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
      {kStart + "Authorization: Bearer a\r\nauthorization: Bearer b\r\n", "Authorization twice"},
      {kStart + "X-A: 1\r\n  folded\r\n", "folded"},
      {kStart + "X-A: 1\nX-B: 2\r\n", "CR LF"},
      {kStart + "X-A\r\n", "colon"},
      {kStart + "Expect: a-miracle\r\n", "100-continue"},
      {"GET / HTTP/1.1\r\n", "no Host"},
      {"GET http://b/ HTTP/1.1\r\nHost: a\r\n", "different hosts"},
      {"GET https://a:80 HTTP/1.1\r\nHost: a\r\n", "different hosts"},
      {"GET http:///path HTTP/1.1\r\nHost: a\r\n", "different hosts"},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1"},
  };
  for (const auto& [header, words] : refused) {
    const Status status = Check(header);
    ASSERT_FALSE(status) << header;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
  }
}

TEST(CheckHeader, RefusesPagesOfOtherSites) {
  const std::string start = "POST / HTTP/1.1\r\nHost: localhost:7420\r\n";
  EXPECT_TRUE(Check(start + "Origin: http://LocalHost:7420\r\n"));
  EXPECT_TRUE(CheckHeader("POST / HTTP/1.1\r\nOrigin: http://a\r\nHost: a\r\n", Pages::kOfTheirHost));
  for (const char* origin : {"http://evil.example", "http://localhost:7421", "http://localhost", "null", "",
                             "localhost:7420", "http://localhost:7420.evil.example"}) {
    const Status status = Check(start + "Origin: " + origin + "\r\n");
    ASSERT_FALSE(status) << origin;
    EXPECT_EQ(status.error().code, Code::kForbidden);
    EXPECT_EQ(status.error().field, "origin");
  }
  EXPECT_FALSE(Check(start + "Origin: http://localhost:7420\r\nOrigin: http://localhost:7420\r\n"));
  EXPECT_FALSE(Check("POST / HTTP/1.0\r\nOrigin: http://a\r\n"));
}

TEST(CheckHeader, BelievesABrowserThatNamesAnotherSiteAlsoWithoutOrigin) {
  const auto request = [](std::string_view method, std::string_view site) {
    return fmt::format("{} / HTTP/1.1\r\nHost: localhost:7420\r\nSec-Fetch-Site: {}\r\n", method, site);
  };
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    for (const char* site : {"cross-site", "same-site", "", "same-origin, cross-site"}) {
      const Status status = Check(request(method, site));
      ASSERT_FALSE(status) << method << ' ' << site;
      EXPECT_EQ(status.error().field, "origin");
    }
    EXPECT_FALSE(Check(request(method, "cross-site") + "Sec-Fetch-Site: same-origin\r\n"));
    for (const char* site : {"same-origin", "none"}) EXPECT_TRUE(Check(request(method, site))) << method;
  }
  EXPECT_TRUE(Check(request("GET", "cross-site"))) << "a link";
}

TEST(CheckHeader, RefusesReadsOfTheApiForPagesOfOtherSites) {
  const auto get = [](std::string_view target, std::string_view site, std::string_view mode, const char* method = "GET",
                      std::string_view more = "") {
    return Check(fmt::format("{} {} HTTP/1.1\r\nHost: localhost:7420\r\nSec-Fetch-Site: {}\r\nSec-Fetch-Mode: {}\r\n{}",
                             method, target, site, mode, more));
  };
  for (const char* target : {"/v1/events", "/v1/topics?limit=1", "/metrics", "http://localhost:7420/v1/stats"}) {
    for (const char* site : {"cross-site", "same-site"}) {
      for (const char* mode : {"no-cors", "cors", "websocket", ""}) {
        const Status status = get(target, site, mode);
        ASSERT_FALSE(status) << target << ' ' << site << ' ' << mode;
        EXPECT_EQ(status.error().code, Code::kForbidden);
        EXPECT_EQ(status.error().field, "origin");
        EXPECT_FALSE(get(target, site, mode, "HEAD"));
      }
      EXPECT_TRUE(get(target, site, "navigate")) << "somebody follows a link";
      EXPECT_TRUE(get(target, site, "navigate", "GET", "Sec-Fetch-Dest: document\r\n"));
      for (const char* part : {"iframe", "frame", "object", "embed", "", "document, iframe"}) {
        EXPECT_FALSE(get(target, site, "navigate", "GET", fmt::format("Sec-Fetch-Dest: {}\r\n", part))) << part;
      }
      EXPECT_FALSE(get(target, site, "navigate", "POST"));
    }
    for (const char* site : {"same-origin", "none"}) EXPECT_TRUE(get(target, site, "cors"));
  }
  for (const char* target : {"/", "/ui/", "/ui/app.js", "/healthz", "/readyz"}) {
    EXPECT_TRUE(get(target, "cross-site", "no-cors")) << target;
  }
}

TEST(CheckHeader, RefusesCompressedBodies) {
  for (const char* encoding : {"gzip", "br", "", "identity, gzip"}) {
    const Status status = Check(kStart + "Content-Encoding: " + encoding + "\r\n");
    ASSERT_FALSE(status) << encoding;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_EQ(status.error().field, "content-encoding");
  }
}

TEST(CheckHeader, RefusesBrowsersThatUseANameOfAnotherSite) {
  const auto browser = [](std::string_view host, std::string_view sign) {
    return fmt::format("GET / HTTP/1.1\r\nHost: {}\r\n{}\r\n", host, sign);
  };
  const std::string signs[] = {"Accept-Language: en", "Sec-Fetch-Site: same-origin", "User-Agent: Mozilla/5.0 (X11)"};
  for (const auto& sign : signs) {
    for (const char* host :
         {"localhost", "LocalHost:7420", "a.localhost:7420", "127.0.0.1:7420", "[::1]:7420", "10.1.2.3", "[fe80::1]"}) {
      EXPECT_TRUE(Check(browser(host, sign))) << host;
    }
    for (const char* host : {"evil.example", "evil.example:7420", "localhost.evil.example", "127.0.0.1.evil.example",
                             "notlocalhost", "evil.127.0.0.1x", "intranet", ""}) {
      const Status status = Check(browser(host, sign));
      ASSERT_FALSE(status) << host;
      EXPECT_EQ(status.error().code, Code::kForbidden);
      EXPECT_EQ(status.error().field, "host");
      EXPECT_TRUE(CheckHeader(browser(host, sign), Pages::kOfTheirHost)) << host;
    }
  }
  EXPECT_FALSE(Check("POST / HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n"));
  EXPECT_TRUE(Check("POST / HTTP/1.1\r\nHost: behind.a.proxy\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n"));
}

TEST(CheckHeader, TakesBrowsersThatUseANameOfTheConfiguration) {
  const std::string hosts[] = {"queue.example", "tocsin"};
  const auto check = [&](std::string_view host, Pages pages) {
    return CheckHeader(fmt::format("GET / HTTP/1.1\r\nHost: {}\r\nAccept-Language: en\r\n", host), pages, hosts);
  };
  for (const Pages pages : {Pages::kOfThisMachine, Pages::kOfTheirHost}) {
    for (const char* host : {"queue.example", "Queue.Example:7420", "tocsin:80", "localhost:7420", "10.1.2.3"}) {
      EXPECT_TRUE(check(host, pages)) << host;
    }
    for (const char* host : {"evil.example", "queue.example.evil.example", "a.tocsin", ""}) {
      EXPECT_FALSE(check(host, pages)) << host;
    }
  }
}

TEST(PathOf, IsWhatTheRouterKnows) {
  EXPECT_EQ(PathOf("/a/b?c=d"), "/a/b?c=d");
  EXPECT_EQ(PathOf("http://host:80/a?b=http://c"), "/a?b=http://c");
  EXPECT_EQ(PathOf("HTTPS://host/"), "/");
  EXPECT_EQ(PathOf("http://host"), "/");
  EXPECT_EQ(PathOf("http://host?a=b"), "?a=b");
  EXPECT_EQ(PathOf("ftp://host/a"), "ftp://host/a");
  EXPECT_EQ(PathOf("/a?b=http://c/d"), "/a?b=http://c/d");
  EXPECT_EQ(PathOf("*"), "*");
}

}  // namespace
}  // namespace tocsin::http
