#include "cli/job_process.h"

#include <gmock/gmock.h>

namespace tocsin::cli {
namespace {

using testing::UnorderedElementsAre;

TEST(JobProcess, TheLastLineIsTheLastThatHasAnythingInIt) {
  LastLine line;
  EXPECT_EQ(line.text(), "");
  for (const std::string_view part : {"fir", "st\nsec", "ond\n", "\n\n"}) line.Add(part);
  EXPECT_EQ(line.text(), "second");
  line.Add("third, not ended");
  EXPECT_EQ(line.text(), "third, not ended");
  line.Add(std::string(5000, 'x'));
  EXPECT_EQ(line.text().size(), 400U);
}

TEST(JobProcess, VariablesAreThoseOfTheJob) {
  const json::object job = json::parse(R"({"id":"a b","attempt":2,"max_attempts":16,"due_ms":1800000000000,"key":"k",
                                           "headers":{"trace-id":"x","nul":"a\u0000b"}})")
                               .as_object();
  EXPECT_THAT(JobVariables("t", job),
              UnorderedElementsAre("TOCSIN_JOB_ID=a b", "TOCSIN_TOPIC=t", "TOCSIN_ATTEMPT=2", "TOCSIN_MAX_ATTEMPTS=16",
                                   "TOCSIN_DUE_MS=1800000000000", "TOCSIN_KEY=k", "TOCSIN_HEADER_TRACE_ID=x"));
}

}  // namespace
}  // namespace tocsin::cli
