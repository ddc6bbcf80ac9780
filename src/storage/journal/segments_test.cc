#include "storage/journal/segments.h"

#include <future>

#include <gtest/gtest.h>

#include "sim/hooked_files.h"
#include "sim/sim_file.h"

namespace tocsin::journal {
namespace {

constexpr uint64_t kBytes = 16 << 10;

class SegmentsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(MakeFolder(fs_, "data")); }

  uint64_t NumberIn(const std::string& name) {
    std::string block(kBlock, '\0');
    EXPECT_TRUE((*fs_.Open("data/" + name, OpenMode::kRead))->Read(0, block));
    const auto header = DecodeSegmentHeader(block);
    return header ? header->number : 0;
  }
  size_t Files() { return fs_.List("data")->size(); }

  SimFileSystem fs_;
  Segments segments_{fs_, "data", kBytes, true};
};

TEST_F(SegmentsTest, NumbersRiseFromOne) {
  for (uint64_t number = 1; number <= 3; ++number) {
    ASSERT_TRUE(segments_.TakeNext());
    EXPECT_EQ(segments_.last(), number);
  }
  EXPECT_EQ(segments_.first(), 1U);
  EXPECT_EQ(NumberIn("00000003.segment"), 3U);
}

TEST_F(SegmentsTest, APreparedFileIsDurableWithItsNumber) {
  ASSERT_TRUE(segments_.TakeNext());
  ASSERT_TRUE(segments_.Prepare());
  EXPECT_EQ(segments_.last(), 1U) << "not in use yet";
  auto survivors = fs_.Survivors(Survive::kNothing, 1);
  EXPECT_EQ(survivors->List("data")->size(), 2U);
  EXPECT_EQ(survivors->BytesUsed(), 2 * kBytes);
}

TEST_F(SegmentsTest, FreedFilesAreUsedAgainAndTheRestIsRemoved) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(segments_.TakeNext());
  ASSERT_TRUE(segments_.Free(4));
  EXPECT_EQ(segments_.first(), 4U);
  EXPECT_EQ(Files(), 4U) << "two in use, two free";
  ASSERT_TRUE(segments_.TakeNext());
  EXPECT_EQ(Files(), 4U);
  EXPECT_EQ(NumberIn("00000001.segment"), 6U);
}

TEST_F(SegmentsTest, TheLastFileIsNeverFreed) {
  ASSERT_TRUE(segments_.TakeNext());
  ASSERT_TRUE(segments_.Free(100));
  EXPECT_EQ(segments_.used(), 1U);
}

TEST_F(SegmentsTest, AReserveStandsBehindThePreparedFile) {
  ASSERT_TRUE(segments_.TakeNext());
  ASSERT_TRUE(segments_.Prepare());
  EXPECT_FALSE(segments_.prepared());
  ASSERT_TRUE(segments_.Reserve());
  EXPECT_TRUE(segments_.prepared());
  fs_.SetQuota(0);
  ASSERT_TRUE(segments_.TakeNext());
  ASSERT_TRUE(segments_.TakeNext()) << "the reserve";
  EXPECT_EQ(segments_.TakeNext().error().code, Code::kStorageFull);
}

TEST_F(SegmentsTest, WhoeverFindsAFreeFileDoesNotWaitForTheReserve) {
  HookedFiles files(fs_);
  Segments segments(files, "data", kBytes, true);
  ASSERT_TRUE(segments.TakeNext());
  ASSERT_TRUE(segments.Prepare());
  segments.SetReserve(2);
  int made = 0;
  std::future<bool> took;
  bool in_time = false;
  files.on_sync_dir = [&] {
    if (++made != 2) return;  // one file of the reserve is there, the other is being made
    took = std::async(std::launch::async, [&] { return segments.TakeNext() && segments.TakeNext(); });
    in_time = took.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  };
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(segments.Reserve());
  EXPECT_TRUE(in_time) << "the committer waits while the reserve is made";
  EXPECT_TRUE(took.get());
  EXPECT_EQ(segments.last(), 3U);
}

TEST_F(SegmentsTest, AFileThatIsBeingMadeIsUsedInsteadOfAnother) {
  HookedFiles files(fs_);
  Segments segments(files, "data", kBytes, true);
  ASSERT_TRUE(segments.TakeNext());
  std::future<bool> took;
  files.on_sync_dir = [&] {
    if (!took.valid()) took = std::async(std::launch::async, [&] { return segments.TakeNext().has_value(); });
  };
  ASSERT_TRUE(segments.Reserve());
  EXPECT_TRUE(took.get());
  EXPECT_EQ(segments.last(), 2U);
  EXPECT_EQ(Files(), 2U);
}

TEST_F(SegmentsTest, AFullDiskKeepsNoHalfMadeFile) {
  fs_.SetQuota(kBytes / 2);
  EXPECT_EQ(segments_.Prepare().error().code, Code::kStorageFull);
  EXPECT_EQ(fs_.BytesUsed(), 0U);
  fs_.SetQuota(kBytes);
  EXPECT_TRUE(segments_.Prepare());
}

TEST_F(SegmentsTest, NoFileIsLostOrLeftBehindIfTheSystemOpensNone) {
  for (const SimOp op : {SimOp::kCreate, SimOp::kOpen, SimOp::kSyncDir}) {
    fs_.FailNth(op, 1, Code::kOverloaded);
    EXPECT_EQ(segments_.Prepare().error().code, Code::kOverloaded);
    EXPECT_EQ(Files(), 0U);
  }
  ASSERT_TRUE(segments_.TakeNext());
  ASSERT_TRUE(segments_.Reserve());
  fs_.FailNth(SimOp::kOpen, 1, Code::kOverloaded);
  EXPECT_EQ(segments_.Prepare().error().code, Code::kOverloaded);
  ASSERT_TRUE(segments_.TakeNext());
  EXPECT_EQ(Files(), 2U) << "the reserve is used, not another file";
}

}  // namespace
}  // namespace tocsin::journal
