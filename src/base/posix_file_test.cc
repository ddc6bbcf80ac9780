#include <array>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/file.h"

namespace tocsin {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PosixFileTest : public testing::Test {
 protected:
  PosixFileTest() {
    std::string name = testing::TempDir() + "/tocsin_posix_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~PosixFileTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<File> Open(const std::string& name, OpenMode mode) {
    auto file = fs_->Open(folder_ + "/" + name, mode);
    EXPECT_TRUE(file) << file.error().message;
    return std::move(file).value();
  }
  static std::string ReadAll(File& file) {
    std::string text(100, '\0');
    text.resize(file.Read(0, text).value());
    return text;
  }

  std::string folder_;
  std::unique_ptr<FileSystem> fs_ = MakePosixFileSystem();
};

TEST_F(PosixFileTest, WritesAndReads) {
  const auto file = Open("a", OpenMode::kCreate);
  ASSERT_TRUE(file->Write(0, "hello world"));
  ASSERT_TRUE(file->Write(6, "there"));
  ASSERT_TRUE(file->Sync());
  EXPECT_EQ(ReadAll(*file), "hello there");
  EXPECT_EQ(file->Size().value(), 11U);
  EXPECT_EQ(ReadAll(*Open("a", OpenMode::kRead)), "hello there");
  std::array<char, 4> out;
  EXPECT_EQ(file->Read(9, out).value(), 2U) << "fewer at the end";
  EXPECT_EQ(file->Read(50, out).value(), 0U);
}

TEST_F(PosixFileTest, AFileThatTheSystemDoesNotOpenForNowIsAnErrorThatPasses) {
  Open("a", OpenMode::kCreate);
  // UBSan opens a pipe when it looks at the error's category for the first time.
  EXPECT_EQ(fs_->Open(folder_ + "/b", OpenMode::kRead).error().code, Code::kIo);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = fs_->Open(folder_ + "/a", OpenMode::kWrite);
  const Status unsynced = fs_->SyncDir(folder_);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kOverloaded);
  ASSERT_FALSE(unsynced);
  EXPECT_EQ(unsynced.error().code, Code::kOverloaded);
  EXPECT_TRUE(fs_->SyncDir(folder_));
}

TEST_F(PosixFileTest, NamesComeAndGo) {
  ASSERT_TRUE(fs_->MakeDir(folder_ + "/sub"));
  ASSERT_TRUE(fs_->MakeDir(folder_ + "/sub")) << "again";
  Open("b", OpenMode::kCreate);
  Open("a", OpenMode::kCreate);
  EXPECT_THAT(fs_->List(folder_).value(), ElementsAre("a", "b", "sub"));
  ASSERT_TRUE(fs_->SyncDir(folder_));
  ASSERT_TRUE(fs_->Remove(folder_ + "/a"));
  EXPECT_THAT(fs_->List(folder_).value(), ElementsAre("b", "sub"));
}

TEST_F(PosixFileTest, ErrorsNameThePathAndTheReason) {
  const std::string missing = folder_ + "/missing";
  for (const Error& error :
       {fs_->Open(missing, OpenMode::kRead).error(), fs_->Open(missing, OpenMode::kWrite).error(),
        fs_->Open(missing, OpenMode::kWriteDirect).error(), fs_->List(missing).error(), fs_->Remove(missing).error(),
        fs_->SyncDir(missing).error(), fs_->Lock(missing).error(), fs_->MakeDir(missing + "/x").error()}) {
    EXPECT_EQ(error.code, Code::kIo);
    EXPECT_THAT(error.message, HasSubstr(missing));
    EXPECT_THAT(error.message, HasSubstr("No such file or directory"));
  }
  Open("a", OpenMode::kCreate);
  EXPECT_THAT(fs_->Open(folder_ + "/a", OpenMode::kCreate).error().message, HasSubstr("File exists"));
  EXPECT_FALSE(fs_->MakeDir(folder_ + "/a")) << "a file is in its place";
  EXPECT_FALSE(Open("a", OpenMode::kRead)->Write(0, "x"));
}

