#include "model/job.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"

namespace tocsin {
namespace {

TEST(Token, TextRoundTrips) {
  for (const Token& token :
       {Token{}, Token{1, 2, 3}, Token{1023, UINT64_MAX, UINT64_MAX}, Token{512, 1ULL << 63, 77}}) {
    const std::string text = TokenText(token);
    EXPECT_EQ(text.size(), 24U);
    EXPECT_EQ(text.find_first_of("+/="), std::string::npos) << "it goes into a URL as it is";
    EXPECT_EQ(ParseToken(text), token);
  }
}

TEST(Token, TextIsPinned) {  // clients hold tokens across an upgrade of the server
  EXPECT_EQ(TokenText({1, 2, 3}), "AQACAAAAAAAAAAMAAAAAAAAA");
}

TEST(Token, OtherTextsAreRefused) {
  const std::string good = TokenText({1, 2, 3});
  for (const std::string& bad : {std::string(), good.substr(1), good + "A", std::string(24, '='),
                                 std::string(24, '\xFF'), good.substr(0, 23) + "/", std::string(24, '_')}) {
    EXPECT_FALSE(ParseToken(bad)) << bad;
  }
}

TEST(SlotFor, KeyComesBeforeOwnIdAndServerIdsCarryTheirSlot) {
  EXPECT_EQ(SlotFor("", "123456789", 1024), 0xCBF43926U % 1024);
  EXPECT_EQ(SlotFor("123456789", "other", 8), 0xCBF43926U % 8);
  UidSource source;
  const std::string server_id = UidText(source.Next(FromMs(1'800'000'000'000), 5));
  EXPECT_EQ(SlotFor("", server_id, 8), 5U);
  EXPECT_EQ(SlotFor("any key", server_id, 8), 5U) << "a lookup by server id needs no key";
  EXPECT_EQ(SlotFor("", UidText(1023), 8), 7U) << "an own id in the form of a server id stays in range";
  EXPECT_EQ(SlotFor("k", "i", 1), 0U);
}

NewJob Sample() {
  NewJob job;
  job.id = "id";
  job.key = "key";
  job.delay = Millis(5);
  job.count = 3;
  job.max_attempts = 4;
  job.headers = {{"a", "bc"}, {"d", "e"}};
  job.payload = "payload";
  return job;
}

TEST(Fingerprint, CoversEverythingThatWasAskedFor) {
  std::vector<NewJob> all;
  const auto with = [&](auto change) {
    NewJob job = Sample();
    change(job);
    all.push_back(job);
  };
  with([](NewJob&) {});
  with([](NewJob& job) { job.key = "kez"; });
  with([](NewJob& job) { job.key = ""; });
  with([](NewJob& job) { job.timeline = Timeline::kUtc; });
  with([](NewJob& job) { job.delay = Millis(6); });
  with([](NewJob& job) {
    job.timeline = Timeline::kUtc;
    job.due = FromMs(7);
  });
  with([](NewJob& job) { job.trigger = Trigger::kCount; });
  with([](NewJob& job) { job.trigger = Trigger::kEither; });
  with([](NewJob& job) { job.count = 4; });
  with([](NewJob& job) { job.max_attempts = 5; });
  with([](NewJob& job) { job.headers = {{"ab", "c"}, {"d", "e"}}; });
  with([](NewJob& job) { job.headers = {{"d", "e"}, {"a", "bc"}}; });
  with([](NewJob& job) { job.headers = {{"a", "bc"}}; });
  with([](NewJob& job) { job.headers = {}; });
  with([](NewJob& job) { job.payload = "payloae"; });
  with([](NewJob& job) { job.payload = ""; });
  with([](NewJob& job) {  // the last header's bytes move into the payload
    job.headers = {{"a", "bc"}, {"d", ""}};
    job.payload = "epayload";
  });
  std::set<uint64_t> distinct;
  for (const NewJob& job : all) distinct.insert(Fingerprint(job));
  EXPECT_EQ(distinct.size(), all.size());
}

TEST(Fingerprint, LeavesOutWhatDoesNotChangeTheJob) {
  NewJob job = Sample();
  job.slot = 7;
  job.on_conflict = OnConflict::kReplace;
  job.due = FromMs(9);  // means nothing on kSteady
  EXPECT_EQ(Fingerprint(job), Fingerprint(Sample()));
}

TEST(Fingerprint, IsPinned) {  // it is stored: a new value would turn every resubmit after an upgrade into a conflict
  EXPECT_EQ(Fingerprint(Sample()), 17070248242109020843ULL);
}

TEST(JobView, ShowsItsOwnIdOrTheServers) {
  JobView view;
  view.uid = 77;
  EXPECT_EQ(view.Id(), UidText(77));
  view.own_id = "mine";
  EXPECT_EQ(view.Id(), "mine");
}

}  // namespace
}  // namespace tocsin
