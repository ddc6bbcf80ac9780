// FileSystem on POSIX calls.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/result.h"

namespace tocsin {
namespace {

std::unexpected<Error> IoError(int error, std::string_view verb, std::string_view path) {
  Code code = Code::kIo;
  if (error == ENOSPC || error == EDQUOT) code = Code::kStorageFull;
  if (error == EMFILE || error == ENFILE) code = Code::kOverloaded;
  return Fail(code, "cannot {} {}: {}", verb, path, std::generic_category().message(error));
}

/// Repeats `call` while signals interrupt it.
template <class Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

bool IsAligned(uint64_t offset, const char* data, size_t size) {
  return (offset | reinterpret_cast<uintptr_t>(data) | size) % kBlock == 0;
}

class PosixFile final : public File {
 public:
  PosixFile(Descriptor fd, std::string path, bool asked_direct, bool direct)
      : fd_(std::move(fd)), path_(std::move(path)), asked_direct_(asked_direct), direct_(direct) {}

  Result<size_t> Read(uint64_t offset, std::span<char> out) override {
    TOCSIN_CHECK(!asked_direct_ || IsAligned(offset, out.data(), out.size()));
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = Uninterrupted(
          [&] { return ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done)); });
      if (n < 0 && errno == EINVAL && FallBack()) continue;
      if (n < 0) return IoError(errno, "read", path_);
      if (n == 0) break;
      done += static_cast<size_t>(n);
      if (direct_ && done % kBlock != 0) break;  // only the end of the file ends a direct read inside a block
    }
    return done;
  }

  Status Write(uint64_t offset, std::string_view bytes) override {
    TOCSIN_CHECK(!asked_direct_ || IsAligned(offset, bytes.data(), bytes.size()));
    while (!bytes.empty()) {
      const ssize_t n =
          Uninterrupted([&] { return ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
      if (n < 0 && errno == EINVAL && FallBack()) continue;
      if (n < 0) return IoError(errno, "write", path_);
      auto wrote = static_cast<size_t>(n);
      if (direct_ && wrote < bytes.size()) wrote -= wrote % kBlock;  // the next write has to be aligned again
      if (wrote == 0) return Fail(Code::kIo, "cannot write {}: nothing was written", path_);
      bytes.remove_prefix(wrote);
      offset += wrote;
    }
    return {};
  }

  Status Sync() override {
    if (Uninterrupted([&] { return ::fdatasync(fd_.get()); }) < 0) return IoError(errno, "sync", path_);
    return {};
  }

  Result<uint64_t> Size() override {
    struct stat info{};
    if (::fstat(fd_.get(), &info) < 0) return IoError(errno, "stat", path_);
    return static_cast<uint64_t>(info.st_size);
  }

 private:
  /// Some file systems accept O_DIRECT when a file is opened and refuse it when it is used.
  bool FallBack() {
    if (!direct_.exchange(false)) return false;
    const int flags = ::fcntl(fd_.get(), F_GETFL);
    return flags >= 0 && ::fcntl(fd_.get(), F_SETFL, flags & ~O_DIRECT) == 0;
  }

  const Descriptor fd_;
  const std::string path_;
  const bool asked_direct_;
  std::atomic<bool> direct_;
};

/// The lock is on the folder itself: a file in it can be removed while it is locked, and a second server would lock a
/// new one. The file tells people who holds the folder. It is locked too, for file systems that cannot lock a folder
/// and for programs that know only the file. The locks end with the process.
class PosixLock final : public FolderLock {
 public:
  PosixLock(Descriptor folder, Descriptor file) : folder_(std::move(folder)), file_(std::move(file)) {}

 private:
  const Descriptor folder_;
  const Descriptor file_;
};

/// 0, or the error.
int TryFlock(int fd) {
  return Uninterrupted([&] { return ::flock(fd, LOCK_EX | LOCK_NB); }) < 0 ? errno : 0;
}

/// NFS locks only what is open for writing, which a folder cannot be.
bool CannotLockFolders(int error) {
  return error == EBADF || error == EINVAL || error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP;
}

std::string ReadSmall(int fd) {
  char text[32];
  const ssize_t n = Uninterrupted([&] { return ::pread(fd, text, sizeof(text), 0); });
  std::string out(text, static_cast<size_t>(std::max<ssize_t>(0, n)));
  return out.substr(0, out.find('\n'));
}

std::unexpected<Error> NotAFile(const std::string& path) {
  return Fail(Code::kIo, "cannot open {}: it is no regular file", path);
}

/// Ok if it is a regular file. That was opened without blocking, which is of use only to find this out.
Status CheckOpened(int fd, const std::string& path) {
  struct stat info{};
  if (::fstat(fd, &info) < 0) return IoError(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) return NotAFile(path);
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) return IoError(errno, "open", path);
  return {};
}

