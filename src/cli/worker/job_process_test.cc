#include "cli/worker/job_process.h"

#include <gmock/gmock.h>
#include <sys/eventfd.h>

#include "cli/process/process.h"

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

TEST(JobProcess, ACommandThatWritesWithoutPauseIsReadOncePerTurn) {
  VirtualClock clock;
  clock.DriveIo(true);
  const Descriptor kill(::eventfd(0, EFD_CLOEXEC));
  int reads = 0;
  int reads_before_tick = 0;
  const auto run = RunJob({"sh", "-c", "exec timeout 20 cat /dev/zero >&2"}, "t", {},
                          {.clock = clock,
                           .kill_fd = kill.get(),
                           .tick = Millis(60'000),
                           .on_tick =
                               [&] {
                                 if (reads_before_tick == 0) reads_before_tick = reads;
                                 ::eventfd_write(kill.get(), 1);
                               },
                           .on_stderr =
                               [&](std::string_view) {
                                 ++reads;
                                 clock.Advance(Millis(60'000));  // so that a tick is due behind each read
                               },
                           .may_read = [] { return true; }});
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->killed);
  EXPECT_EQ(reads_before_tick, 1);
}

TEST(JobProcess, ACommandWaitsWhileNobodyTakesWhatItSays) {
  VirtualClock clock;
  clock.DriveIo(true);
  const Descriptor kill(::eventfd(0, EFD_CLOEXEC));
  std::string said;
  int asked = 0;
  const auto run = RunJob({"sh", "-c", "echo before >&2; cat; exec timeout 20 cat /dev/zero >&2"}, "t", {},
                          {.clock = clock,
                           .kill_fd = kill.get(),
                           .tick = Millis(60'000),
                           .on_tick = [] {},
                           .on_stderr = [&](std::string_view text) { said += text; },
                           .may_read =
                               [&] {
                                 if (++asked == 3) ::eventfd_write(kill.get(), 1);
                                 return false;
                               }});
  ASSERT_TRUE(run);
  EXPECT_TRUE(run->killed);
  EXPECT_LE(said.size(), size_t{64} << 10) << "only what the pipe holds is read at the end";
}

}  // namespace
}  // namespace tocsin::cli
