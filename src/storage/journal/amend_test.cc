#include <gtest/gtest.h>

#include "sim/sim_node.h"

namespace tocsin::journal {
namespace {

using namespace std::chrono_literals;

Options Segments() {
  Options options = SimNode::SmallOptions();
  options.segment_bytes = 128 << 10;
  return options;
}

/// A node with one job, which is then given a new payload and a new due time in one call.
struct Amending {
  explicit Amending(size_t payload_bytes) : node(Segments()), payload(payload_bytes, 'n') {
    EXPECT_TRUE(node.Open());
    node.store().PutTopic(DefaultTopic("t"), [](const auto&) {});
    const NewJob job{.id = "a", .delay = 1h, .payload = "old"};
    node.store().Submit("t", {&job, 1}, node.clock().Now(), [](const auto&) {});
    node.Pump();
  }
  void Amend() {
    const Amendment both{.job = {.id = "a"}, .kind = AmendKind::kReschedule, .delay = 10h, .payload = payload};
    node.store().Amend("t", {&both, 1}, node.clock().Now(), [](const auto&) {});
    node.Pump();
  }
  /// Whether the job is as before, or wholly changed.
  bool IsWhole() {
    const JobRef ref{.id = "a"};
    bool whole = false;
    node.store().Find("t", {&ref, 1}, nullptr, node.clock().Now(), [&](const Result<JobBatch>& found) {
      const JobView& job = found->jobs.at(0);
      const bool later = job.due - node.clock().Now().utc > 5h;
      whole = later ? job.payload == payload : job.payload == "old";
    });
    return whole;
  }

  SimNode node;
  const std::string payload;
};

// Over the size from which a call's entries go into several records, in steps over one of the disk's sectors: a write
// that is torn may end between any two records.
class AmendTest : public testing::TestWithParam<size_t> {};

TEST_P(AmendTest, APowerCutKeepsBothChangesOrNeither) {
  uint64_t first = 0;
  uint64_t last = 0;
  {
    Amending whole(GetParam());
    first = whole.node.disk().IoCount();
    whole.Amend();
    last = whole.node.disk().IoCount();
  }
  ASSERT_LT(first, last);
  for (uint64_t at = first; at < last; ++at) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      Amending one(GetParam());
      one.node.disk().LosePowerAt(at);
      one.Amend();
      one.node.CutPower(Survive::kTorn, seed);
      ASSERT_TRUE(one.node.Open());
      ASSERT_TRUE(one.IsWhole()) << "I/O " << at << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, AmendTest, testing::Range<size_t>(20'000, 20'512, 32));

}  // namespace
}  // namespace tocsin::journal