std::unexpected<Error> InUse(const std::string& folder, const std::string& pid) {
  return Fail(Code::kInUse, "data folder {} is in use by {}", folder, pid.empty() ? "a process" : "process " + pid);
}

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> Open(const std::string& path, OpenMode mode) override {
    // Without O_NONBLOCK the open of a FIFO waits for its other end.
    int flags = O_CLOEXEC | O_NONBLOCK | (mode == OpenMode::kRead ? O_RDONLY : O_RDWR);
    if (mode == OpenMode::kCreate) flags |= O_CREAT | O_EXCL;
    const bool asked_direct = mode == OpenMode::kWriteDirect;
    bool direct = asked_direct;
    auto open = [&](int with) { return Uninterrupted([&] { return ::open(path.c_str(), flags | with, 0600); }); };
    int fd = open(direct ? O_DIRECT : 0);
    if (fd < 0 && direct && errno == EINVAL) {
      direct = false;
      fd = open(0);
    }
    if (fd < 0 && (errno == ENXIO || errno == EISDIR)) return NotAFile(path);  // a socket or a folder
    if (fd < 0) return IoError(errno, mode == OpenMode::kCreate ? "create" : "open", path);
    Descriptor opened(fd);
    TOCSIN_TRY(CheckOpened(fd, path));
    return std::make_unique<PosixFile>(std::move(opened), path, asked_direct, direct);
  }

  Result<std::vector<std::string>> List(const std::string& folder) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
    if (!dir) return IoError(errno, "list", folder);
    std::vector<std::string> names;
    for (;;) {
      errno = 0;  // the only way to tell an error of readdir from the end
      const dirent* entry = ::readdir(dir.get());
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) return IoError(errno, "list", folder);
    std::ranges::sort(names);
    return names;
  }

  Status MakeDir(const std::string& folder) override {
    if (::mkdir(folder.c_str(), 0700) == 0) return {};
    const int error = errno;
    struct stat info{};
    if (error == EEXIST && ::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    return IoError(error, "make folder", folder);
  }

  Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) < 0) return IoError(errno, "remove", path);
    return {};
  }

  Status SyncDir(const std::string& folder) override {
    const Descriptor fd(Uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!fd.open()) return IoError(errno, "open folder", folder);
    if (Uninterrupted([&] { return ::fsync(fd.get()); }) < 0) return IoError(errno, "sync folder", folder);
    return {};
  }

  Result<std::unique_ptr<FolderLock>> Lock(const std::string& folder) override {
    const std::string path = folder + "/LOCK";
    Descriptor dir(Uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!dir.open()) return IoError(errno, "open folder", folder);
    if (const int error = TryFlock(dir.get()); error == EWOULDBLOCK) {
      const Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
      return InUse(folder, file.open() ? ReadSmall(file.get()) : "");
    } else if (error != 0 && !CannotLockFolders(error)) {
      return IoError(error, "lock", folder);
    }
    Descriptor fd(Uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); }));
    if (!fd.open()) return IoError(errno, "open", path);
    if (const int error = TryFlock(fd.get()); error == EWOULDBLOCK) {
      return InUse(folder, ReadSmall(fd.get()));
    } else if (error != 0) {
      return IoError(error, "lock", path);
    }
    const std::string pid = fmt::format("{}\n", ::getpid());
    if (::ftruncate(fd.get(), 0) < 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
      // A server must also start on a full disk, to deliver jobs and so free space: the pid is only for people.
      if (errno != ENOSPC && errno != EDQUOT) return IoError(errno, "write", path);
    }
    return std::make_unique<PosixLock>(std::move(dir), std::move(fd));
  }
};

}  // namespace

std::unique_ptr<FileSystem> MakePosixFileSystem() { return std::make_unique<PosixFileSystem>(); }

}  // namespace tocsin
