#include "frontend/http/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "auth/test_tokens.h"
#include "base/clock.h"

namespace tocsin::http {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

class EventStreamTest : public testing::Test {
 protected:
  EventStreamTest() { clock_.DriveIo(true); }

  std::shared_ptr<EventStream> Open(EventInterest interest = {}, std::string_view last_id = {}) {
    auto stream = std::make_shared<EventStream>(loop_, Credentials{bearer_}, whole_urls_);
    const Status opened = stream->Open(hub_, std::move(interest), last_id);
    EXPECT_TRUE(opened) << opened.error().message;
    return stream;
  }
  /// The session has sent what it had, and asks for more.
  void Ask(EventStream& stream) {
    stream.Next([this](Piece piece) { pieces_.push_back(std::move(piece.bytes)); });
  }
  void PublishLog(std::string text, std::string topic = {}) {
    hub_.Publish(EventKind::kLog, std::move(topic), EventFields{{"text", std::move(text)}});
  }
  void RunLoop() { loop_.io().poll(); }

  VirtualClock clock_;
  net::AsioLoop loop_{clock_};
  EventHub hub_{clock_, 10};
  std::string bearer_;
  bool whole_urls_ = true;
  std::vector<std::string> pieces_;
};

TEST_F(EventStreamTest, BeginsWithAResetUnlessItGoesOn) {
  const auto first = Open();
  EXPECT_EQ(first->Beginning(), fmt::format("retry: 2000\n\nid: {}\nevent: reset\n"
                                            "data: {{\"reason\":\"start\",\"now_ms\":1800000000000}}\n\n",
                                            hub_.IdOf(0)));
  EXPECT_EQ(Open({}, hub_.IdOf(0))->Beginning(), "retry: 2000\n\n");
  EXPECT_THAT(Open({}, "nonsense")->Beginning(), HasSubstr("\"reason\":\"unknown\""));
  for (size_t i = 0; i <= EventHub::kEventsMax; ++i) PublishLog("x");
  EXPECT_THAT(Open({}, hub_.IdOf(0))->Beginning(), HasSubstr("\"reason\":\"too_old\""));
}

TEST_F(EventStreamTest, WaitsForEventsAndHandsThemOut) {
  const auto stream = Open();
  Ask(*stream);
  RunLoop();
  EXPECT_THAT(pieces_, IsEmpty());
  PublishLog("one");
  PublishLog("two");
  RunLoop();
  EXPECT_THAT(pieces_, ElementsAre(fmt::format("id: {}\nevent: log\ndata: {{\"text\":\"one\"}}\n\n"
                                               "id: {}\nevent: log\ndata: {{\"text\":\"two\"}}\n\n",
                                               hub_.IdOf(1), hub_.IdOf(2))));
  PublishLog("three");
  RunLoop();
  EXPECT_THAT(pieces_, SizeIs(1)) << "the session has not asked";
  Ask(*stream);
  EXPECT_THAT(pieces_, SizeIs(2));
}

TEST_F(EventStreamTest, AClientThatReadsSlowlyHoldsOnePieceAndIsToldWhatItLost) {
  const auto stream = Open();
  Ask(*stream);
  const size_t events = EventHub::kBytesMax / 10'000 / 2;
  for (size_t i = 0; i < events; ++i) PublishLog(std::string(10'000, 'x'));
  RunLoop();
  ASSERT_THAT(pieces_, SizeIs(1));
  EXPECT_LT(pieces_[0].size(), 200'000U) << "a piece is bounded, whatever waits";
  const size_t bytes = stream->bytes();
  for (size_t i = 0; i < 3 * events; ++i) PublishLog(std::string(10'000, 'x'));
  EXPECT_EQ(stream->bytes(), bytes);
  Ask(*stream);
  ASSERT_THAT(pieces_, SizeIs(2));
  EXPECT_THAT(pieces_[1],
              StartsWith(fmt::format("id: {}\nevent: reset\ndata: {{\"reason\":\"slow\"", hub_.IdOf(4 * events))));
  Ask(*stream);
  PublishLog("next");
  RunLoop();
  ASSERT_THAT(pieces_, SizeIs(3));
  EXPECT_THAT(pieces_[2], HasSubstr("next"));
}

TEST_F(EventStreamTest, ACommentComesWhenNothingHappens) {
  const auto stream = Open();
  clock_.Advance(EventStream::kBeat);
  stream->Beat();
  EXPECT_THAT(pieces_, IsEmpty()) << "the session has not sent the piece before";
  Ask(*stream);
  stream->Beat();
  EXPECT_THAT(pieces_, ElementsAre(": still here\n\n"));
  Ask(*stream);
  clock_.Advance(EventStream::kBeat - Millis(1));
  stream->Beat();
  EXPECT_THAT(pieces_, SizeIs(1));
  PublishLog("x");
  RunLoop();
  ASSERT_THAT(pieces_, SizeIs(2));
  Ask(*stream);
  clock_.Advance(Millis(1));
  stream->Beat();
  EXPECT_THAT(pieces_, SizeIs(2)) << "there was an event a moment ago";
}

TEST_F(EventStreamTest, ATokenWithAPrefixHearsOfItsTopicsAlone) {
  const auto stream = Open({.prefix = "a-", .node = false});
  Ask(*stream);
  PublishLog("of the node");
  PublishLog("of another", "b-1");
  hub_.Publish(EventKind::kFigures, {}, FiguresEvent{});
  TopicsEvent topics{.seconds = 1, .topics = {{.topic = "a-1"}, {.topic = "b-1"}}, .busiest = {}};
  topics.busiest["a-"] = {.changed = 3, .places = {0}};
  topics.busiest[""] = {.changed = 4, .places = {1, 0}};
  hub_.Publish(EventKind::kTopic, {}, std::move(topics));
  PublishLog("of its own", "a-1");
  RunLoop();
  ASSERT_THAT(pieces_, SizeIs(1));
  EXPECT_THAT(pieces_[0], StartsWith(fmt::format("id: {}\nevent: topic\n", hub_.IdOf(4))));
  EXPECT_THAT(pieces_[0], HasSubstr("\"name\":\"a-1\""));
  EXPECT_THAT(pieces_[0], HasSubstr("\"more\":2}"));
  EXPECT_THAT(pieces_[0], HasSubstr("of its own"));
  EXPECT_THAT(pieces_[0], Not(HasSubstr("b-1")));
  EXPECT_THAT(pieces_[0], Not(HasSubstr("of another")));
}

TEST_F(EventStreamTest, EndsWithTheRightsOfItsToken) {
  const auto [token, tokens] = auth::OneToken("a-");
  bearer_ = "Bearer " + token;
  const auto stream = Open({.prefix = "a-"});
  EXPECT_TRUE(stream->StillAllowed(tokens.get()));
  EXPECT_FALSE(stream->StillAllowed(auth::OneToken("a-").second.get())) << "it was revoked";
  EXPECT_FALSE(Open({.prefix = "a"})->StillAllowed(tokens.get())) << "it has another prefix now";
  whole_urls_ = false;
  EXPECT_FALSE(Open({.prefix = "a-"})->StillAllowed(tokens.get()));
}

TEST(ParseEvents, KindsAndTopics) {
  EXPECT_EQ(*ParseEventKinds(""), UINT32_MAX);
  EXPECT_EQ(*ParseEventKinds("figures,log"), 1U << 0 | 1U << 7);
  EXPECT_EQ(ParseEventKinds("figures,sun").error().field, "kinds");
  EXPECT_THAT(*ParseEventTopics("b,a,b"), ElementsAre("a", "b"));
  EXPECT_EQ(ParseEventTopics("a,b c").error().field, "topics");
}

}  // namespace
}  // namespace tocsin::http
