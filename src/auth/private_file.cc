#include "auth/private_file.h"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

namespace tocsin::auth {
namespace {

constexpr off_t kSizeMax = 4 << 20;

std::unexpected<Error> IoError(std::string_view verb, std::string_view path) {
  return Fail(Code::kIo, "cannot {} {}: {}", verb, path, std::generic_category().message(errno));
}

/// Root may edit the file of another user, who will read it; a server reads only its own files and root's.
enum class Owner { kOwnOrRoot, kAnyForRoot };

Status CheckPrivate(const struct stat& info, const std::string& path, Owner owner) {
  if (!S_ISREG(info.st_mode)) return Fail(Code::kInvalidArgument, "{} is not a file", path);
  const mode_t mode = info.st_mode & 07777;
  if ((mode & 077) != 0) {
    return Fail(Code::kInvalidArgument, "{} has mode {:04o}: other users can reach it; do: chmod 600 {}", path, mode,
                path);
  }
  const uid_t self = ::geteuid();
  const bool any = owner == Owner::kAnyForRoot && self == 0;
  if (!any && info.st_uid != self && info.st_uid != 0) {
    return Fail(Code::kInvalidArgument,
                "{} belongs to user {}, who is neither this process's ({}) nor root; do: chown {} {}", path,
                info.st_uid, self, self, path);
  }
  return {};
}

Result<std::string> ReadAll(int fd, const std::string& path) {
  std::string text;
  char chunk[4096];
  for (;;) {
    const ssize_t n = ::read(fd, chunk, sizeof(chunk));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError("read", path);
    if (n == 0) return text;
    text.append(chunk, static_cast<size_t>(n));
    if (text.size() > static_cast<size_t>(kSizeMax)) {
      return Fail(Code::kTooLarge, "{} is over {} bytes", path, kSizeMax);
    }
  }
}

/// The file as it was read, and who owns it.
struct Opened {
  std::string text;
  struct stat info{};
};

Result<Opened> OpenPrivate(const std::string& path, Owner owner) {
  // Non-blocking, so that a pipe at this path cannot stop the server.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.open()) return IoError("open", path);
  Opened opened;
  if (::fstat(fd.get(), &opened.info) < 0) return IoError("stat", path);
  TOCSIN_TRY(CheckPrivate(opened.info, path, owner));
  TOCSIN_ASSIGN(opened.text, ReadAll(fd.get(), path));
  return opened;
}

Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return IoError("write", path);
    text.remove_prefix(static_cast<size_t>(n));
  }
  if (::fsync(fd) < 0) return IoError("sync", path);
  return {};
}

/// Makes the file that is to replace another one, and locks it: one editor at a time. The folder is not locked, because
/// a server keeps its data folder locked, and the file may be in there. The lock ends with the process.
Result<Descriptor> MakeLocked(const std::string& path) {
  while (true) {
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.open()) return IoError("create", path);
    if (::flock(fd.get(), LOCK_EX) < 0) return IoError("lock", path);
    struct stat locked{};
    struct stat named{};
    if (::fstat(fd.get(), &locked) < 0) return IoError("stat", path);
    // The editor before has renamed or removed what it had locked: make another one.
    if (::stat(path.c_str(), &named) < 0 || named.st_ino != locked.st_ino || named.st_dev != locked.st_dev) continue;
    const bool own = locked.st_uid == ::geteuid() && (locked.st_mode & 077) == 0 && locked.st_nlink == 1;
    if (own && locked.st_size == 0) return fd;
    if (::unlink(path.c_str()) < 0) return IoError("remove", path);  // left by an editor that died
  }
}

Status WriteNew(const Descriptor& fd, const std::string& path, std::string_view text, const struct stat* before) {
  const bool foreign = before != nullptr && before->st_uid != ::geteuid();
  if (foreign && ::fchown(fd.get(), before->st_uid, before->st_gid) < 0) return IoError("give its owner to", path);
  return WriteAll(fd.get(), text, path);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::optional<FileStamp> StampOf(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) < 0) return std::nullopt;
  return FileStamp{info.st_dev, info.st_ino, info.st_size, info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

Result<std::string> ReadPrivate(const std::string& path) {
  TOCSIN_ASSIGN(Opened opened, OpenPrivate(path, Owner::kOwnOrRoot));
  return std::move(opened.text);
}

Result<std::string> ReadPrivateLine(const std::string& path) {
  TOCSIN_ASSIGN(std::string text, ReadPrivate(path));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (!text.empty() && !text.contains('\n')) return text;
  return Fail(Code::kInvalidArgument, "{} holds {} line: it takes one", path, text.empty() ? "no" : "more than one");
}

Status EditPrivate(const std::string& path, const std::function<Result<std::string>(std::string)>& edit) {
  const std::string folder_path = FolderOf(path);
  const Descriptor folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return IoError("open folder", folder_path);
  const std::string fresh = path + ".new";
  TOCSIN_ASSIGN(const Descriptor fd, MakeLocked(fresh));

  const auto replace = [&]() -> Status {
    Opened before;
    const bool exists = StampOf(path).has_value();
    if (exists) {
      TOCSIN_ASSIGN(before, OpenPrivate(path, Owner::kAnyForRoot));
    }
    TOCSIN_ASSIGN(const std::string text, edit(std::move(before.text)));
    TOCSIN_TRY(WriteNew(fd, fresh, text, exists ? &before.info : nullptr));
    if (std::rename(fresh.c_str(), path.c_str()) < 0) return IoError("rename to", path);
    return {};
  };
  if (Status replaced = replace(); !replaced) {
    ::unlink(fresh.c_str());
    return replaced;
  }
  if (::fsync(folder.get()) < 0) return IoError("sync", folder_path);
  return {};
}

}  // namespace tocsin::auth
