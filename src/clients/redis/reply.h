// Reply: one answer of Redis of any shape, in two allocations: its items and its bytes. A ReplyView points at one item
// and is valid as long as the Reply is. Values: no thread owns them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Of hiredis, whose header is for the .cc file alone.
struct redisReader;    // NOLINT(readability-identifier-naming)
struct redisReadTask;  // NOLINT(readability-identifier-naming)

namespace tocsin::redis {

enum class Kind : uint8_t { kNil, kInteger, kText, kError, kArray };

class ReplyView;

/// One that was never filled is nil.
class Reply {
 public:
  ReplyView root() const;
  Kind kind() const { return items_.empty() ? Kind::kNil : items_[0].kind; }

 private:
  friend class ReplyView;
  friend class ReplyBuilder;
  struct Item {
    Kind kind = Kind::kNil;
    uint32_t size = 0;  // bytes of a text, elements of an array
    int64_t value = 0;  // an integer; where a text begins in bytes_; where an array's elements begin in items_
  };
  std::vector<Item> items_;
  std::string bytes_;
};

class ReplyView {
 public:
  ReplyView(const Reply& reply, size_t index) : reply_(&reply), item_(ItemOf(reply, index)) {}

  Kind kind() const { return item_->kind; }
  bool nil() const { return item_->kind == Kind::kNil; }
  bool error() const { return item_->kind == Kind::kError; }
  /// 0 if it is not an integer.
  int64_t integer() const { return item_->kind == Kind::kInteger ? item_->value : 0; }
  /// Of a text or an error; empty for anything else.
  std::string_view text() const {
    const bool has = item_->kind == Kind::kText || item_->kind == Kind::kError;
    return has ? std::string_view(reply_->bytes_).substr(static_cast<size_t>(item_->value), item_->size)
               : std::string_view();
  }
  /// Elements; 0 if it is not an array.
  size_t size() const { return item_->kind == Kind::kArray ? item_->size : 0; }
  /// `i` below size().
  ReplyView operator[](size_t i) const { return {*reply_, static_cast<size_t>(item_->value) + i}; }

 private:
  static const Reply::Item* ItemOf(const Reply& reply, size_t index) {
    static const Reply::Item nil;
    return reply.items_.empty() ? &nil : &reply.items_[index];
  }

  const Reply* reply_;
  const Reply::Item* item_;
};

inline ReplyView Reply::root() const { return {*this, 0}; }

/// What an answer means for the command that it answers.
enum class Verdict : uint8_t {
  kAnswer,    // the caller's
  kMoved,     // nothing was done: the hash slot lives on another server
  kAsk,       // nothing was done: the key may already be on another server
  kLater,     // nothing was done, and it may succeed in a moment
  kDemoted,   // the same, on a server that takes no writes
  kNoScript,  // nothing was done: the server does not have the script
};

Verdict Judge(const Reply& reply);

/// Bytes of a connection -> Replies. hiredis' reader finds the replies (RESP2); it calls back for each part, and the
/// parts go straight into a Reply, so that no redisReply is ever made. Owned by one connection, on its thread.
///
/// Invariants: a reply holds at most kElementsMax elements and kBytesMax bytes, so that a broken length cannot take all
/// memory; after an Error nothing more can be read. hiredis itself refuses arrays that are nested deeper than seven.
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
