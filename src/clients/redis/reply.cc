#include "clients/redis/reply.h"

#include <algorithm>

#include <hiredis/read.h>

#include "base/result.h"

namespace tocsin::redis {
namespace {

struct Row {
  std::string_view word;
  Verdict verdict;
};
constexpr Row kRows[] = {
    {"MOVED", Verdict::kMoved},       {"ASK", Verdict::kAsk},           {"TRYAGAIN", Verdict::kLater},
    {"CLUSTERDOWN", Verdict::kLater}, {"LOADING", Verdict::kLater},     {"MASTERDOWN", Verdict::kDemoted},
    {"READONLY", Verdict::kDemoted},  {"NOSCRIPT", Verdict::kNoScript},
};

}  // namespace

Verdict Judge(const Reply& reply) {
  if (reply.kind() != Kind::kError) return Verdict::kAnswer;
  const std::string_view text = reply.root().text();
  const std::string_view word = text.substr(0, text.find(' '));
  const auto row = std::ranges::find(kRows, word, &Row::word);
  return row == std::end(kRows) ? Verdict::kAnswer : row->verdict;
}

// The callbacks of hiredis. An object is the index of its item plus one, so that none is null.
struct ReplyBuilder::Hooks {
  static ReplyBuilder& Of(const redisReadTask* task) { return *static_cast<ReplyBuilder*>(task->privdata); }

  static void* String(const redisReadTask* task, char* text, size_t size) {
    return Of(task).PutText(*task, task->type == REDIS_REPLY_ERROR ? Kind::kError : Kind::kText, {text, size});
  }
  static void* Array(const redisReadTask* task, int elements) {
    return Of(task).PutArray(*task, static_cast<size_t>(elements));
  }
  static void* Integer(const redisReadTask* task, long long value) {  // NOLINT(google-runtime-int): hiredis' own type
    return Of(task).Put(*task, Kind::kInteger, 0, value);
  }
  static void* Nil(const redisReadTask* task) { return Of(task).Put(*task, Kind::kNil, 0, 0); }
  static void Free(void* /*object*/) {}

  static inline redisReplyObjectFunctions table{String, Array, Integer, Nil, Free};
};

ReplyBuilder::ReplyBuilder() : reader_(redisReaderCreateWithFunctions(&Hooks::table)) {
  TOCSIN_CHECK(reader_ != nullptr);
  reader_->privdata = this;
  // By default hiredis frees an empty buffer of more than 16 KiB before each read, only to allocate it again.
  reader_->maxbuf = size_t{1} << 20;
}

ReplyBuilder::~ReplyBuilder() = default;

void ReplyBuilder::Free::operator()(redisReader* reader) const { redisReaderFree(reader); }

void ReplyBuilder::Feed(std::string_view bytes) {
  // A reader that has failed drops what it is fed.
  if (!bytes.empty()) redisReaderFeed(reader_.get(), bytes.data(), bytes.size());
}

Result<std::optional<Reply>> ReplyBuilder::Next() {
  void* object = nullptr;
  if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
    reply_ = {};
    if (too_large_) return Fail(Code::kCorrupt, "a reply over {} elements or {} bytes", kElementsMax, kBytesMax);
    return Fail(Code::kCorrupt, "{}", reader_->errstr);
  }
  if (object == nullptr) {
    // An incomplete text may take no more than a complete reply.
    if (reader_->len - reader_->pos > kBytesMax) return Fail(Code::kCorrupt, "a reply over {} bytes", kBytesMax);
    return std::optional<Reply>();
  }
  return std::optional(std::exchange(reply_, {}));
}

void* ReplyBuilder::Put(const redisReadTask& task, Kind kind, size_t size, int64_t value) {
  size_t index = 0;
  if (task.parent == nullptr) {
    if (reply_.items_.empty()) reply_.items_.emplace_back();
  } else {
    const size_t parent = reinterpret_cast<uintptr_t>(task.parent->obj) - 1;
    index = static_cast<size_t>(reply_.items_[parent].value + task.idx);
  }
  reply_.items_[index] = {kind, static_cast<uint32_t>(size), value};
  return reinterpret_cast<void*>(index + 1);
}

void* ReplyBuilder::PutText(const redisReadTask& task, Kind kind, std::string_view text) {
  const size_t begin = reply_.bytes_.size();
  too_large_ = text.size() > kBytesMax - begin;
  if (too_large_) return nullptr;
  reply_.bytes_.append(text);
  return Put(task, kind, text.size(), static_cast<int64_t>(begin));
}

void* ReplyBuilder::PutArray(const redisReadTask& task, size_t elements) {
  // The root item comes first.
  const size_t begin = std::max<size_t>(reply_.items_.size(), 1);
  too_large_ = elements > kElementsMax || begin > kElementsMax - elements;
  if (too_large_) return nullptr;
  reply_.items_.resize(begin + elements);
  return Put(task, Kind::kArray, elements, static_cast<int64_t>(begin));
}

}  // namespace tocsin::redis
