#include "sinks/rabbitmq/window.h"

#include <gmock/gmock.h>

namespace tocsin::rabbitmq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Seconds = std::chrono::seconds;
using TimePoint = std::chrono::steady_clock::time_point;

class WindowTest : public testing::Test {
 protected:
  WindowTest() {
    for (uint64_t i = 0; i < 100; ++i) {
      JobView job;
      job.uid = i;
      job.token = {.slot = 1, .handle = i, .fence = i};
      batch_->jobs.push_back(job);
    }
  }

  void Add(uint32_t from, uint32_t to, Seconds published = Seconds(0)) {
    for (uint32_t i = from; i <= to; ++i) {
      window_.Add({.batch_id = 1, .index = i, .batch = batch_, .published = TimePoint(published)});
    }
  }
  /// Jobs that were given out: their index, with a minus where the message had come back.
  std::vector<int> Confirm(uint64_t tag, bool multiple = false) {
    given_.clear();
    EXPECT_TRUE(window_.Confirm(tag, multiple, take_));
    return given_;
  }
  bool Return(uint32_t index) {
    const JobView& job = batch_->jobs[index];
    return window_.Return(job.Id(), job.token, "unroutable");
  }

  const std::shared_ptr<JobBatch> batch_ = std::make_shared<JobBatch>();
  Window window_;
  std::vector<int> given_;
  const Window::Take take_ = [this](Handed&& handed, std::string&& returned) {
    given_.push_back(returned.empty() ? static_cast<int>(handed.index) : -static_cast<int>(handed.index));
  };
};

TEST_F(WindowTest, EachIsGivenOutOnceWhateverTheOrder) {
  Add(1, 6);
  EXPECT_THAT(Confirm(3), ElementsAre(3));
  EXPECT_THAT(Confirm(3), IsEmpty()) << "said twice";
  EXPECT_EQ(window_.size(), 5);
  EXPECT_THAT(Confirm(4, true), ElementsAre(1, 2, 4));
  EXPECT_THAT(Confirm(2), IsEmpty()) << "long gone";
  EXPECT_THAT(Confirm(6), ElementsAre(6));
  EXPECT_THAT(Confirm(5), ElementsAre(5));
  EXPECT_TRUE(window_.empty());
  Add(7, 8);
  EXPECT_THAT(Confirm(8), ElementsAre(8)) << "numbers go on";
  EXPECT_THAT(Confirm(0, true), ElementsAre(7)) << "0 is all";
}

TEST_F(WindowTest, WhatWasNeverPublishedIsNotKnown) {
  EXPECT_FALSE(window_.Confirm(1, false, take_));
  Add(1, 2);
  EXPECT_FALSE(window_.Confirm(3, false, take_));
  EXPECT_FALSE(window_.Confirm(3, true, take_));
  EXPECT_FALSE(window_.Confirm(UINT64_MAX, true, take_));
  EXPECT_EQ(window_.size(), 2);
  EXPECT_THAT(given_, IsEmpty());
}

TEST_F(WindowTest, WhatCameBackIsSaidWithItsConfirm) {
  Add(1, 5);
  EXPECT_TRUE(Return(2));
  EXPECT_TRUE(Return(4));
  EXPECT_EQ(window_.size(), 5);
  EXPECT_THAT(Confirm(3, true), ElementsAre(1, -2, 3));
  EXPECT_THAT(Confirm(5, true), ElementsAre(-4, 5));
}

TEST_F(WindowTest, WhatComesBackOutOfOrderIsFoundToo) {
  Add(1, 5);
  EXPECT_TRUE(Return(4));
  EXPECT_TRUE(Return(1));
  EXPECT_FALSE(Return(4)) << "once";
  EXPECT_FALSE(Return(6)) << "not published";
  EXPECT_THAT(Confirm(5, true), ElementsAre(-1, 2, 3, -4, 5));
  EXPECT_FALSE(Return(2)) << "answered";
}

TEST_F(WindowTest, TheSameIdWithAnotherTokenIsAnotherMessage) {
  Add(1, 2);
  EXPECT_FALSE(window_.Return(batch_->jobs[1].Id(), batch_->jobs[2].token, "unroutable"));
}

TEST_F(WindowTest, AfterClearNumbersBeginAnew) {
  Add(1, 4);
  EXPECT_TRUE(Return(3));
  EXPECT_THAT(Confirm(1), ElementsAre(1));
  given_.clear();
  window_.Clear(take_);
  EXPECT_THAT(given_, ElementsAre(2, -3, 4));
  EXPECT_TRUE(window_.empty());
  EXPECT_FALSE(window_.Confirm(1, true, take_)) << "of the channel before";
  Add(5, 6);
  EXPECT_TRUE(Return(5));
  EXPECT_THAT(Confirm(1), ElementsAre(-5));
  EXPECT_THAT(Confirm(2), ElementsAre(6));
}

TEST_F(WindowTest, OnlyWhatMuchLaterOnesOvertookIsGivenUp) {
  Add(1, 2, Seconds(10));
  Add(3, 3, Seconds(14));
  Add(4, 4, Seconds(15));
  const auto give_up = [this] {
    given_.clear();
    window_.GiveOvertaken(Millis(5'000), take_);
    return given_;
  };
  EXPECT_THAT(give_up(), IsEmpty()) << "nothing is confirmed";
  Confirm(3);
  EXPECT_THAT(give_up(), IsEmpty()) << "4 s are too little";
  Confirm(4);
  EXPECT_THAT(give_up(), ElementsAre(1, 2));
  EXPECT_THAT(Confirm(1), IsEmpty()) << "too late";
  EXPECT_TRUE(window_.empty());
  Add(5, 5, Seconds(16));
  EXPECT_THAT(Confirm(5), ElementsAre(5));
}

TEST_F(WindowTest, NothingOfABatchIsHeldOnceItIsGivenOut) {
  Add(1, 3);
  window_.Clear([](Handed&& handed, std::string&&) { const Handed gone = std::move(handed); });
  EXPECT_EQ(batch_.use_count(), 1);
}

}  // namespace
}  // namespace tocsin::rabbitmq
