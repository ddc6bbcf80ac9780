// GroupLog: records with CRC32C appended to a file past the page cache; a thread of its own writes and syncs all that
// came meanwhile as one group. The file is written over from its beginning when it is full: its space is made before,
// as a server does with recycled segments. Append and synced belong to the owner's thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace tocsin::bench {

/// Memory for direct writes.
class AlignedBuffer {
 public:
  explicit AlignedBuffer(size_t bytes);

  char* data() { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* data) const;
  };
  size_t size_;
  std::unique_ptr<char[], Free> data_;
};

/// An open file for direct writes whose `bytes` are written; its name is removed already.
int MakeDirectFile(const std::string& folder, size_t bytes);

class GroupLog {
 public:
  /// `wake`: an eventfd that is written to after each sync.
  GroupLog(const std::string& folder, int wake);
  ~GroupLog();
  GroupLog(const GroupLog&) = delete;
  GroupLog& operator=(const GroupLog&) = delete;

  /// Whether so many records fit into the group. Where not, the one before is still being written: try after its sync.
  bool HasRoom(size_t records, size_t bytes) const {
    return filled_ + records * (sizeof(RecordHead) + bytes) <= filling_.size();
  }
  /// One record, given in parts.
  void Append(std::initializer_list<std::string_view> parts);
  /// Hands what was appended to the thread, if it has nothing to do.
  void Commit();
  /// Bytes appended so far, and those of them that are on disk.
  uint64_t appended() const { return appended_; }
  uint64_t synced() const { return synced_.load(std::memory_order_acquire); }

 private:
  struct RecordHead {
    uint32_t bytes = 0;
    uint32_t crc = 0;
  };

  void Work();
  void Write(AlignedBuffer& group, size_t bytes);

  const int fd_;
  const int wake_;
  AlignedBuffer filling_;
  AlignedBuffer writing_;
  size_t filled_ = 0;
  uint64_t appended_ = 0;
  std::atomic<uint64_t> synced_ = 0;
  uint64_t offset_ = 0;  // in the file; the thread's

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t to_write_ = 0;  // bytes of writing_; 0: the thread waits
  uint64_t to_write_end_ = 0;
  std::atomic<bool> idle_ = true;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tocsin::bench
