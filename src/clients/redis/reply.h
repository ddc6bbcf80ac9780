// Reply: one answer of Redis, whatever its shape, in two allocations: its nodes and its bytes. A ReplyView points at
// one node of it and is valid as long as the Reply is. Values: no thread owns them.
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
  Kind kind() const { return nodes_.empty() ? Kind::kNil : nodes_[0].kind; }

 private:
  friend class ReplyView;
  friend class ReplyBuilder;
  struct Node {
    Kind kind = Kind::kNil;
    uint32_t size = 0;  // bytes of a text, elements of an array
    int64_t value = 0;  // an integer; where a text begins in bytes_; where an array's elements begin in nodes_
  };
  std::vector<Node> nodes_;
  std::string bytes_;
};

class ReplyView {
 public:
  ReplyView(const Reply& reply, size_t index) : reply_(&reply), node_(NodeOf(reply, index)) {}

  Kind kind() const { return node_->kind; }
  bool nil() const { return node_->kind == Kind::kNil; }
  bool error() const { return node_->kind == Kind::kError; }
  /// 0 for anything but an integer.
  int64_t integer() const { return node_->kind == Kind::kInteger ? node_->value : 0; }
  /// Of a text or an error; empty for anything else.
  std::string_view text() const {
    const bool has = node_->kind == Kind::kText || node_->kind == Kind::kError;
    return has ? std::string_view(reply_->bytes_).substr(static_cast<size_t>(node_->value), node_->size)
               : std::string_view();
  }
  /// Elements; 0 for anything but an array.
  size_t size() const { return node_->kind == Kind::kArray ? node_->size : 0; }
  /// `i` below size().
  ReplyView operator[](size_t i) const { return {*reply_, static_cast<size_t>(node_->value) + i}; }

 private:
  static const Reply::Node* NodeOf(const Reply& reply, size_t index) {
    static const Reply::Node nil;
    return reply.nodes_.empty() ? &nil : &reply.nodes_[index];
  }

  const Reply* reply_;
  const Reply::Node* node_;
};

inline ReplyView Reply::root() const { return {*this, 0}; }

}  // namespace tocsin::redis
