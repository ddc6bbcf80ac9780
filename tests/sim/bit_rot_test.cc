// Thousands of jobs at rest, and then a bit flips, a file is cut off or goes missing: either the start refuses, naming
// file and offset, or nothing at all is missing. Verify reports what the start refuses, and repair saves all that is
// not in the damaged record itself.
#include <iostream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/hash.h"
#include "sim/sim_node.h"
#include "storage/journal/inspect.h"

namespace tocsin::journal {
namespace {

constexpr size_t kJobs = 3'000;
constexpr size_t kJobsPerRecord = 25;

class BitRot : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(node_.Open());
    node_.store().PutTopic(DefaultTopic("jobs"), [](const Status&) {});
    for (size_t i = 0; i < kJobs; i += kJobsPerRecord) {
      std::vector<std::string> ids;
      std::vector<NewJob> jobs;
      for (size_t j = 0; j < kJobsPerRecord; ++j) ids.push_back(fmt::format("job{}", i + j));
      for (const std::string& id : ids) jobs.push_back({.id = id, .delay = Millis(1'000'000), .payload = "payload"});
      node_.store().Submit("jobs", jobs, node_.clock().Now(), [&](const auto& outcomes) { ASSERT_TRUE(outcomes); });
      node_.Pump();
    }
    if (GetParam()) {
      ASSERT_TRUE(node_.node().Close());
    } else {
      node_.node().journal().SealRest();
      node_.Pump();
    }
    whole_ = StateOf(node_);
    ASSERT_EQ(whole_.size(), kJobs);
  }

  static std::set<std::string> StateOf(SimNode& node) {
    std::set<std::string> ids;
    std::string cursor;
    do {
      node.store().List("jobs", OfState(State::kScheduled), cursor, {1'000}, node.clock().Now(),
                        [&](Result<Page> page) {
                          if (page) {
                            for (const JobView& job : page->jobs.jobs) ids.insert(job.Id());
                          }
                          cursor = page ? page->cursor : "";
                        });
    } while (!cursor.empty());
    return ids;
  }

  std::unique_ptr<SimFileSystem> Copy() { return node_.disk().Survivors(Survive::kNothing, 1); }
  std::vector<std::string> Files() {
    std::vector<std::string> names = *node_.disk().List("data");
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".segment"); });
    return names;
  }

  /// True if the start refuses; otherwise nothing is missing.
  bool Refused(std::unique_ptr<SimFileSystem> disk, const std::string& what) {
    SimNode node(SimNode::SmallOptions(), std::move(disk));
    const Status opened = node.Open();
    if (opened) {
      EXPECT_EQ(StateOf(node), whole_) << what << " was not noticed";
      return false;
    }
    EXPECT_THAT(opened.error().message, testing::ContainsRegex("segment.*offset")) << what;
    const auto report = Verify(node.disk(), "data");
    EXPECT_TRUE(report && !report->damage.empty()) << what << " was not reported";
    return true;
  }

  /// How many jobs are in the repaired folder, which opens.
  size_t Repaired(SimFileSystem& disk) {
    const auto report = Repair(disk, "data", "repaired");
    EXPECT_TRUE(report) << report.error().message;
    if (!report) return 0;
    lost_ = report->jobs_lost;
    auto repaired = disk.Survivors(Survive::kNothing, 1);
    Options options = SimNode::SmallOptions();
    options.folder = "repaired";
    SimNode node(options, std::move(repaired));
    const Status opened = node.Open();
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? StateOf(node).size() : 0;
  }

  SimNode node_;
  std::set<std::string> whole_;
  uint64_t lost_ = 0;
};

TEST_P(BitRot, FlippedBitsAreNoticed) {
  uint64_t flips = 0;
  uint64_t refused = 0;
  for (const std::string& file : Files()) {
    // A step that is no multiple of any size in the format, so that every part of records and headers is met.
    for (uint64_t offset = 0; offset < node_.options().segment_bytes; offset += offset < 32 ? 1 : 613) {
      auto disk = Copy();
      ASSERT_TRUE(disk->FlipBit("data/" + file, offset, static_cast<int>(offset % 8)));
      refused += Refused(std::move(disk), fmt::format("bit {} of {}", offset, file));
      if (HasFailure()) return;
      ++flips;
    }
  }
  EXPECT_GT(refused, flips / 4);
  std::cout << fmt::format("{} flips: {} refused, {} harmless\n", flips, refused, flips - refused);
}