TEST_F(PosixFileTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(::mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  ASSERT_TRUE(fs_->MakeDir(folder_ + "/folder"));
  const Descriptor bound(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ + "/socket").copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(bound.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  for (const std::string& path :
       {folder_ + "/fifo", folder_ + "/folder", folder_ + "/socket", std::string("/dev/null")}) {
    for (const OpenMode mode : {OpenMode::kRead, OpenMode::kWrite, OpenMode::kWriteDirect}) {
      ::alarm(10);  // the open of a FIFO may wait for ever
      const auto file = fs_->Open(path, mode);
      ::alarm(0);
      ASSERT_FALSE(file) << path;
      EXPECT_EQ(file.error().code, Code::kIo);
      EXPECT_EQ(file.error().message, fmt::format("cannot open {}: it is no regular file", path));
    }
  }
}

TEST_F(PosixFileTest, DirectFilesReadWhatTheyWroteWhetherOrNotTheFileSystemCan) {
  Open("a", OpenMode::kCreate);
  struct alignas(kBlock) Block {
    std::array<char, 2 * kBlock> bytes;
  };
  auto block = std::make_unique<Block>();
  block->bytes.fill('x');
  for (const std::string& path :
       {folder_ + "/a", std::string("/dev/shm/tocsin_direct_") + std::to_string(::getpid())}) {
    (void)fs_->Open(path, OpenMode::kCreate);
    auto file = fs_->Open(path, OpenMode::kWriteDirect);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->Write(kBlock, {block->bytes.data(), block->bytes.size()}));
    ASSERT_TRUE((*file)->Sync());
    auto back = std::make_unique<Block>();
    EXPECT_EQ((*file)->Read(kBlock, back->bytes).value(), 2 * kBlock);
    EXPECT_EQ(back->bytes, block->bytes);
    EXPECT_EQ((*file)->Read(2 * kBlock, back->bytes).value(), kBlock) << "fewer at the end";
    ASSERT_EQ(::truncate(path.c_str(), kBlock + 100), 0);
    EXPECT_EQ((*file)->Read(0, back->bytes).value(), kBlock + 100) << "an end inside a block";
    (void)fs_->Remove(path);
  }
}

TEST_F(PosixFileTest, DirectFilesCatchUnalignedAccess) {
  Open("a", OpenMode::kCreate);
  const auto file = Open("a", OpenMode::kWriteDirect);
  EXPECT_DEATH((void)file->Write(1, std::string_view()), "invariant");
}

TEST_F(PosixFileTest, AFolderIsLockedOnce) {
  const auto other = MakePosixFileSystem();
  auto held = fs_->Lock(folder_);
  ASSERT_TRUE(held);
  const auto refused = other->Lock(folder_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInUse);
  EXPECT_EQ(refused.error().message, fmt::format("data folder {} is in use by process {}", folder_, ::getpid()));
  held->reset();
  EXPECT_TRUE(other->Lock(folder_));
}

TEST_F(PosixFileTest, AFolderStaysLockedWhenTheLockFileIsRemoved) {
  const auto held = fs_->Lock(folder_);
  ASSERT_TRUE(held);
  ASSERT_TRUE(fs_->Remove(folder_ + "/LOCK"));
  const auto refused = fs_->Lock(folder_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInUse);
  EXPECT_EQ(refused.error().message, fmt::format("data folder {} is in use by a process", folder_));
}

TEST_F(PosixFileTest, AHolderThatKnowsOnlyTheLockFileIsRespected) {
  ASSERT_TRUE(fs_->Lock(folder_));
  const Descriptor file(::open((folder_ + "/LOCK").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(file.get(), LOCK_EX | LOCK_NB), 0);
  const auto refused = fs_->Lock(folder_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInUse);
}

TEST_F(PosixFileTest, TheLockEndsWithTheProcessThatHeldIt) {
  std::array<int, 2> ready{};
  std::array<int, 2> stop{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  ASSERT_EQ(::pipe(stop.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto held = fs_->Lock(folder_);
    char byte = held ? 'y' : 'n';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(stop[0], &byte, 1);
    ::_exit(0);  // without any destructor, as a kill would
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  const auto refused = fs_->Lock(folder_);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(fmt::format("process {}", child)));
  ASSERT_EQ(::write(stop[1], "x", 1), 1);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs_->Lock(folder_));
  for (const int fd : {ready[0], ready[1], stop[0], stop[1]}) ::close(fd);
}

}  // namespace
}  // namespace tocsin
