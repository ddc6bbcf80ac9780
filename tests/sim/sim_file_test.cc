#include "sim/sim_file.h"

#include <array>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tocsin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string Content(FileSystem& fs, const std::string& path) {
  auto file = fs.Open(path, OpenMode::kRead);
  if (!file) return "(no such file)";
  std::string bytes((*file)->Size().value(), '\0');
  EXPECT_EQ((*file)->Read(0, bytes).value(), bytes.size());
  return bytes;
}

class SimFileTest : public testing::Test {
 protected:
  /// A file with a durable name and the durable content "base".
  std::unique_ptr<File> DurableFile(const std::string& path = "f") {
    auto file = fs_.Open(path, OpenMode::kCreate).value();
    EXPECT_TRUE(file->Write(0, "base"));
    EXPECT_TRUE(file->Sync());
    EXPECT_TRUE(fs_.SyncDir("."));
    return file;
  }
  std::string After(Survive choice, uint64_t seed = 0, const std::string& path = "f") {
    return Content(*fs_.Survivors(choice, seed), path);
  }

  SimFileSystem fs_;
};

TEST_F(SimFileTest, BehavesAsAFileSystem) {
  ASSERT_TRUE(fs_.MakeDir("d"));
  ASSERT_TRUE(fs_.MakeDir("d"));
  EXPECT_FALSE(fs_.MakeDir("x/y"));
  EXPECT_FALSE(fs_.Open("x/f", OpenMode::kCreate));
  EXPECT_FALSE(fs_.Open("d/f", OpenMode::kWrite));
  auto file = fs_.Open("d/f", OpenMode::kCreate).value();
  EXPECT_FALSE(fs_.Open("d/f", OpenMode::kCreate));
  ASSERT_TRUE(file->Write(0, "hello"));
  ASSERT_TRUE(file->Write(7, "you"));
  EXPECT_EQ(Content(fs_, "d/f"), std::string("hello\0\0you", 10));
  ASSERT_TRUE(fs_.CutOff("d/f", 4));
  EXPECT_EQ(Content(fs_, "d/f"), "hell");
  std::array<char, 8> out;
  EXPECT_EQ(file->Read(2, out).value(), 2U);
  EXPECT_EQ(file->Read(9, out).value(), 0U);
  ASSERT_TRUE(fs_.Open("d/g", OpenMode::kCreate));
  EXPECT_THAT(fs_.List("d").value(), ElementsAre("f", "g"));
  EXPECT_THAT(fs_.List(".").value(), ElementsAre("d"));
  EXPECT_FALSE(fs_.List("e"));
  ASSERT_TRUE(fs_.Remove("d/f"));
  EXPECT_THAT(fs_.List("d").value(), ElementsAre("g"));
  EXPECT_FALSE(fs_.Remove("d/f"));
  EXPECT_TRUE(file->Write(0, "still open")) << "as on any Unix";
}

TEST_F(SimFileTest, UnsyncedDataMayBeLostAndSyncedDataNot) {
  const auto file = DurableFile();
  ASSERT_TRUE(file->Write(4, "-more"));
  EXPECT_EQ(After(Survive::kNothing), "base");
  EXPECT_EQ(After(Survive::kAll), "base-more");
  ASSERT_TRUE(file->Sync());
  EXPECT_EQ(After(Survive::kNothing), "base-more");
}

TEST_F(SimFileTest, APrefixIsWhatAnOrderedDiskWouldHold) {
  const auto one = DurableFile("one");
  const auto two = DurableFile("two");
  ASSERT_TRUE(one->Write(0, "1"));
  ASSERT_TRUE(two->Write(0, "2"));
  ASSERT_TRUE(one->Write(1, "3"));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto left = fs_.Survivors(Survive::kPrefix, seed);
    seen.insert(Content(*left, "one") + " " + Content(*left, "two"));
  }
  EXPECT_THAT(seen, ElementsAre("13se 2ase", "1ase 2ase", "1ase base", "base base"));
}

TEST_F(SimFileTest, SectorsAreKeptOrLostOneByOne) {
  const auto file = DurableFile();
  ASSERT_TRUE(file->Write(0, std::string(3 * 512, 'a')));
  ASSERT_TRUE(file->Sync());
  ASSERT_TRUE(file->Write(100, std::string(1024, 'b')));  // touches three sectors
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::string bytes = After(Survive::kSectors, seed);
    ASSERT_EQ(bytes.size(), 3U * 512);
    seen.insert({bytes[100], bytes[511], bytes[512], bytes[1023], bytes[1024], bytes[1123]});
    EXPECT_EQ(bytes[99], 'a');
    EXPECT_EQ(bytes[1124], 'a');
  }
  EXPECT_EQ(seen.size(), 8U);
  for (const std::string& each : seen) {
    EXPECT_EQ(each[0], each[1]);
    EXPECT_EQ(each[2], each[3]);
    EXPECT_EQ(each[4], each[5]);
  }
}