TEST_P(BitRot, RepairSavesTheRest) {
  uint64_t repairs = 0;
  uint64_t least = kJobs;
  uint64_t exact = 0;
  for (const std::string& file : Files()) {
    for (uint64_t offset = 0; offset < node_.options().segment_bytes; offset += offset / kBlock == 1 ? 203 : 4'999) {
      auto disk = Copy();
      ASSERT_TRUE(disk->FlipBit("data/" + file, offset, 3));
      const auto report = Verify(*disk, "data");
      ASSERT_TRUE(report);
      if (report->damage.empty()) continue;
      const size_t saved = Repaired(*disk);
      ++repairs;
      // Of a segment whose header is damaged nothing is lost: its records say where they stand.
      ASSERT_GE(saved, offset < kBlock ? kJobs : kJobs - kJobsPerRecord) << file << " at " << offset;
      // Damage that hides what follows it in the same record makes the report count too few, but never too many.
      ASSERT_LE(lost_, kJobs - saved) << file << " at " << offset;
      exact += lost_ == kJobs - saved ? 1 : 0;
      least = std::min<uint64_t>(least, saved);
    }
  }
  EXPECT_GT(repairs, 10);
  EXPECT_GE(exact * 4, repairs * 3) << "how many jobs were lost is reported";
  std::cout << fmt::format("{} repairs, {} exact, at least {} of {} jobs saved\n", repairs, exact, least, kJobs);
}

TEST_P(BitRot, CutOffFilesAreNoticed) {
  uint64_t refused = 0;
  uint64_t cuts = 0;
  for (const std::string& file : Files()) {
    for (const uint64_t size : {0UL, 100UL, 4'096UL, 5'000UL, 30'000UL, 65'535UL}) {
      auto disk = Copy();
      ASSERT_TRUE(disk->CutOff("data/" + file, size));
      refused += Refused(std::move(disk), fmt::format("{} cut off at {}", file, size));
      ++cuts;
    }
  }
  EXPECT_GT(refused, cuts / 2);
}

TEST_P(BitRot, MissingFilesAreNoticed) {
  uint64_t refused = 0;
  for (const std::string& file : Files()) {
    auto disk = Copy();
    ASSERT_TRUE(disk->Remove("data/" + file) && disk->SyncDir("data"));
    refused += Refused(std::move(disk), file + " removed");
  }
  EXPECT_GE(refused, 3);
}

TEST_P(BitRot, AFolderThatHasLostAllItsSegmentsIsNotTakenForANewOne) {
  for (const bool cut_off : {false, true}) {
    auto disk = Copy();
    for (const std::string& file : Files()) {
      ASSERT_TRUE(cut_off ? disk->CutOff("data/" + file, 0) : disk->Remove("data/" + file).has_value());
    }
    ASSERT_TRUE(disk->SyncDir("data"));
    SimNode node(SimNode::SmallOptions(), std::move(disk));
    const Status opened = node.Open();
    ASSERT_FALSE(opened) << cut_off;
    EXPECT_EQ(opened.error().code, Code::kCorrupt);
    EXPECT_THAT(opened.error().message, testing::HasSubstr("--new"));
    Options options = SimNode::SmallOptions();
    options.begin_anew = true;
    SimNode anew(options, node.disk().Survivors(Survive::kNothing, 1));
    EXPECT_TRUE(anew.Open());
    EXPECT_EQ(StateOf(anew).size(), 0U);
  }
}

TEST_P(BitRot, UnknownFormatIsRefused) {
  for (const std::string& file : Files()) {
    auto disk = Copy();
    std::string block = EncodeSegmentHeader({node_.options().segment_bytes, 1});
    const uint32_t version = kVersion + 1;
    std::memcpy(block.data() + 4, &version, sizeof(version));
    const uint32_t crc = Crc32c(std::string_view(block).substr(4));
    std::memcpy(block.data(), &crc, sizeof(crc));
    ASSERT_TRUE(disk->Corrupt("data/" + file, 0, block));
    SimNode node(SimNode::SmallOptions(), std::move(disk));
    const Status opened = node.Open();
    ASSERT_FALSE(opened) << file;
    EXPECT_EQ(opened.error().code, Code::kUnsupportedFormat);
    EXPECT_THAT(opened.error().message, testing::HasSubstr("version 2"));
  }
}

INSTANTIATE_TEST_SUITE_P(AtRest, BitRot, testing::Bool(),
                         [](const auto& info) { return info.param ? "Closed" : "Crashed"; });

}  // namespace
}  // namespace tocsin::journal
