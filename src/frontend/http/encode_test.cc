#include "frontend/http/encode.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace tocsin::http {
namespace {

TEST(EncodeSubmitted, ShowsOneOutcomeForEachJob) {
  const Submitted jobs[] = {
      {.outcome = SubmitOutcome::kAccepted, .uid = 1, .due = FromMs(1'000)},
      {.outcome = SubmitOutcome::kDuplicate, .uid = 2, .due = kNever},
      {.outcome = SubmitOutcome::kOverCapacity, .uid = 0},
      {.outcome = SubmitOutcome::kConflict, .uid = 3},
      {.outcome = SubmitOutcome::kOverloaded, .uid = 0},
  };
  const std::string_view own_ids[] = {"", "a\"b", "", "c", ""};
  EXPECT_EQ(EncodeSubmitted(jobs, own_ids),
            R"({"jobs":[{"id":"j0000000000001","due_ms":1000,"outcome":"accepted"},)"
            R"({"id":"a\"b","due_ms":null,"outcome":"duplicate"},{"id":null,"outcome":"over_capacity"},)"
            R"({"id":"c","outcome":"conflict"},{"id":null,"outcome":"overloaded"}]})");
}

TEST(EncodeDelivered, ShowsTextAsTextAndBytesAsBase64) {
  JobBatch batch;
  batch.jobs.push_back({.uid = 1, .due = FromMs(5), .attempt = 1, .payload = "hällo"});
  batch.jobs.push_back({.own_id = "x",
                        .key = "k",
                        .due = FromMs(6),
                        .attempt = 2,
                        .headers = {{"h", "1"}, {"i", ""}},
                        .payload = std::string_view("\xFF\0", 2)});
  const auto root = boost::json::parse(EncodeDelivered(batch));
  const auto& jobs = root.at("jobs").as_array();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].at("id").as_string(), "j0000000000001");
  EXPECT_EQ(jobs[0].at("token").as_string(), TokenText({}));
  EXPECT_EQ(jobs[0].at("attempt").as_int64(), 1);
  EXPECT_EQ(jobs[0].at("due_ms").as_int64(), 5);
  EXPECT_EQ(jobs[0].at("payload").as_string(), "hällo");
  EXPECT_FALSE(jobs[0].as_object().contains("key"));
  EXPECT_FALSE(jobs[0].as_object().contains("headers"));
  EXPECT_EQ(jobs[1].at("id").as_string(), "x");
  EXPECT_EQ(jobs[1].at("key").as_string(), "k");
  EXPECT_EQ(jobs[1].at("headers").at("i").as_string(), "");
  EXPECT_EQ(jobs[1].at("payload_base64").as_string(), "/wA=");
  EXPECT_FALSE(jobs[1].as_object().contains("payload"));
}

TEST(EncodeDelivered, NothingIsAnEmptyArray) { EXPECT_EQ(EncodeDelivered({}), R"({"jobs":[]})"); }

TEST(EncodeSettled, ShowsEachToken) {
  const Token tokens[] = {{.slot = 1, .handle = 2, .fence = 3}, {}};
  const SettleOutcome outcomes[] = {SettleOutcome::kOk, SettleOutcome::kStale};
  EXPECT_EQ(EncodeSettled(tokens, outcomes),
            fmt::format(R"({{"results":[{{"token":"{}","outcome":"ok"}},{{"token":"{}","outcome":"stale"}}]}})",
                        TokenText(tokens[0]), TokenText(tokens[1])));
}

TEST(EncodeCancelled, HasADefiniteWordForEachOutcome) {
  EXPECT_EQ(EncodeCancelled(AmendOutcome::kDone), R"({"outcome":"cancelled"})");
  EXPECT_EQ(EncodeCancelled(AmendOutcome::kInFlight), R"({"outcome":"in_flight"})");
  EXPECT_EQ(EncodeCancelled(AmendOutcome::kFinished), R"({"outcome":"finished"})");
  EXPECT_EQ(EncodeCancelled(AmendOutcome::kUnknown), R"({"outcome":"unknown"})");
}

TEST(EncodeError, NamesTheFieldWhereThereIsOne) {
  EXPECT_EQ(EncodeError({Code::kUnknownField, "no \"x\"", "x"}),
            R"({"error":{"code":"unknown_field","message":"no \"x\"","field":"x"}})");
  EXPECT_EQ(EncodeError({Code::kOverloaded, "busy", ""}), R"({"error":{"code":"overloaded","message":"busy"}})");
  EXPECT_NO_THROW(boost::json::parse(EncodeError({Code::kNotFound, "\xFF", "\xFF"})));
}

TEST(CodeOf, HasAnErrorForEachRefusal) {
  EXPECT_EQ(CodeOf(SubmitOutcome::kConflict), Code::kConflict);
  EXPECT_EQ(CodeOf(SubmitOutcome::kInFlight), Code::kConflict);
  EXPECT_EQ(CodeOf(SubmitOutcome::kOverCapacity), Code::kOverCapacity);
  EXPECT_EQ(CodeOf(SubmitOutcome::kStorageFull), Code::kStorageFull);
  EXPECT_EQ(CodeOf(SubmitOutcome::kOverloaded), Code::kOverloaded);
}

}  // namespace
}  // namespace tocsin::http
