#include "frontend/http/login.h"

#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

TEST(Login, TheNameOfTheCookieHasThePort) {
  EXPECT_EQ(CookieName("localhost:7420"), "tocsin_7420");
  EXPECT_EQ(CookieName("[::1]:7421"), "tocsin_7421");
  for (const char* host : {"tocsin.example", "[::1]", "", "a:", "a:b", "a:1;x=2", "a:123456"}) {
    EXPECT_EQ(CookieName(host), "tocsin") << host;
  }
}

TEST(Login, FindsItsCookieAmongOthers) {
  EXPECT_EQ(BearerInCookie("tocsin_7420=abc", "a:7420"), "Bearer abc");
  EXPECT_EQ(BearerInCookie("x=1; tocsin_7420=abc; tocsin_7420=d", "a:7420"), "Bearer abc");
  EXPECT_EQ(BearerInCookie("tocsin=abc", "a"), "Bearer abc");
  for (const char* cookies : {"", "tocsin_7421=abc", "xtocsin_7420=abc", "tocsin_7420", ";;=;", "tocsin_7420x=a"}) {
    EXPECT_EQ(BearerInCookie(cookies, "a:7420"), "") << cookies;
  }
}

TEST(Login, TheCookieIsForScriptsAndOtherSitesOutOfReach) {
  EXPECT_EQ(SetCookieLine("abc", "a:7420", false),
            "Set-Cookie: tocsin_7420=abc; Path=/; HttpOnly; SameSite=Strict\r\n");
  EXPECT_EQ(SetCookieLine("abc", "a", true), "Set-Cookie: tocsin=abc; Path=/; HttpOnly; SameSite=Strict; Secure\r\n");
  EXPECT_EQ(SetCookieLine("", "a", false), "Set-Cookie: tocsin=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0\r\n");
}

}  // namespace
}  // namespace tocsin::http
