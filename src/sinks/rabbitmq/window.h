// Window: the jobs that were published on one channel and are not confirmed yet, in the order of publishing. The broker
// numbers them itself, from 1 in each new channel: entry n of the window has the delivery tag of the first plus n.
//
// Owned by a channel, on the publisher's thread.
//
// Invariants: every entry that was added is given out exactly once; one that was returned (unroutable) waits for its
// confirm, which always follows.
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
  /// `returned`: why the broker returned it; empty if it did not.
  using Take = std::function<void(Handed&& handed, std::string&& returned)>;

  size_t size() const { return open_; }
  bool empty() const { return open_ == 0; }

  void Add(Handed handed);
  /// Whether `holds` for a job that was not given out.
  bool Any(const std::function<bool(const JobView& job)>& holds) const;
  /// The broker has answered `tag` or, with `multiple`, everything up to it. False: it was never published.
  [[nodiscard]] bool Confirm(uint64_t tag, bool multiple, const Take& take);
  /// Gives out the entries that were published at least `lead` before another one that is confirmed: the broker
  /// confirms in order for each queue, so their queue hangs. Their confirms, if they come at all, are ignored.
  void GiveOvertaken(Millis lead, const Take& take);
  /// The broker returned a message. False: it is not in the window.
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

  std::deque<Entry> entries_;
  uint64_t first_tag_ = 1;    // of the front
  uint64_t return_from_ = 1;  // messages are returned in the order of their tags: look for the next one from here
  /// When the latest of the confirmed entries was published.
  std::chrono::steady_clock::time_point confirmed_{};
  size_t open_ = 0;  // entries that were not given out
};

}  // namespace tocsin::rabbitmq
