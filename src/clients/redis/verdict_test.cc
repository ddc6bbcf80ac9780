#include <gtest/gtest.h>

#include "clients/redis/slot_map.h"

namespace tocsin::redis {
namespace {

Verdict Of(std::string_view wire) {
  ReplyBuilder builder;
  builder.Feed(wire);
  return Judge(builder.Next().value().value());
}

TEST(Verdict, KnowsTheErrorsThatAreLivedThrough) {
  EXPECT_EQ(Of("-MOVED 1 127.0.0.1:7000\r\n"), Verdict::kMoved);
  EXPECT_EQ(Of("-ASK 1 127.0.0.1:7000\r\n"), Verdict::kAsk);
  EXPECT_EQ(Of("-TRYAGAIN Multiple keys request during rehashing of slot\r\n"), Verdict::kLater);
  EXPECT_EQ(Of("-CLUSTERDOWN The cluster is down\r\n"), Verdict::kLater);
  EXPECT_EQ(Of("-LOADING Redis is loading the dataset in memory\r\n"), Verdict::kLater);
  EXPECT_EQ(Of("-MASTERDOWN Link with MASTER is down\r\n"), Verdict::kDemoted);
  EXPECT_EQ(Of("-READONLY You can't write against a read only replica.\r\n"), Verdict::kDemoted);
  EXPECT_EQ(Of("-NOSCRIPT No matching script.\r\n"), Verdict::kNoScript);
}

TEST(Verdict, EverythingElseIsTheCallers) {
  EXPECT_EQ(Of("-ERR MOVED\r\n"), Verdict::kAnswer);
  EXPECT_EQ(Of("-MOVEDX 1\r\n"), Verdict::kAnswer);
  EXPECT_EQ(Of("+MOVED 1 127.0.0.1:7000\r\n"), Verdict::kAnswer);
  EXPECT_EQ(Of("*1\r\n-LOADING x\r\n"), Verdict::kAnswer);
}

TEST(Redirect, NamesSlotAndNode) {
  const Endpoint from{"10.0.0.9", 7000};
  const auto redirect = ParseRedirect("MOVED 3999 127.0.0.1:6381", from);
  ASSERT_TRUE(redirect);
  EXPECT_EQ(redirect->hash_slot, 3'999);
  EXPECT_EQ(redirect->to.Text(), "127.0.0.1:6381");
  EXPECT_EQ(ParseRedirect("ASK 0 ::1:6381", from)->to.Text(), "[::1]:6381");
  EXPECT_EQ(ParseRedirect("ASK 0 a.example.com:6381", from)->to.Text(), "a.example.com:6381");
}

TEST(Redirect, IsOnTheSameHostWhereNoneIsNamed) {
  const Endpoint from{"10.0.0.9", 7000};
  EXPECT_EQ(ParseRedirect("MOVED 3999 :6381", from)->to.Text(), "10.0.0.9:6381");
  EXPECT_EQ(ParseRedirect("MOVED 3999 ?:6381", from)->to.Text(), "10.0.0.9:6381");
}

TEST(Redirect, IsNoneWhereItCannotBeUnderstood) {
  for (const std::string_view text : {"MOVED", "MOVED 1", "MOVED 1 127.0.0.1", "MOVED x 127.0.0.1:1", "MOVED -1 a:1",
                                      "MOVED 16384 a:1", "MOVED 1 a:0", "MOVED 1 a:65536", "MOVED 1 a:", "a:1 b c"}) {
    EXPECT_FALSE(ParseRedirect(text, {})) << text;
  }
}

}  // namespace
}  // namespace tocsin::redis
