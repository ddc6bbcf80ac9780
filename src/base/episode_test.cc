#include "base/episode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

class EpisodeTest : public testing::Test {
 protected:
  EpisodeTest() { testing::internal::CaptureStderr(); }
  ~EpisodeTest() override { testing::internal::GetCapturedStderr(); }

  /// What was logged since the last call.
  static std::string Logged() {
    const std::string lines = testing::internal::GetCapturedStderr();
    testing::internal::CaptureStderr();
    return lines;
  }
  void Begin(std::string_view why = "x") {
    const LogField fields[] = {{"why", why}, {"number", 7}, {"flag", true}};
    episode_.Begin(now_, fields);
  }
  void End() { episode_.End(now_); }

  Episode episode_{"trouble"};
  Episode::TimePoint now_{std::chrono::hours(5)};
};

TEST_F(EpisodeTest, HasALineForItsBeginningAndOneForItsEnd) {
  End();
  EXPECT_EQ(Logged(), "") << "nothing has begun";
  Begin("the first");
  EXPECT_TRUE(episode_.on());
  EXPECT_THAT(Logged(), HasSubstr(" warning trouble state=begin why=\"the first\" number=7 flag=true\n"));
  for (int i = 0; i < 5; ++i) Begin("another");
  now_ += milliseconds(2'345);
  EXPECT_EQ(Logged(), "");
  const LogField fields[] = {{"topic", "t"}};
  episode_.End(now_, fields);
  End();
  EXPECT_FALSE(episode_.on());
  EXPECT_THAT(Logged(), testing::MatchesRegex("[^ ]+ warning trouble state=end topic=t lasted_ms=2345 times=1\n"));
}

TEST_F(EpisodeTest, OneThatComesAndGoesIsCountedAndHasNoLinesForAWhile) {
  Begin();
  End();
  Logged();
  for (int i = 0; i < 9; ++i) {
    now_ += seconds(1);
    Begin();
    End();
  }
  EXPECT_EQ(Logged(), "");
  now_ += seconds(1);
  Begin();
  EXPECT_THAT(Logged(), HasSubstr("state=begin why=x number=7 flag=true times=10\n"));
  now_ += seconds(1);
  End();
  EXPECT_THAT(Logged(), HasSubstr("state=end lasted_ms=1000 times=10\n"));
}

TEST_F(EpisodeTest, OneThatWasHeldBackAndLastsGetsItsLineLater) {
  Begin();
  End();
  Logged();
  now_ += seconds(4);
  Begin("again");
  LookAtEpisodes(now_ + seconds(5));
  EXPECT_EQ(Logged(), "");
  LookAtEpisodes(now_ + seconds(6));
  EXPECT_THAT(Logged(), HasSubstr("state=begin why=again number=7 flag=true\n"));
  LookAtEpisodes(now_ + seconds(7));
  EXPECT_EQ(Logged(), "");
  now_ += seconds(60);
  End();
  EXPECT_THAT(Logged(), HasSubstr("lasted_ms=60000 times=1\n")) << "since it began, not since its line";
}

TEST_F(EpisodeTest, OneWithoutAnEndEndsWhenItIsQuiet) {
  Episode episode("busy", Millis(5'000));
  episode.Begin(now_, {});
  now_ += seconds(4);
  episode.Begin(now_, {});
  LookAtEpisodes(now_ + milliseconds(4'999));
  EXPECT_THAT(Logged(), testing::MatchesRegex("[^ ]+ warning busy state=begin\n"));
  LookAtEpisodes(now_ + seconds(5));
  EXPECT_FALSE(episode.on());
  EXPECT_THAT(Logged(), HasSubstr("busy state=end lasted_ms=9000 times=1\n"));
}

TEST_F(EpisodeTest, OneThatIsDestroyedIsNotLookedAt) {
  {
    Episode episode("short", Millis(1));
    episode.Begin(now_, {});
  }
  Logged();
  LookAtEpisodes(now_ + seconds(1));
  EXPECT_EQ(Logged(), "");
}

}  // namespace
}  // namespace tocsin
