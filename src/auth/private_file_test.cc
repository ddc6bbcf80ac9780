#include "auth/private_file.h"

#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>

#include "auth/test_folder.h"
#include "base/descriptor.h"

namespace tocsin::auth {
namespace {

using testing::HasSubstr;

mode_t ModeOf(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

Result<std::string> Append(const std::string& text, char what) { return text + what; }

TEST(PrivateFile, IsReadOnlyWhereOthersCannot) {
  const TestFolder folder;
  for (const mode_t mode : {0600, 0400}) EXPECT_EQ(*ReadPrivate(folder.Write("f", "text", mode)), "text");
  for (const mode_t mode : {0644, 0640, 0620, 0602, 0601}) {
    const auto refused = ReadPrivate(folder.Write("f", "text", mode));
    ASSERT_FALSE(refused) << mode;
    EXPECT_THAT(refused.error().message, HasSubstr("chmod 600 " + folder.At("f")));
  }
}

TEST(PrivateFile, OfAnotherUserIsRefusedButRootMayEditIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  const TestFolder folder;
  const std::string path = folder.Write("f", "a");
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  const auto refused = ReadPrivate(path);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("belongs to user 12345"));
  ASSERT_TRUE(EditPrivate(path, [](const std::string& text) { return Append(text, 'b'); }));
  struct stat info{};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 12345U);
  EXPECT_EQ(folder.Read("f"), "ab");
}

TEST(PrivateFile, FoldersPipesAndMissingFilesAreErrors) {
  const TestFolder folder;
  ASSERT_EQ(::mkfifo(folder.At("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(ReadPrivate(folder.At("pipe")));
  EXPECT_FALSE(ReadPrivate(folder.At("")));
  const auto missing = ReadPrivate(folder.At("missing"));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
}

TEST(PrivateFile, APasswordIsTheOnlyLine) {
  const TestFolder folder;
  for (const char* const text : {"sesame", "sesame\n", "sesame\r\n"}) {
    EXPECT_EQ(*ReadPrivateLine(folder.Write("f", text)), "sesame");
  }
  for (const char* const text : {"", "\n", "sesame\nopen\n"}) {
    const auto refused = ReadPrivateLine(folder.Write("f", text));
    ASSERT_FALSE(refused) << text;
    EXPECT_THAT(refused.error().message, HasSubstr("it takes one"));
    EXPECT_FALSE(refused.error().message.contains("sesame"));
  }
}

TEST(PrivateFile, AnEditMakesOrReplacesTheFileAndLeavesNothingElse) {
  const TestFolder folder;
  const std::string path = folder.At("f");
  folder.Write("f.new", "of an editor that died", 0644);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(EditPrivate(path, [](const std::string& text) { return Append(text, 'x'); }));
    EXPECT_EQ(ModeOf(path), 0600U);
  }
  EXPECT_EQ(folder.Read("f"), "xx");
  EXPECT_EQ(folder.Count(), 1U);
}

TEST(PrivateFile, AnEditThatFailsChangesNothing) {
  const TestFolder folder;
  const std::string path = folder.Write("f", "before");
  const auto stamp = StampOf(path);
  const Status failed =
      EditPrivate(path, [](const std::string&) -> Result<std::string> { return Fail(Code::kNotFound, "no"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(StampOf(path), stamp);
  EXPECT_EQ(folder.Count(), 1U);
  EXPECT_FALSE(EditPrivate(folder.At("missing/f"), [](const std::string& text) { return Append(text, 'x'); }));
}

TEST(PrivateFile, AFileInAFolderThatAServerKeepsLockedCanBeEdited) {
  const TestFolder folder;
  const Descriptor held(::open(folder.At("").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.get(), LOCK_EX | LOCK_NB), 0);
  EXPECT_TRUE(EditPrivate(folder.At("f"), [](const std::string& text) { return Append(text, 'x'); }));
}

TEST(PrivateFile, EditorsWaitForEachOther) {
  const TestFolder folder;
  const std::string path = folder.At("f");
  constexpr int kEach = 25;
  {
    std::vector<std::jthread> editors;
    for (int editor = 0; editor < 4; ++editor) {
      editors.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) {
          EXPECT_TRUE(EditPrivate(path, [](const std::string& text) { return Append(text, 'x'); }));
        }
      });
    }
  }
  EXPECT_EQ(folder.Read("f").size(), 4U * kEach);
}

TEST(PrivateFile, TheStampSeesWhatIsReplacedAndNewModes) {
  const TestFolder folder;
  EXPECT_FALSE(StampOf(folder.At("f")));
  const std::string path = folder.Write("f", "a");
  const auto first = StampOf(path);
  EXPECT_EQ(StampOf(path), first);
  ASSERT_TRUE(EditPrivate(path, [](const std::string&) -> Result<std::string> { return "b"; }));
  EXPECT_NE(StampOf(path), first);
}

}  // namespace
}  // namespace tocsin::auth
