// Reply: one answer of Redis of any shape, in two allocations: its items and its bytes. A ReplyView points at one item
// and is valid as long as the Reply is. Values: no thread owns them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace tocsin::redis
