// The journal with nothing on top: group commit, rotation, seals, release, failures; and what Scan reads of it.
#include "storage/journal/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/hooked_files.h"
#include "sim/sim_file.h"
#include "storage/journal/scan.h"

namespace tocsin::journal {
namespace {

constexpr uint64_t kSegment = 16 << 10;

/// Each look at its time for I/O is `step` later than the one before.
class SteppingClock final : public Clock {
 public:
  Moment Now() const override { return clock_.Now(); }
  IoTime IoNow() const override { return now_ += step; }
  void Restore(const ClockPast& past) override { clock_.Restore(past); }
  BootMark Mark() const override { return clock_.Mark(); }

  Millis step{0};

 private:
  VirtualClock clock_;
  mutable IoTime now_{std::chrono::hours(1)};
};

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MakeFolder(*fs_, "data"));
    Start({}, Durability::kFsync);
  }

  void Start(const Scanned& scanned, Durability durability) {
    auto segments = std::make_unique<Segments>(*fs_, "data", kSegment, true);
    segments->Adopt(scanned.used, scanned.free);
    auto journal = Journal::Start({durability, Millis(50), kSegment, 2}, scanned.end, std::move(segments), clock_);
    ASSERT_TRUE(journal) << journal.error().message;
    journal_ = std::move(*journal);
  }

  Appended Append(std::string_view body, uint32_t lane = 0) {
    return journal_->Append(lane, Record(body, lane), clock_.Now(),
                            [&](std::string& out) { out += Record("prologue", lane); });
  }

  std::string Record(std::string_view body, uint32_t lane) {
    std::string record;
    const size_t begin =
        BeginRecord(record, RecordType::kEntries, static_cast<uint16_t>(lane), journal_->generation(), clock_.Now());
    record += body;
    EndRecord(record, begin);
    return record;
  }

  /// The bodies of all records, as they would be read after a power cut that keeps nothing unsynced.
  std::vector<std::string> Read(Scanned* scanned = nullptr) {
    std::vector<std::string> bodies;
    auto survivors = fs_->Survivors(Survive::kNothing, 1);
    auto read = Scan(*survivors, "data", [&](const RecordHeader&, std::string_view body, uint64_t) {
      bodies.emplace_back(body);
      return true;
    });
    EXPECT_TRUE(read && read->damage.empty());
    if (read && scanned != nullptr) *scanned = std::move(*read);
    return bodies;
  }

  std::unique_ptr<SimFileSystem> fs_ = std::make_unique<SimFileSystem>();
  SteppingClock clock_;
  std::unique_ptr<Journal> journal_;
};

TEST_F(JournalTest, AcknowledgesAGroupAfterOneSync) {
  const Lsn first = Append("one").end;
  const Lsn second = Append("two", 1).end;
  EXPECT_LT(journal_->acknowledged(), first);
  EXPECT_THAT(Read(), testing::IsEmpty());
  const uint64_t syncs = fs_->Calls(SimOp::kSync);
  EXPECT_TRUE(journal_->Commit());
  EXPECT_EQ(fs_->Calls(SimOp::kSync), syncs + 1);
  EXPECT_EQ(journal_->acknowledged(), second);
  EXPECT_THAT(Read(), testing::ElementsAre("prologue", "one", "prologue", "two"));
  EXPECT_FALSE(journal_->Commit()) << "there is nothing left";
}

TEST_F(JournalTest, WithoutFsyncItAcknowledgesAfterTheWrite) {
  Scanned scanned;
  Read(&scanned);
  Start(scanned, Durability::kInterval);
  const Lsn end = Append("one").end;
  journal_->Commit();
  EXPECT_EQ(journal_->acknowledged(), end);
  EXPECT_THAT(Read(), testing::IsEmpty());
  journal_->Sync();
  EXPECT_THAT(Read(), testing::ElementsAre("prologue", "one"));
}

