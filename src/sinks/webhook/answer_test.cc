#include "sinks/webhook/answer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tocsin::webhook {
namespace {

using State = AnswerReader::State;

constexpr AnswerReader::Bounds kKeep{.body_bytes = 100, .keep_body = true};

State FeedAll(AnswerReader& reader, std::string_view bytes, size_t piece) {
  State state = State::kMore;
  while (!bytes.empty() && state == State::kMore) {
    state = reader.Feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return state;
}

class AnswerTest : public testing::TestWithParam<size_t> {
 protected:
  State Feed(std::string_view bytes) {
    reader_.Begin(kKeep);
    return FeedAll(reader_, bytes, GetParam());
  }
  const Answer& answer() { return reader_.answer(); }

  AnswerReader reader_;
};

TEST_P(AnswerTest, AnAnswerWithALength) {
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), State::kDone);
  EXPECT_EQ(answer().status, 200);
  EXPECT_EQ(answer().phrase, "OK");
  EXPECT_EQ(answer().body, "hello");
  EXPECT_TRUE(answer().whole);
  EXPECT_TRUE(answer().keep_alive);
}

TEST_P(AnswerTest, OneWithoutABody) {
  EXPECT_EQ(Feed("HTTP/1.1 204 No Content\r\n\r\n"), State::kDone);
  EXPECT_TRUE(answer().keep_alive);
  EXPECT_EQ(Feed("HTTP/1.1 500 \r\ncontent-length: 0\r\n\r\n"), State::kDone) << "the phrase may be missing";
  EXPECT_EQ(answer().phrase, "");
}

TEST_P(AnswerTest, OneInChunks) {
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nt: u\r\n\r\n"),
            State::kDone);
  EXPECT_EQ(answer().body, "abcde");
  EXPECT_TRUE(answer().keep_alive);
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), State::kDone);
  EXPECT_EQ(answer().body, "");
  EXPECT_TRUE(answer().keep_alive);
}

TEST_P(AnswerTest, ATrailerOverTheBoundEndsIt) {
  const std::string head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n";
  EXPECT_EQ(Feed(head + "x: " + std::string(net::ChunkedDecoder::kTrailerBytesMax, 'y')), State::kDone);
  EXPECT_EQ(answer().status, 200);
  EXPECT_FALSE(answer().whole);
}

TEST_P(AnswerTest, OneThatEndsWithTheConnection) {
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\n\r\nabc"), State::kMore);
  EXPECT_EQ(reader_.End(true), State::kDone);
  EXPECT_EQ(answer().body, "abc");
  EXPECT_TRUE(answer().whole);
  EXPECT_FALSE(answer().keep_alive);
}

TEST_P(AnswerTest, OneThatAsksToClose) {
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"), State::kDone);
  EXPECT_FALSE(answer().keep_alive);
  EXPECT_EQ(Feed("HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"), State::kDone);
  EXPECT_FALSE(answer().keep_alive);
}

TEST_P(AnswerTest, InterimAnswersAreSkipped) {
  EXPECT_EQ(Feed("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nretry-after: 1\r\n\r\n"
                 "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"),
            State::kDone);
  EXPECT_EQ(answer().status, 202);
  EXPECT_EQ(answer().retry_after, "");
  EXPECT_EQ(Feed("HTTP/1.1 101 Switching Protocols\r\n\r\n"), State::kBroken);
}

TEST_P(AnswerTest, ABodyOverTheBoundIsNotRead) {
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\ncontent-length: 101\r\n\r\n"), State::kDone);
  EXPECT_FALSE(answer().whole);
  EXPECT_FALSE(answer().keep_alive);
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\n\r\n" + std::string(101, 'x')), State::kDone);
  EXPECT_FALSE(answer().whole);
  EXPECT_EQ(Feed("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\n" + std::string(100, 'x') + "\r\n1\r\ny"),
            State::kDone);
  EXPECT_FALSE(answer().keep_alive);
}

TEST_P(AnswerTest, ABodyThatBreaksOffLeavesTheStatus) {
  EXPECT_EQ(Feed("HTTP/1.1 201 Created\r\ncontent-length: 9\r\n\r\nabc"), State::kMore);
  EXPECT_EQ(reader_.End(false), State::kDone);
  EXPECT_EQ(answer().status, 201);
  EXPECT_FALSE(answer().whole);
  EXPECT_EQ(Feed("HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"), State::kDone);
  EXPECT_FALSE(answer().whole);
}

TEST_P(AnswerTest, HeadersOverTheBoundBreakIt) {
  const std::string line = "x-y: " + std::string(1000, 'z') + "\r\n";
  std::string long_head = "HTTP/1.1 200 OK\r\n";
  while (long_head.size() < 2 * kAnswerHeadBytesMax) long_head += line;
  EXPECT_EQ(Feed(long_head), State::kBroken);
  EXPECT_EQ(Feed("HTTP/1.1 200 " + std::string(2 * kAnswerHeadBytesMax, 'p')), State::kBroken);
  std::string interim;
  while (interim.size() < 2 * kAnswerHeadBytesMax) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(Feed(interim), State::kBroken);
}

TEST_P(AnswerTest, WhatIsNoAnswerBreaksIt) {
  for (const char* text : {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
                           "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"}) {
    // Some of it only shows when nothing more comes.
    EXPECT_TRUE(Feed(text) == State::kBroken || reader_.End(true) == State::kBroken) << text;
    EXPECT_FALSE(reader_.error().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Pieces, AnswerTest, testing::Values(1, 7, 1 << 20));

TEST(AnswerReaderTest, NothingAtAllIsNotStarted) {
  AnswerReader reader;
  reader.Begin(kKeep);
  EXPECT_FALSE(reader.started());
  EXPECT_EQ(reader.End(true), State::kBroken);
  reader.Begin(kKeep);
  EXPECT_EQ(reader.Feed("HTT"), State::kMore);
  EXPECT_TRUE(reader.started());
  EXPECT_EQ(reader.End(true), State::kBroken);
}

TEST(AnswerReaderTest, NothingIsKeptOfAnAnswerThatWasTaken) {
  const std::string body(10'000, 'x');
  AnswerReader reader;
  reader.Begin({.body_bytes = body.size(), .keep_body = true});
  EXPECT_EQ(reader.Feed(fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.size())), State::kMore);
  EXPECT_EQ(FeedAll(reader, body, 4096), State::kDone);
  const Answer answer = reader.TakeAnswer();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, body);
  EXPECT_EQ(reader.answer().status, 0);
  EXPECT_LT(reader.answer().body.capacity(), 100) << "an idle connection has it for as long as it is idle";
}

TEST(AnswerReaderTest, WhatComesAfterTheAnswerEndsTheConnection) {
  AnswerReader reader;
  reader.Begin(kKeep);
  EXPECT_EQ(reader.Feed("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\n"), State::kDone);
  EXPECT_FALSE(reader.answer().keep_alive);
}

TEST(AnswerReaderTest, APhraseIsCutAndHasPrintableBytesAlone) {
  AnswerReader reader;
  reader.Begin(kKeep);
  EXPECT_EQ(reader.Feed("HTTP/1.1 400 B\xc3\xa4" + std::string(200, 'd') + "\r\ncontent-length: 0\r\n\r\n"),
            State::kDone);
  EXPECT_EQ(reader.answer().phrase, "B" + std::string(61, 'd'));
}

}  // namespace
}  // namespace tocsin::webhook
