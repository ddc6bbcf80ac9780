#include "storage/journal/lane.h"

#include "base/turn_share.h"

namespace tocsin::journal {

Lane::Lane(Journal& journal, uint32_t number, Prologue prologue, Placed placed)
    : journal_(journal),
      number_(number),
      prologue_(std::move(prologue)),
      placed_(std::move(placed)),
      batch_max_(std::clamp<size_t>(journal.segment_bytes() / 16, 4 << 10, 1 << 20)) {}

std::string& Lane::Out() {
  if (record_ != std::string::npos) {
    if (buffer_.size() - record_ < kRecordTarget) return buffer_;
    EndRecord(buffer_, record_);
  } else {
    buffer_ = journal_.Buffer();
  }
  record_ = BeginRecord(buffer_, RecordType::kEntries, static_cast<uint16_t>(number_), journal_.generation(), now_);
  return buffer_;
}

void Lane::Append() {
  if (record_ == std::string::npos) return;
  EndRecord(buffer_, record_);
  record_ = std::string::npos;
  const Appended appended = journal_.Append(number_, std::move(buffer_), now_, [this](std::string& out) {
    const size_t begin =
        BeginRecord(out, RecordType::kEntries, static_cast<uint16_t>(number_), journal_.generation(), now_);
    prologue_(out);
    EndRecord(out, begin);
  });
  buffer_.clear();
  end_ = appended.end;
  placed_(appended.segment);
}

template <class Enough>
bool Lane::Answer(Enough&& enough) {
  const bool failed = journal_.failed();
  const Lsn acknowledged = journal_.acknowledged();
  const Error error = failed ? journal_.error() : Error{};
  while (!waiting_.empty() && (failed || waiting_.front().end <= acknowledged)) {
    // What was acknowledged before a failure is durable, so it is still reported as done.
    const bool durable = waiting_.front().end <= acknowledged;
    auto complete = std::move(waiting_.front().complete);
    waiting_.pop_front();
    complete(durable ? nullptr : &error);
    if (enough()) return true;
  }
  return false;
}

void Lane::Drain() {
  if (goes_on_ || waiting_.empty()) return;
  if (loop_ == nullptr) return DrainAll();
  TurnShare share(journal_.clock());
  share.Begin();
  if (!Answer([&share] { return share.Did(); })) return;
  goes_on_ = true;
  loop_->Post([this] {
    goes_on_ = false;
    Drain();
  });
}

void Lane::DrainAll() {
  Answer([] { return false; });
}

void Lane::Wake() {
  if (loop_ == nullptr || waking_.exchange(true)) return;
  loop_->Post([this] {
    waking_.exchange(false);  // ordered before what Drain reads
    Drain();
  });
}

}  // namespace tocsin::journal