TEST_F(JournalTest, EachSegmentBeginsWithAPrologue) {
  std::vector<std::string> expected;
  for (int i = 0; i < 6; ++i) {
    if (i % 2 == 0) expected.emplace_back("prologue");
    expected.emplace_back(5'000, static_cast<char>('a' + i));
    EXPECT_EQ(Append(expected.back()).segment, 1U + static_cast<uint64_t>(i) / 2);
  }
  EXPECT_TRUE(journal_->Commit());
  EXPECT_EQ(journal_->last_segment(), 3U);
  EXPECT_EQ(Read(), expected);
}

TEST_F(JournalTest, ACloseRecordPromisesNothingThatIsNotDurable) {
  const uint64_t before = fs_->IoCount();
  for (int i = 0; i < 6; ++i) Append(std::string(5'000, 'a'));
  journal_->Commit();
  const uint64_t after = fs_->IoCount();
  ASSERT_GT(after, before + 6);
  for (uint64_t io = before; io < after; ++io) {
    fs_ = std::make_unique<SimFileSystem>();
    SetUp();
    ASSERT_EQ(fs_->IoCount(), before);
    for (int i = 0; i < 6; ++i) Append(std::string(5'000, 'a'));  // three segments, and nobody has prepared any
    fs_->LosePowerAt(io);
    journal_->Commit();
    Read();
    ASSERT_FALSE(HasFailure()) << "power lost at " << io;
    journal_.reset();
  }
}

TEST_F(JournalTest, NoTwoFilesHaveOneNumber) {
  Append("one");
  journal_->Commit();
  journal_->Maintain();
  // A power cut: the prepared file has the next number already, and the reserve has none.
  Scanned scanned;
  Read(&scanned);
  auto survivors = fs_->Survivors(Survive::kNothing, 1);
  journal_.reset();
  fs_ = std::move(survivors);
  Start(scanned, Durability::kFsync);
  for (int i = 0; i < 3; ++i) Append(std::string(5'000, 'a'));
  journal_->Commit();
  EXPECT_EQ(journal_->last_segment(), 2U);
  EXPECT_EQ(Read().size(), 7U);
}

TEST_F(JournalTest, WhatWasCutOffStaysCutOff) {
  // Two records in a torn group: the first is lost, the second is whole and stays behind on the disk.
  const auto none = [](std::string&) {};
  std::string seal;
  EncodeSeal(seal, {.first_needed = 1, .mark = {}});
  const size_t seal_bytes = sizeof(RecordHeader) + seal.size();
  // Up to the end of its block: padding with zeros would leave nothing behind.
  const size_t lost_bytes = kBlock - seal_bytes;
  const std::string lost(lost_bytes - sizeof(RecordHeader), 'l');
  const Lsn lost_end = journal_->Append(0, Record(lost, 0), clock_.Now(), none).end;
  journal_->Append(0, Record("left behind", 0), clock_.Now(), none);
  journal_->Commit();
  ASSERT_TRUE(fs_->FlipBit("data/00000001.segment", lost_end % kSegment - 1, 0));
  Scanned scanned;
  EXPECT_THAT(Read(&scanned), testing::IsEmpty());
  // The next server's records end exactly where it begins.
  journal_.reset();
  Start(scanned, Durability::kFsync);
  const std::string fresh(lost_bytes - seal_bytes - sizeof(RecordHeader), 'f');
  EXPECT_EQ(journal_->Append(0, Record(fresh, 0), clock_.Now(), none).end, lost_end);
  journal_->Commit();
  EXPECT_THAT(Read(), testing::ElementsAre(fresh));
}

TEST_F(JournalTest, FreesWhatNoLaneNeedsOnceThatIsDurable) {
  for (int i = 0; i < 6; ++i) Append(std::string(5'000, 'a'));
  Append("other lane", 1);
  journal_->Commit();
  journal_->Release(0, 3);
  EXPECT_EQ(journal_->first_needed(), 1U) << "lane 1 has not released anything";
  journal_->Release(1, 3);
  EXPECT_EQ(journal_->first_needed(), 3U);
  journal_->Maintain();
  EXPECT_EQ(journal_->segments(), 3U) << "the seal is not durable yet";
  journal_->Commit();
  journal_->Maintain();
  EXPECT_EQ(journal_->segments(), 1U);
  Scanned scanned;
  Read(&scanned);
  EXPECT_EQ(scanned.end.first_needed, 3U);
}

TEST_F(JournalTest, ALaneNeedsItsOwnPrologue) {
  Append("early", 1);
  for (int i = 0; i < 6; ++i) Append(std::string(5'000, 'a'));
  journal_->Release(0, 4);
  journal_->Release(1, 4);
  EXPECT_EQ(journal_->first_needed(), 1U) << "the topics of lane 1 are named in segment 1 alone";
}

TEST_F(JournalTest, EpochsRise) {
  EXPECT_EQ(journal_->generation(), 1U);
  Append("one");
  ASSERT_TRUE(journal_->Close());
  Scanned scanned;
  Read(&scanned);
  Start(scanned, Durability::kFsync);
  EXPECT_EQ(journal_->generation(), 2U);
  Append("two");
  journal_->Commit();
  EXPECT_THAT(Read(), testing::ElementsAre("prologue", "one", "prologue", "two"));
}

TEST_F(JournalTest, AFailedSyncEndsAllAcknowledgements) {
  int notices = 0;
  journal_->OnAcknowledged([&] { ++notices; });
  const Lsn before = journal_->acknowledged();
  Append("one");
  fs_->FailNth(SimOp::kSync, 1);
  EXPECT_FALSE(journal_->Commit());
  EXPECT_TRUE(journal_->failed());
  EXPECT_EQ(notices, 1) << "who waits is told";
  EXPECT_EQ(journal_->error().code, Code::kStorageFailed);
  Append("two");
  EXPECT_FALSE(journal_->Commit());
  EXPECT_EQ(journal_->acknowledged(), before);
  EXPECT_FALSE(journal_->Close());
}

TEST_F(JournalTest, ASealTellsDamageFromATornTail) {
  for (const bool sealed : {false, true}) {
    const Lsn end = Append("the last one").end;
    journal_->Commit();
    if (sealed) journal_->SealRest();
    auto survivors = fs_->Survivors(Survive::kNothing, 1);
    ASSERT_TRUE(survivors->FlipBit("data/00000001.segment", end % kSegment - 1, 0));
    const auto scanned = Scan(*survivors, "data", [](const RecordHeader&, std::string_view, uint64_t) { return true; });
    ASSERT_TRUE(scanned);
    EXPECT_EQ(scanned->damage.size(), sealed ? 1U : 0U);
    if (sealed) EXPECT_THAT(RefuseDamage(*scanned).error().message, testing::HasSubstr("00000001.segment at offset"));
  }
}

TEST_F(JournalTest, TheSegmentsThatAreMissingAreNamed) {
  for (int i = 0; i < 18; ++i) Append(std::string(5'000, 'a'));
  journal_->Commit();
  ASSERT_EQ(journal_->last_segment(), 9U);
  journal_.reset();
  const auto damage_without = [&](std::initializer_list<int> missing) {
    auto survivors = fs_->Survivors(Survive::kNothing, 1);
    for (const int number : missing) EXPECT_TRUE(survivors->Remove(fmt::format("data/{:08}.segment", number)));
    const auto scanned = Scan(*survivors, "data", [](const RecordHeader&, std::string_view, uint64_t) { return true; });
    return scanned && !scanned->damage.empty() ? scanned->damage.front().what : "";
  };
  EXPECT_EQ(damage_without({2}), "segment 2 is missing");
  EXPECT_EQ(damage_without({1}), "segment 1 is missing");
  EXPECT_EQ(damage_without({1, 2, 3}), "segments 1 to 3 are missing");
  EXPECT_EQ(damage_without({2, 5, 6, 7}), "segments 2, 5 to 7 are missing");
}

TEST_F(JournalTest, BuffersAreUsedAgain) {
  EXPECT_EQ(journal_->Buffer().capacity(), std::string().capacity());
  std::string record = Record("one", 0);
  record.reserve(kRecordTarget);
  const char* const memory = record.data();
  journal_->Append(0, std::move(record), clock_.Now(), [](std::string&) {});
  journal_->Commit();
  const std::string again = journal_->Buffer();
  EXPECT_EQ(again.data(), memory);
  EXPECT_TRUE(again.empty());
}

TEST_F(JournalTest, ASlowDiskIsLoggedWhenItBeginsAndWhenItEnds) {
  const auto sync = [this](Millis takes) {
    clock_.step = takes;
    Append("a");
    testing::internal::CaptureStderr();
    journal_->Commit();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(sync(Millis(500)), "");
  EXPECT_THAT(sync(Millis(501)), testing::EndsWith(" warning slow_disk state=begin sync_ms=501 limit_ms=500\n"));
  EXPECT_EQ(sync(Millis(900)), "") << "it is still slow";
  EXPECT_THAT(sync(Millis(1)), testing::ContainsRegex(" warning slow_disk state=end lasted_ms=[0-9]+ times=1\n$"));
  EXPECT_EQ(sync(Millis(1)), "");
}

TEST_F(JournalTest, AFullDiskIsLoggedOnceAndSoIsItsEnd) {
  journal_->Maintain();
  fs_->SetQuota(0);
  for (int i = 0; i < 3; ++i) Append(std::string(5'000, 'a'));
  journal_->Commit();
  const auto maintain = [this] {
    testing::internal::CaptureStderr();
    journal_->Maintain();
    journal_->Maintain();
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(maintain(), testing::ContainsRegex("^[^ ]+ warning disk_full state=begin error=\"[^\n]*no space left "
                                                 "on device[^\n]*\" new_jobs=refused\n$"));
  clock_.step = Millis(100);
  EXPECT_EQ(maintain(), "");
  fs_->SetQuota(UINT64_MAX);
  EXPECT_THAT(maintain(), testing::ContainsRegex("^[^ ]+ warning disk_full state=end lasted_ms=[0-9]+ times=1\n$"));
}

TEST_F(JournalTest, AFullDiskIsNoFailure) {
  journal_->Maintain();
  EXPECT_TRUE(journal_->has_room());
  fs_->SetQuota(0);
  for (int i = 0; i < 3; ++i) Append(std::string(5'000, 'a'));
  EXPECT_TRUE(journal_->Commit());
  journal_->Maintain();
  EXPECT_FALSE(journal_->has_room());
  EXPECT_FALSE(journal_->failed());
  fs_->SetQuota(UINT64_MAX);
  journal_->Maintain();
  EXPECT_TRUE(journal_->has_room());
}

TEST_F(JournalTest, AStopOnAFullDiskKeepsWhatHasRoomAndIsNoFailure) {
  fs_->SetQuota(0);
  const Lsn fits = Append("fits").end;
  Lsn last = 0;
  for (int i = 0; i < 3; ++i) last = Append(std::string(5'000, 'a')).end;  // the last one needs another segment
  const Status closed = journal_->Close();
  EXPECT_TRUE(closed) << closed.error().message;
  EXPECT_GT(journal_->acknowledged(), fits);
  EXPECT_LT(journal_->acknowledged(), last);
  EXPECT_EQ(journal_->error().code, Code::kUnavailable) << "a part of a call that waits may be stored";
  Scanned scanned;
  EXPECT_EQ(Read(&scanned).size(), 4U) << "a prologue and what had room";
  fs_->SetQuota(UINT64_MAX);
  Start(scanned, Durability::kFsync);
  Append("next");
  EXPECT_TRUE(journal_->Commit());
  EXPECT_EQ(Read().back(), "next");
}

TEST_F(JournalTest, AStopDoesNotWaitForTheWholeReserve) {
  HookedFiles files(*fs_);
  ASSERT_TRUE(MakeFolder(files, "other"));
  const auto journal = Journal::Start({Durability::kFsync, Millis(50), kSegment, 1}, {},
                                      std::make_unique<Segments>(files, "other", kSegment, true), clock_);
  ASSERT_TRUE(journal);
  (*journal)->NotePrologue(0, 10 * kSegment);  // the reserve has dozens of files
  int made = 0;
  files.on_sync_dir = [&] {
    if (++made == 3) EXPECT_TRUE((*journal)->Close());
  };
  (*journal)->Maintain();
  EXPECT_EQ(made, 3);
}

TEST_F(JournalTest, AFileThatTheSystemDoesNotOpenForNowIsNoFailure) {
  journal_->Maintain();
  for (int i = 0; i < 3; ++i) Append(std::string(5'000, 'a'));
  EXPECT_TRUE(journal_->Commit());
  fs_->FailNth(SimOp::kOpen, 1, Code::kOverloaded);
  journal_->Maintain();
  EXPECT_FALSE(journal_->has_room());
  fs_->FailNth(SimOp::kOpen, 1, Code::kOverloaded);
  for (int i = 0; i < 2; ++i) Append(std::string(5'000, 'b'));
  const Lsn end = Append("last").end;
  EXPECT_TRUE(journal_->Commit()) << "waits for the next segment";
  EXPECT_EQ(journal_->last_segment(), 3U);
  EXPECT_EQ(journal_->acknowledged(), end);
  EXPECT_FALSE(journal_->failed());
  journal_->Maintain();
  EXPECT_TRUE(journal_->has_room());
}

}  // namespace
}  // namespace tocsin::journal
