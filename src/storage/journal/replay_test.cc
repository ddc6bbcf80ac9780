#include "storage/journal/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin::journal {
namespace {

class ReplayTest : public testing::Test {
 protected:
  struct Entries {
    uint16_t lane = 0;
    std::string body;
  };

  ReplayTest() { shards_.push_back(std::make_unique<ShardStore>(use_, 0)); }

  static std::string TopicEntry(uint32_t number, std::string name) {
    std::string out;
    EncodeTopic(out, number, DefaultTopic(std::move(name)));
    return out;
  }
  static std::string DropEntry(uint32_t number) {
    std::string out;
    EncodeDropTopic(out, number);
    return out;
  }
  static std::string PutOf(uint32_t topic, Uid uid) {
    const NewJob job{.payload = "p"};
    std::string body(BodySize(job), '\0');
    EncodeBody(job, body.data());
    PutEntry put;
    put.topic = topic;
    put.uid = uid;
    put.max_attempts = 1;
    put.body = body;
    std::string out;
    EncodePut(out, put, {});
    return out;
  }

  /// Each in a record of its own, in this order. With a look at all of them first, as the repair does.
  void Apply(const std::vector<Entries>& records, bool notes) {
    Replay replay(shards_);
    for (const bool noting : {true, false}) {
      RecordHeader header{};
      header.generation = 1;
      for (const Entries& record : records) {
        header.lane = record.lane;
        header.lsn += 100;
        if (noting && notes) replay.NoteTopics(header, record.body);
        if (!noting) EXPECT_TRUE(replay.Record(header, record.body, 1));
      }
    }
    replay.Finish();
  }

  /// The jobs of a topic.
  std::vector<Uid> JobsOf(std::string_view name) {
    HotTier& tier = shards_.front()->tier();
    std::vector<Uid> uids;
    const TopicNumber topic = tier.FindTopic(name);
    if (topic == kNoTopic) return uids;
    for (Index index = 1; index < tier.end(); ++index) {
      if (!tier.at(index).IsFree() && tier.at(index).topic == topic) uids.push_back(tier.at(index).uid);
    }
    return uids;
  }

  NodeUse use_{0};
  std::vector<std::unique_ptr<ShardStore>> shards_;
};

TEST_F(ReplayTest, ANumberThatAnotherLaneHasDroppedIsNoLaterTopic) {
  const std::vector<Entries> records{
      {0, TopicEntry(0, "gone")}, {1, TopicEntry(7, "gone")},
      {1, DropEntry(7)},          {1, TopicEntry(7, "later") + PutOf(7, 1)},
      {0, PutOf(0, 2)},  // of the topic that is gone
      {0, DropEntry(0)},          {0, TopicEntry(0, "later")},
      {0, PutOf(0, 3)},
  };
  for (const bool notes : {false, true}) {
    Apply(records, notes);
    EXPECT_THAT(JobsOf("later"), testing::UnorderedElementsAre(1, 3)) << notes;
    EXPECT_EQ(shards_.front()->tier().FindTopic("gone"), kNoTopic) << notes;
    shards_.front() = std::make_unique<ShardStore>(use_, 0);
  }
}

TEST_F(ReplayTest, ALaterDefinitionStandsForOneThatIsLost) {
  Apply({{0, PutOf(3, 1)}, {0, TopicEntry(3, "t")}, {0, PutOf(3, 2)}}, true);
  EXPECT_THAT(JobsOf("t"), testing::UnorderedElementsAre(1, 2));
}

// What a program wrote that did not know of times: entries of types 1 to 11, byte by byte.
TEST_F(ReplayTest, EntriesOfAnOlderProgramAreRead) {
  const auto bytes = [](std::string_view hex) {
    std::string out;
    for (size_t i = 0; i < hex.size(); i += 2)
      out.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
    return out;
  };
  const std::string put_1 = bytes("01000100000000000000010003020070");  // waits
  const std::string put_2 = bytes("01000200000000000000010003020070");  // dies below
  const std::string put_3 = bytes(
      "0100030000000000000001000302007"
      "0");  // is done below
  const std::string put_4 = bytes(
      "01000400000000000000050003020100000003"
      "6e6f21"
      "0000020070");  // copied forward, dead
  const std::string move_2 = bytes(
      "020002000000000000000500"
      "03"
      "036e6f21");
  const std::string done_3 = bytes(
      "0400030000000000000088"
      "27");
  Replay replay(shards_);
  RecordHeader header{};
  header.generation = 1;
  header.steady_ms = header.utc_ms = 1'800'000'000'000;
  const auto apply = [&](const std::string& body) {
    header.lsn += 100;
    header.steady_ms += 1'000;
    ASSERT_TRUE(replay.Record(header, body, 1)) << body.size();
  };
  apply(TopicEntry(0, "t") + put_1 + put_2 + put_3 + put_4);
  apply(move_2);
  apply(done_3);
  replay.Finish();
  HotTier& tier = shards_.front()->tier();
  const auto job = [&](Uid uid) { return tier.FindUid(0, uid); };
  EXPECT_EQ(tier.at(job(1)).state, State::kScheduled);
  EXPECT_EQ(tier.DetailsOf(job(1)), nullptr);
  EXPECT_EQ(tier.at(job(2)).state, State::kDead);
  EXPECT_EQ(ToMs(tier.DetailsOf(job(2))->ended), 1'800'000'002'000) << "the record tells";
  EXPECT_EQ(tier.DetailsOf(job(2))->last_attempt, Time{}) << "nobody knows";
  EXPECT_EQ(tier.at(job(3)).state, State::kDone);
  EXPECT_EQ(ToMs(tier.DetailsOf(job(3))->ended), 1'800'000'003'000);
  EXPECT_EQ(tier.at(job(4)).state, State::kDead);
  EXPECT_EQ(tier.DetailsOf(job(4))->reason, "no!");
  EXPECT_EQ(tier.DetailsOf(job(4))->ended, Time{}) << "nobody knows";
}

TEST_F(ReplayTest, AnyNumberIsRead) {
  constexpr uint32_t kHigh = 4'000'000'000;  // as many topics may have been dropped whose jobs were still there
  Apply({{0, TopicEntry(kHigh, "t")}, {0, PutOf(kHigh, 1)}}, false);
  EXPECT_THAT(JobsOf("t"), testing::ElementsAre(1));
}

TEST_F(ReplayTest, TheJobsOfManyDroppedTopicsAreGone) {
  constexpr uint32_t kTopics = 1'000;
  std::vector<Entries> records{{0, TopicEntry(0, "kept")}};
  for (uint32_t i = 1; i <= kTopics; ++i) {
    records.push_back({0, TopicEntry(i, fmt::format("t{}", i)) + PutOf(i, 2 * i) + PutOf(0, 2 * i + 1)});
    if (i % 3 == 0) records.push_back({0, DropEntry(i - 1)});
  }
  for (uint32_t i = 1; i <= kTopics; ++i) {
    if (i % 3 != 2) records.push_back({0, DropEntry(i)});
  }
  // A number that was dropped stands for another topic.
  records.push_back({0, TopicEntry(5, "again") + PutOf(5, 1)});
  Apply(records, false);
  EXPECT_EQ(JobsOf("kept").size(), kTopics);
  EXPECT_THAT(JobsOf("again"), testing::ElementsAre(1));
  EXPECT_EQ(shards_.front()->tier().dropped_jobs(), 0U);
  EXPECT_EQ(shards_.front()->tier().size(), kTopics + 1);
  EXPECT_EQ(use_.topics(), 2U);
}

}  // namespace
}  // namespace tocsin::journal
