#include <gtest/gtest.h>

#include "sim/sim_file.h"
#include "storage/journal/segments.h"

namespace tocsin::journal {
namespace {

class BlockWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = fs_.Open("f", OpenMode::kCreate);
    ASSERT_TRUE(made);
    ASSERT_TRUE((*made)->Write(0, std::string(16 * kBlock, 'x')));
    writer_.Attach(*fs_.Open("f", OpenMode::kWriteDirect), kBlock, {});
  }

  std::string Stored(uint64_t offset, size_t size) {
    std::string bytes(size, '\0');
    EXPECT_TRUE((*fs_.Open("f", OpenMode::kRead))->Read(offset, bytes));
    return bytes;
  }

  SimFileSystem fs_;
  BlockWriter writer_{2 * kBlock};
};

TEST_F(BlockWriterTest, PadsTheLastBlockAndGoesOnInIt) {
  ASSERT_TRUE(writer_.Append("one"));
  ASSERT_TRUE(writer_.Flush());
  EXPECT_EQ(Stored(kBlock, 5), std::string("one\0\0", 5));
  EXPECT_EQ(Stored(2 * kBlock, 1), "x") << "no block behind it is touched";
  ASSERT_TRUE(writer_.Append("two"));
  ASSERT_TRUE(writer_.Flush());
  EXPECT_EQ(Stored(kBlock, 7), std::string("onetwo\0", 7));
}

TEST_F(BlockWriterTest, WritesGroupsThatAreLargerThanItsBuffer) {
  std::string group;
  for (size_t i = 0; group.size() < 5 * kBlock + 100; ++i) group += std::to_string(i);
  ASSERT_TRUE(writer_.Append(group));
  ASSERT_TRUE(writer_.Flush());
  EXPECT_EQ(Stored(kBlock, group.size()), group);
  ASSERT_TRUE(writer_.Append("end"));
  ASSERT_TRUE(writer_.Flush());
  EXPECT_EQ(Stored(kBlock, group.size() + 3), group + "end");
}

TEST_F(BlockWriterTest, ContinuesBehindATail) {
  BlockWriter other(2 * kBlock);
  other.Attach(*fs_.Open("f", OpenMode::kWriteDirect), 3 * kBlock + 4, "tail");
  ASSERT_TRUE(other.Append("more"));
  ASSERT_TRUE(other.Flush());
  EXPECT_EQ(Stored(3 * kBlock, 9), std::string("tailmore\0", 9));
}

TEST_F(BlockWriterTest, SaysThatAWriteFailed) {
  fs_.FailNth(SimOp::kWrite, 1);
  ASSERT_TRUE(writer_.Append("one"));
  EXPECT_FALSE(writer_.Flush());
}

}  // namespace
}  // namespace tocsin::journal
