// Window: what was published on one channel and is not confirmed yet, in the order of publishing. The broker numbers
// publishes by itself, from 1 in each new channel: entry n of the window has the number of the first plus n.
//
// Owned by a channel, on the publisher's thread.
//
// Invariants: every entry that was added is given out exactly once; one that came back
// (unroutable) waits for its confirm, which always follows.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "model/job.h"

namespace tocsin::rabbitmq {

/// A job of a batch that was handed over.
struct Handed {
  uint64_t batch_id = 0;
  uint32_t index = 0;
  std::shared_ptr<const JobBatch> batch;
  std::chrono::steady_clock::time_point published{};

  const JobView& job() const { return batch->jobs[index]; }
};

class Window {
 public:
  /// `returned`: why it came back; empty where it did not.
  using Take = std::function<void(Handed&& handed, std::string&& returned)>;

  size_t size() const { return open_; }
  bool empty() const { return open_ == 0; }

  void Add(Handed handed);
  /// The broker has answered `tag` or, with `multiple`, everything up to it. False: it was never published.
  [[nodiscard]] bool Confirm(uint64_t tag, bool multiple, const Take& take);
  /// Gives out those that were published earlier, by `lead` at least, than another one that was confirmed: the broker
  /// confirms what goes to one queue in order, so that theirs hangs. Their confirms, if they come at all, mean nothing.
  void GiveOvertaken(Millis lead, const Take& take);
  /// A message came back. False: it is not in the window.
  [[nodiscard]] bool Return(std::string_view id, const Token& token, std::string reason);
  /// Gives out all, in their order; the next entry is the first of a new channel.
  void Clear(const Take& take);

 private:
  struct Entry {
    Handed handed;
    std::string returned;
    bool given = false;
  };

  void Give(Entry& entry, const Take& take);
  void DropGiven();
  bool ReturnBetween(size_t begin, size_t end, std::string_view id, const Token& token, std::string& reason);

  std::deque<Entry> entries_;
  uint64_t first_tag_ = 1;    // of the front
  uint64_t return_from_ = 1;  // messages come back in the order of their tags: where to look for the next one
  std::chrono::steady_clock::time_point confirmed_{};  // when the last one was published of those that are confirmed
  size_t open_ = 0;                                    // entries that were not given out
};

}  // namespace tocsin::rabbitmq
