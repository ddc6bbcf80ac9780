// The audit: a line for every act of an administrator, whatever log.level says:
//   TIME info audit who=ann from=10.0.0.7:51234 door=http act=purgeTopic topic=orders purged=12 outcome=ok
// It goes to the log, or to a separate file (log.audit_file). Never payloads, headers or secrets.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/log_event.h"
#include "base/result.h"

namespace tocsin {

/// Writes one line. Thread-safe, and waits for no disk.
void Audit(LogFields fields);

/// While one is there, the lines of Audit go to its file, which only its owner can read. A thread of its own writes: a
/// slow disk must not hold up a shard. A file that was renamed or removed is made again with the next line, so
/// logrotate needs to tell nobody. What cannot be written goes to the log.
///
/// Owned by the program, one at a time; made before the threads that call Audit, and destroyed after them.
class AuditFile {
 public:
  static Result<std::unique_ptr<AuditFile>> Open(const std::string& path);
  /// Writes what waits.
  ~AuditFile();
  AuditFile(const AuditFile&) = delete;
  AuditFile& operator=(const AuditFile&) = delete;

 private:
  friend void Audit(LogFields fields);

  explicit AuditFile(std::string path) : path_(std::move(path)) {}
  /// False if too many lines wait already.
  bool Add(std::string_view line);
  void Serve(const std::stop_token& stop);
  void Write(std::string_view lines);
  Status Reopen();
  /// Whether the open file still has its name.
  bool IsInPlace() const;

  const std::string path_;
  int file_ = -1;        // the thread's own
  bool torn_ = false;    // it ends with half a line
  bool failed_ = false;  // and the log says so
  std::mutex mutex_;
  std::string waiting_;  // guarded by mutex_
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace tocsin
