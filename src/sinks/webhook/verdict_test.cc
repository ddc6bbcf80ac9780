#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sinks/webhook/answer.h"

namespace tocsin::webhook {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr sys_seconds kNow{seconds(784'111'777)};  // Sun, 06 Nov 1994 08:49:37 GMT

Delivered Verdict(int status, const std::string& retry_after = "", std::string_view final_statuses = "410") {
  return VerdictOf({.status = status, .phrase = "Said So", .retry_after = retry_after, .body = {}},
                   FinalStatuses::Parse(final_statuses).value(), kNow);
}

TEST(VerdictTest, EachStatusHasItsOutcome) {
  for (const int status : {200, 201, 202, 204, 299}) EXPECT_EQ(Verdict(status).outcome, DeliverOutcome::kConfirmed);
  for (const int status : {408, 425, 429, 500, 502, 503, 504, 599, 600, 999, 0}) {
    EXPECT_EQ(Verdict(status).outcome, DeliverOutcome::kRetry) << status;
  }
  // An ingress answers 404 or 403 while a deploy is under way.
  for (const int status : {400, 401, 403, 404, 422, 499}) {
    EXPECT_EQ(Verdict(status).outcome, DeliverOutcome::kRetry) << status;
    EXPECT_EQ(Verdict(status, "", "4xx").outcome, DeliverOutcome::kRefused) << status;
  }
  EXPECT_EQ(Verdict(410).outcome, DeliverOutcome::kRefused);
  EXPECT_EQ(Verdict(410, "", "").outcome, DeliverOutcome::kRetry) << "nothing is final";
  for (const int status : {300, 301, 302, 304, 307, 308}) {
    EXPECT_EQ(Verdict(status).outcome, DeliverOutcome::kRetry) << status;
    EXPECT_THAT(Verdict(status).reason, testing::HasSubstr("redirects are not followed"));
  }
}

TEST(VerdictTest, WhatTheTopicNamesIsFinal) {
  for (const int status : {301, 422, 501}) {
    EXPECT_EQ(Verdict(status, "", "301, 422 ,501").outcome, DeliverOutcome::kRefused) << status;
  }
  EXPECT_EQ(Verdict(410, "", "422").outcome, DeliverOutcome::kRetry) << "the topic did not name it";
  for (const int status : {408, 425, 429}) {
    EXPECT_EQ(Verdict(status, "", "4xx").outcome, DeliverOutcome::kRetry) << "it passes by itself: " << status;
    EXPECT_EQ(Verdict(status, "", "4xx,408,425,429").outcome, DeliverOutcome::kRefused) << status;
  }
  for (const char* text : {"5xx", "200", "600", "-410", "410;422", "410,,422", "4 10", ","}) {
    const auto parsed = FinalStatuses::Parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().field, "delivery.final_statuses");
  }
}

TEST(VerdictTest, TheReasonIsWhatTheReceiverSaid) {
  EXPECT_EQ(Verdict(410).reason, "the receiver answered 410 Said So");
  EXPECT_EQ(VerdictOf({.status = 500}, {}, kNow).reason, "the receiver answered 500");
  EXPECT_EQ(Verdict(200).reason, "");
}

TEST(VerdictTest, RetryAfterIsHeardWithEveryAnswerThatIsTriedAgain) {
  for (const int status : {301, 307, 408, 425, 429, 500, 502, 503, 504, 599}) {
    EXPECT_EQ(Verdict(status, "7").delay, Millis(7'000)) << status;
    EXPECT_EQ(Verdict(status, "Sun, 06 Nov 1994 08:50:37 GMT").delay, Millis(60'000)) << status;
    EXPECT_EQ(Verdict(status, "soon").delay, std::nullopt) << status;
    EXPECT_EQ(Verdict(status).delay, std::nullopt) << status;
  }
  EXPECT_EQ(Verdict(404, "7").delay, Millis(7'000));
  for (const int status : {200, 202, 410}) EXPECT_EQ(Verdict(status, "7").delay, std::nullopt) << status;
}

TEST(VerdictTest, AtOnceIsLeftToTheBackOff) {
  EXPECT_EQ(Verdict(503, "0").delay, std::nullopt);
  EXPECT_EQ(Verdict(429, "Sun, 06 Nov 1994 08:49:37 GMT").delay, std::nullopt);
}

TEST(VerdictTest, ADayIsTheMostThatCanBeAskedFor) {
  EXPECT_EQ(Verdict(429, "86400").delay, std::chrono::days(1));
  EXPECT_EQ(Verdict(429, "86401").delay, std::chrono::days(1));
  EXPECT_EQ(Verdict(429, "99999999999999999999999").delay, std::chrono::days(1));
  EXPECT_EQ(Verdict(429, "Fri, 31 Dec 9999 23:59:59 GMT").delay, std::chrono::days(1));
}

TEST(VerdictTest, RetryAfterIsSecondsOrADate) {
  EXPECT_EQ(ParseRetryAfter("0", kNow), seconds(0));
  EXPECT_EQ(ParseRetryAfter("Sun, 06 Nov 1994 08:49:36 GMT", kNow), seconds(0)) << "it has passed";
  EXPECT_EQ(ParseRetryAfter("Mon, 07 Nov 1994 08:49:37 GMT", kNow), seconds(86'400));
  for (const char* text :
       {"", "-1", "+1", "1.5", "1 ", "0x1", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nox 1994 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT "}) {
    EXPECT_EQ(ParseRetryAfter(text, kNow), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tocsin::webhook
