#include "storage/journal/topic_room.h"

#include <gtest/gtest.h>

#include "sim/sim_node.h"

namespace tocsin::journal {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(TopicRoom, AllLanesTogetherTakeHalfOfASegmentAtMost) {
  EXPECT_EQ(TopicsThatFit(64 * kMiB, 1), 279'620U);  // a lane alone takes a quarter
  EXPECT_EQ(TopicsThatFit(64 * kMiB, 2), 279'620U);
  EXPECT_EQ(TopicsThatFit(64 * kMiB, 16), 34'952U);
  EXPECT_EQ(TopicsThatFit(256 * kMiB, 16), 139'810U);
  for (const uint32_t lanes : {1U, 2U, 3U, 16U, 64U}) {
    EXPECT_LE(TopicTextBytesMax(64 * kMiB, lanes) * lanes, 32 * kMiB) << lanes;
  }
}

TEST(TopicRoom, AStoreTakesAsManyTopicsAsThat) {
  for (const uint32_t shards : {1U, 4U}) {
    Options options = SimNode::SmallOptions();
    options.shards = shards;
    SimNode node(options);
    ASSERT_TRUE(node.Open());
    const uint64_t fit = TopicsThatFit(options.segment_bytes, shards);
    uint64_t taken = 0;
    for (bool more = true; more && taken <= 2 * fit; taken += more ? 1 : 0) {
      Topic topic = DefaultTopic(fmt::format("{:-^30}", taken));
      topic.version = 1'800'000'000'000;  // the service counts from the time of creation
      node.store().PutTopic(topic, [&](const Status& done) { more = done.has_value(); });
      node.Pump();
    }
    EXPECT_GE(taken, fit) << shards;
    EXPECT_LT(taken, fit * 5 / 4) << "the number says too little";
  }
}

}  // namespace
}  // namespace tocsin::journal