TEST_F(SimFileTest, ATornWriteEndsInTheMiddle) {
  const auto file = DurableFile();
  ASSERT_TRUE(file->Write(4, "whole"));
  ASSERT_TRUE(file->Write(9, "torn"));
  std::set<std::string> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) seen.insert(After(Survive::kTorn, seed));
  EXPECT_THAT(seen, ElementsAre("basewhole", "basewholet", "basewholeto", "basewholetor"));
}

TEST_F(SimFileTest, NamesAreDurableAfterTheSyncOfTheirFolderAlone) {
  const auto file = fs_.Open("new", OpenMode::kCreate).value();
  ASSERT_TRUE(file->Write(0, "x"));
  ASSERT_TRUE(file->Sync());
  EXPECT_EQ(After(Survive::kNothing, 0, "new"), "(no such file)");
  ASSERT_TRUE(fs_.SyncDir("."));
  EXPECT_EQ(After(Survive::kNothing, 0, "new"), "x");
  ASSERT_TRUE(fs_.Remove("new"));
  EXPECT_EQ(After(Survive::kNothing, 0, "new"), "x");
  EXPECT_EQ(After(Survive::kAll, 0, "new"), "(no such file)");
  ASSERT_TRUE(fs_.SyncDir("."));
  EXPECT_EQ(After(Survive::kNothing, 0, "new"), "(no such file)");
}

TEST_F(SimFileTest, NameChangesAreKeptInTheirOrder) {
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(fs_.Open(name, OpenMode::kCreate));
  for (const Survive choice : {Survive::kPrefix, Survive::kSectors}) {
    std::set<std::vector<std::string>> seen;
    for (uint64_t seed = 0; seed < 100; ++seed) seen.insert(fs_.Survivors(choice, seed)->List(".").value());
    EXPECT_THAT(seen, ElementsAre(IsEmpty(), ElementsAre("a"), ElementsAre("a", "b"), ElementsAre("a", "b", "c")));
  }
}

TEST_F(SimFileTest, AFolderWhoseNameIsNotDurableTakesItsFilesAlong) {
  ASSERT_TRUE(fs_.MakeDir("d"));
  ASSERT_TRUE(fs_.Open("d/f", OpenMode::kCreate));
  ASSERT_TRUE(fs_.SyncDir("d"));
  EXPECT_FALSE(fs_.Survivors(Survive::kNothing, 0)->List("d"));
  ASSERT_TRUE(fs_.SyncDir("."));
  EXPECT_THAT(fs_.Survivors(Survive::kNothing, 0)->List("d").value(), ElementsAre("f"));
}

TEST_F(SimFileTest, TheSameSeedLeavesTheSame) {
  const auto file = DurableFile();
  for (uint64_t i = 0; i < 50; ++i)
    ASSERT_TRUE(file->Write(i * 300, std::string(700, static_cast<char>('a' + i % 20))));
  for (const Survive choice : {Survive::kPrefix, Survive::kSectors, Survive::kTorn}) {
    EXPECT_EQ(After(choice, 7), After(choice, 7));
    EXPECT_NE(After(choice, 7), After(choice, 8));
  }
}

TEST_F(SimFileTest, FaultsHitTheNthOperationOfTheirKind) {
  const auto file = DurableFile();
  fs_.FailNth(SimOp::kWrite, 2);
  EXPECT_TRUE(file->Write(4, "1"));
  EXPECT_TRUE(file->Sync());
  const Status failed = file->Write(5, "2");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kIo);
  EXPECT_TRUE(file->Write(5, "3"));
  EXPECT_EQ(Content(fs_, "f"), "base13");

  fs_.FailNth(SimOp::kOpen, 1, Code::kStorageFull);
  EXPECT_EQ(fs_.Open("f", OpenMode::kRead).error().code, Code::kStorageFull);
  for (const SimOp op : {SimOp::kAny, SimOp::kList}) {
    fs_.FailNth(op, 1);
    EXPECT_FALSE(fs_.List("."));
    EXPECT_TRUE(fs_.List("."));
  }
  fs_.FailNth(SimOp::kCreate, 1);
  EXPECT_FALSE(fs_.Open("g", OpenMode::kCreate));
  EXPECT_THAT(fs_.List(".").value(), ElementsAre("f"));
}

TEST_F(SimFileTest, AFailedSyncDropsTheDataAndTheNextOneSucceedsWithoutIt) {
  const auto file = DurableFile();
  const auto other = DurableFile("other");
  ASSERT_TRUE(file->Write(4, "-lost"));
  ASSERT_TRUE(other->Write(4, "-kept"));
  fs_.FailNth(SimOp::kSync, 1);
  EXPECT_FALSE(file->Sync());
  EXPECT_EQ(Content(fs_, "f"), "base");
  EXPECT_TRUE(file->Sync());
  EXPECT_TRUE(other->Sync());
  EXPECT_EQ(After(Survive::kAll), "base");
  EXPECT_EQ(After(Survive::kNothing, 0, "other"), "base-kept");
}

