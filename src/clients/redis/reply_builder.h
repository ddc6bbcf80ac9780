// ReplyBuilder: bytes of a connection -> Replies. hiredis' reader finds the replies (RESP2); it calls back for each
// part, and the parts go straight into a Reply, so that no redisReply is ever made. Owned by one connection, on its
// thread.
//
// Invariants: a reply holds at most kElementsMax elements and kBytesMax bytes, so that a broken length cannot take all
// memory; after an Error nothing more can be read. hiredis itself refuses arrays that are nested deeper than seven.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "clients/redis/reply.h"

// Of hiredis, whose header is for the .cc file alone.
struct redisReader;    // NOLINT(readability-identifier-naming)
struct redisReadTask;  // NOLINT(readability-identifier-naming)

namespace tocsin::redis {

class ReplyBuilder {
 public:
  static constexpr size_t kElementsMax = size_t{1} << 20;
  static constexpr size_t kBytesMax = size_t{512} << 20;

  ReplyBuilder();
  ~ReplyBuilder();
  ReplyBuilder(const ReplyBuilder&) = delete;
  ReplyBuilder& operator=(const ReplyBuilder&) = delete;

  void Feed(std::string_view bytes);
  /// The next complete reply; nothing if it is incomplete; kCorrupt if the bytes are not RESP2.
  Result<std::optional<Reply>> Next();

 private:
  struct Free {
    void operator()(redisReader* reader) const;
  };
  struct Hooks;

  /// Puts an item where the task says. Null, which ends the reading, if the reply becomes too large.
  void* Put(const redisReadTask& task, Kind kind, size_t size, int64_t value);
  void* PutText(const redisReadTask& task, Kind kind, std::string_view text);
  void* PutArray(const redisReadTask& task, size_t elements);

  std::unique_ptr<redisReader, Free> reader_;
  Reply reply_;  // incomplete
  bool too_large_ = false;
};

}  // namespace tocsin::redis
