#include "metrics/histogram.h"

#include <numeric>

#include <gtest/gtest.h>

namespace tocsin::metrics {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// How many took at most `us`, a power of two.
uint64_t CountUpTo(const Histogram::Snapshot& read, uint64_t us) {
  return std::accumulate(read.buckets.begin(), read.buckets.begin() + Histogram::BucketOf(us) + 1, uint64_t{0});
}

TEST(Histogram, EveryBucketEndsWhereTheNextBegins) {
  for (size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    const uint64_t bound = Histogram::BoundOf(bucket);
    EXPECT_EQ(Histogram::BucketOf(bound), bucket);
    if (bucket + 1 < Histogram::kBuckets) {
      EXPECT_EQ(Histogram::BucketOf(bound + 1), bucket + 1);
    }
  }
  EXPECT_EQ(Histogram::BucketOf(0), 0U);
  EXPECT_EQ(Histogram::BucketOf(UINT64_MAX), Histogram::kBuckets - 1);
}

TEST(Histogram, ABucketIsAtMostAnEighthWide) {
  for (size_t bucket = 8; bucket < Histogram::kBuckets; ++bucket) {
    const auto low = static_cast<double>(Histogram::BoundOf(bucket - 1));
    EXPECT_LE(static_cast<double>(Histogram::BoundOf(bucket)) - low, low / 8 + 1e-9);
  }
}

TEST(Histogram, CountsAndSums) {
  Histogram histogram;
  histogram.Record(milliseconds(1));
  histogram.Record(milliseconds(3));
  histogram.Record(nanoseconds(-5));
  const auto read = histogram.Read();
  EXPECT_EQ(read.count, 3U);
  EXPECT_DOUBLE_EQ(read.sum_seconds, 0.004);
  EXPECT_EQ(CountUpTo(read, 1), 1U);
  EXPECT_EQ(CountUpTo(read, 1024), 2U);
  EXPECT_EQ(CountUpTo(read, 4096), 3U);
}

TEST(Histogram, FractionsOfAMicrosecondAreRoundedUp) {
  Histogram histogram;
  histogram.Record(nanoseconds(16'001));
  EXPECT_EQ(CountUpTo(histogram.Read(), 16), 0U);
  histogram.Record(nanoseconds(16'000));
  EXPECT_EQ(CountUpTo(histogram.Read(), 16), 1U);
}

TEST(Histogram, QuantilesAreOffByAnEighthAtMost) {
  Histogram histogram;
  for (int i = 1; i <= 10'000; ++i) histogram.Record(microseconds(i));
  const auto read = histogram.Read();
  for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    EXPECT_NEAR(read.Quantile(q), q * 0.01, q * 0.01 / 8) << q;
  }
}

TEST(Histogram, NothingRecordedIsZero) { EXPECT_EQ(Histogram().Read().Quantile(0.99), 0); }

TEST(Histogram, AYearLateNeitherOverflowsNorIsLost) {
  Histogram histogram;
  for (int i = 0; i < 1000; ++i) histogram.Record(std::chrono::days(3653));
  EXPECT_EQ(histogram.Read().count, 1000U);
  EXPECT_NEAR(histogram.Read().sum_seconds, 1000 * 3653.0 * 86'400, 1);
}

}  // namespace
}  // namespace tocsin::metrics
