#include "server/program.h"

#include <cstdlib>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/version.h"
#include "server/server_test_site.h"

namespace tocsin {
namespace {

using testing::HasSubstr;

class Program : public ServerTest {
 protected:
  struct Ended {
    int status = -1;
    std::string out;
    std::string err;
  };
  Ended Run(std::vector<std::string> arguments) {
    const std::string out = folder_.At("out");
    const std::string err = folder_.At("err");
    std::FILE* const files[] = {std::fopen(out.c_str(), "w"), std::fopen(err.c_str(), "w")};
    Ended ended{.status = RunProgram(InputsWith(std::move(arguments)), files[0], files[1])};
    for (std::FILE* const file : files) std::fclose(file);
    ended.out = folder_.Read("out");
    ended.err = folder_.Read("err");
    return ended;
  }
};

TEST_F(Program, PrintsItsVersionAndNothingElse) {
  const Ended ended = Run({"--version"});
  EXPECT_EQ(ended.status, kExitOk);
  EXPECT_EQ(ended.out, fmt::format("tocsind {}\n", Version()));
  EXPECT_EQ(ended.err, "");
  EXPECT_FALSE(std::filesystem::exists(folder_.At("data"))) << "no store was made";
}

TEST_F(Program, AConfigurationThatCannotBeUsedHasAStatusOfItsOwn) {
  for (const char* const bad : {"--no-such-option=1", "--shards=1000", "--webhook-allow=nonsense",
                                "--auth-token-file=/nowhere/tokens", "--rabbitmq-url=amqp://host:port"}) {
    const Ended ended = Run({bad});
    EXPECT_EQ(ended.status, std::string_view(bad).contains("/nowhere") ? kExitCannotStart : kExitBadConfig) << bad;
    EXPECT_TRUE(ended.err.starts_with("tocsind: ")) << ended.err;
    EXPECT_EQ(ended.out, "") << bad;
  }
}

TEST_F(Program, AFolderThatAnotherServerUsesIsNotAMistakeOfTheConfiguration) {
  const RunningNode node(ConfigWith({}));
  const Ended ended = Run({});
  EXPECT_EQ(ended.status, kExitCannotStart);
  EXPECT_THAT(ended.err, HasSubstr(folder_.At("data")));
}

TEST_F(Program, PrintsOnATerminalWhereItListensAndServesUntilASignal) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  std::FILE* const out = ::fdopen(::open(::ptsname(terminal), O_WRONLY | O_NOCTTY), "w");
  ASSERT_NE(out, nullptr);
  int status = -1;
  std::thread server([&] { status = RunProgram(InputsWith({}), out, stderr); });
  std::string printed;
  while (!printed.contains("Stop with Ctrl-C")) {
    char part[256];
    const ssize_t bytes = ::read(terminal, part, sizeof(part));
    if (bytes <= 0) break;
    printed.append(part, static_cast<size_t>(bytes));
  }
  ::kill(::getpid(), SIGTERM);
  server.join();
  EXPECT_EQ(status, kExitOk);
  EXPECT_THAT(printed, HasSubstr("http     http://127.0.0.1:"));
  std::fclose(out);
  ::close(terminal);
}

TEST_F(Program, PrintsNothingWhereNobodyLooks) {
  Ended ended;
  std::thread server([&] { ended = Run({}); });
  while (!std::filesystem::exists(folder_.At("data/JOURNAL"))) std::this_thread::yield();
  ::kill(::getpid(), SIGTERM);  // it listens for signals since before the folder was there
  server.join();
  EXPECT_EQ(ended.status, kExitOk);
  EXPECT_EQ(ended.out, "");
}

}  // namespace
}  // namespace tocsin