TEST_F(SimFileTest, TheQuotaCanBeRaisedAndFreed) {
  const auto file = DurableFile();
  fs_.SetQuota(6);
  const Status full = file->Write(4, "1234");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kStorageFull);
  EXPECT_EQ(Content(fs_, "f"), "base12") << "what fits is written, as disks do";
  EXPECT_EQ(fs_.BytesUsed(), 6U);
  EXPECT_TRUE(file->Write(0, "BASE")) << "overwriting needs no space";
  fs_.SetQuota(8);
  EXPECT_TRUE(file->Write(4, "1234"));
  ASSERT_TRUE(fs_.Remove("f"));
  EXPECT_EQ(fs_.BytesUsed(), 0U);
}

TEST_F(SimFileTest, AfterAPowerCutEverythingFails) {
  const auto file = DurableFile();
  const uint64_t start = fs_.IoCount();
  fs_.LosePowerAt(start + 1);
  EXPECT_TRUE(file->Write(4, "1"));
  EXPECT_EQ(Content(fs_, "f"), "base1") << "reads do not count";
  EXPECT_FALSE(fs_.PowerLost());
  EXPECT_FALSE(file->Write(5, "2"));
  EXPECT_TRUE(fs_.PowerLost());
  EXPECT_FALSE(file->Sync());
  EXPECT_FALSE(file->Size());
  EXPECT_FALSE(fs_.List("."));
  EXPECT_FALSE(fs_.Open("f", OpenMode::kRead));
  EXPECT_EQ(fs_.IoCount(), start + 2);
  EXPECT_EQ(After(Survive::kNothing), "base");
  EXPECT_EQ(After(Survive::kAll), "base12") << "the write that the cut hit may be there";
  EXPECT_TRUE(fs_.Survivors(Survive::kAll, 0)->Open("f", OpenMode::kWrite)) << "the machine is on again";
}

TEST_F(SimFileTest, ASyncThatThePowerCutHitsPromisesNothing) {
  const auto file = DurableFile();
  ASSERT_TRUE(file->Write(4, "1"));
  fs_.LosePowerAt(fs_.IoCount());
  EXPECT_FALSE(file->Sync());
  EXPECT_EQ(After(Survive::kNothing), "base");
  EXPECT_EQ(After(Survive::kAll), "base1");
}

TEST_F(SimFileTest, CallsAreCounted) {
  const auto file = DurableFile();
  EXPECT_EQ(fs_.Calls(SimOp::kCreate), 1U);
  EXPECT_EQ(fs_.Calls(SimOp::kWrite), 1U);
  EXPECT_EQ(fs_.Calls(SimOp::kSync), 1U);
  EXPECT_EQ(fs_.Calls(SimOp::kAny), 4U);
  EXPECT_EQ(fs_.IoCount(), 4U);
}

TEST_F(SimFileTest, BitsRot) {
  const auto file = DurableFile();
  EXPECT_TRUE(fs_.FlipBit("f", 0, 0));
  EXPECT_TRUE(fs_.Corrupt("f", 1, "XY"));
  EXPECT_EQ(Content(fs_, "f"), "cXYe");
  EXPECT_EQ(After(Survive::kNothing), "cXYe");
  EXPECT_FALSE(fs_.FlipBit("f", 4, 0));
  EXPECT_FALSE(fs_.FlipBit("g", 0, 0));
}

TEST_F(SimFileTest, DirectFilesCatchUnalignedAccess) {
  DurableFile();
  const auto direct = fs_.Open("f", OpenMode::kWriteDirect).value();
  struct alignas(kBlock) Block {
    std::array<char, kBlock> bytes{};
  } block;
  EXPECT_TRUE(direct->Write(kBlock, {block.bytes.data(), kBlock}));
  EXPECT_DEATH((void)direct->Write(1, {block.bytes.data(), kBlock}), "invariant");
  EXPECT_DEATH((void)direct->Write(0, {block.bytes.data(), 100}), "invariant");
  EXPECT_DEATH((void)direct->Write(0, {block.bytes.data() + 1, 0}), "invariant");
}

TEST_F(SimFileTest, AFolderIsLockedOnce) {
  auto held = fs_.Lock("d");
  ASSERT_TRUE(held);
  EXPECT_EQ(fs_.Lock("d").error().code, Code::kInUse);
  held->reset();
  EXPECT_TRUE(fs_.Lock("d"));
}

TEST_F(SimFileTest, ThreadsMayShareIt) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto file = fs_.Open(fmt::format("f{}", t), OpenMode::kCreate).value();
      for (uint64_t i = 0; i < 500; ++i) {
        EXPECT_TRUE(file->Write(i * 10, "0123456789"));
        EXPECT_TRUE(file->Sync());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(fs_.BytesUsed(), 4U * 5000);
}

}  // namespace
}  // namespace tocsin
