#include "outbox/handover.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "model/names.h"

namespace tocsin::outbox {
namespace {

constexpr size_t kCallJobs = 256;
constexpr size_t kCallBytes = 256 << 10;  // and one job at least

/// For the column `error`, which is as long.
std::string Shortened(std::string text) {
  constexpr size_t kLength = 1000;
  if (text.size() > kLength) {
    text.resize(kLength);
    while (!text.empty() && !IsUtf8(text)) text.pop_back();
  }
  return IsUtf8(text) ? text : "the row cannot be read";
}

}  // namespace

/// Entries of one topic that are one call.
struct Handover::Batch {
  size_t round = 0;
  bool cancel = false;
  std::string topic;
  std::vector<Entry*> entries;
  size_t bytes = 0;
  // The answer, which the flight guards until it has landed.
  Result<std::vector<Submitted>> submitted;
  Result<std::vector<Amended>> amended;
};

/// Puts entries into calls, and calls into rounds. Those of one round are under way together; the next round begins
/// when all are answered.
class Handover::Plan {
 public:
  explicit Plan(size_t jobs_max) : jobs_max_(jobs_max) {}

  void Add(Entry& entry) {
    const Row& row = entry.row;
    size_t& round = rounds_of_jobs_[{row.topic, entry.id}];
    Batch* batch = nullptr;
    if (row.job_key.empty()) {
      batch = &Open(entry, round);
    } else {
      Batch*& last = last_of_keys_[{row.topic, row.job_key}];
      const bool joins = last != nullptr && last->round >= round && HasRoom(*last, entry);
      const size_t after_last = last == nullptr ? 0 : last->round + 1;
      batch = joins ? last : &Open(entry, std::max(round, after_last));
      last = batch;
    }
    batch->entries.push_back(&entry);
    batch->bytes += BytesOf(entry);
    round = batch->round + 1;
  }

  std::deque<std::deque<Batch>>& rounds() { return rounds_; }

 private:
  using Names = std::pair<std::string_view, std::string_view>;  // of a topic, and of what is in it

  static size_t BytesOf(const Entry& entry) { return entry.row.payload.size() + entry.row.headers.value_or("").size(); }
  bool HasRoom(const Batch& batch, const Entry& entry) const {
    return batch.cancel == entry.cancel && batch.entries.size() < jobs_max_ &&
           batch.bytes + BytesOf(entry) <= kCallBytes;
  }
  /// A call of this round that takes the entry.
  Batch& Open(const Entry& entry, size_t round) {
    while (rounds_.size() <= round) rounds_.emplace_back();
    Batch*& batch = open_[{round, entry.row.topic, entry.cancel}];
    if (batch == nullptr || !HasRoom(*batch, entry)) {
      batch = &rounds_[round].emplace_back(Batch{.round = round, .cancel = entry.cancel, .topic = entry.row.topic});
    }
    return *batch;
  }

  const size_t jobs_max_;
  std::deque<std::deque<Batch>> rounds_;
  std::map<Names, size_t> rounds_of_jobs_;  // the first that the next row of the job may be in
  std::map<Names, Batch*> last_of_keys_;    // the call with the latest row of the key
  std::map<std::tuple<size_t, std::string_view, bool>, Batch*> open_;  // by round, topic and kind
};

/// Calls that are under way together.
struct Handover::Flight {
  std::mutex mutex;
  std::condition_variable changed;
  size_t left = 0;

  void Land() {
    const std::lock_guard lock(mutex);
    if (--left == 0) changed.notify_one();
  }
  void Await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return left == 0; });
  }
};

HandedOver Handover::Run(const std::shared_ptr<Page>& page, Millis ahead, const std::function<bool()>& has_turn) {
  HandedOver done;
  Plan plan(std::min(kCallJobs, rules_.limits.batch));
  for (Entry& entry : page->entries) {
    if (Status read = Decode(entry, rules_, ahead); !read) {
      done.refused.push_back({entry.row.key(), Shortened(std::move(read.error().message))});
    } else {
      plan.Add(entry);
    }
  }
  bool first = true;
  for (std::deque<Batch>& round : plan.rounds()) {
    std::erase_if(round, [this](const Batch& batch) { return postponed_.contains(batch.topic); });
    if (round.empty()) continue;
    if (!std::exchange(first, false) && !has_turn()) break;
    const auto flight = std::make_shared<Flight>();
    flight->left = round.size();
    for (Batch& batch : round) Send(batch, page, flight);
    flight->Await();
    for (const Batch& batch : round) Take(batch, done);
  }
  return done;
}

void Handover::Send(Batch& batch, const std::shared_ptr<Page>& page, const std::shared_ptr<Flight>& flight) {
  Loop& loop = *loops_[next_loop_++ % loops_.size()];
  auto call = [this, &loop, &batch, page, flight] {
    if (batch.cancel) {
      AmendRequest request{.topic = batch.topic, .bytes = page, .checked = true};
      for (const Entry* const entry : batch.entries) {
        request.amendments.push_back({.job = entry->ref, .kind = AmendKind::kCancel});
      }
      return service_.Amend(loop, std::move(request), [&batch, flight](Result<std::vector<Amended>> answer) {
        batch.amended = std::move(answer);
        flight->Land();
      });
    }
    SubmitRequest request{.topic = batch.topic, .bytes = page, .checked = true, .prefix = rules_.prefix};
    for (const Entry* const entry : batch.entries) request.jobs.push_back(entry->job);
    service_.Submit(loop, std::move(request), [&batch, flight](Result<std::vector<Submitted>> answer) {
      batch.submitted = std::move(answer);
      flight->Land();
    });
  };
  if (loop.TryPost(std::move(call))) return;
  const Error full{Code::kOverloaded, "the mailbox of a shard is full", {}};
  batch.submitted = std::unexpected(full);
  batch.amended = std::unexpected(full);
  flight->Land();
}

void Handover::Take(const Batch& batch, HandedOver& done) {
  if (batch.cancel) {
    TakeCancels(batch, done);
  } else {
    TakeSubmits(batch, done);
  }
}

void Handover::TakeSubmits(const Batch& batch, HandedOver& done) {
  if (!batch.submitted) return Fail(batch, batch.submitted.error(), done);
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    const Row& row = batch.entries[i]->row;
    const SubmitOutcome outcome = (*batch.submitted)[i].outcome;
    if (IsStored(outcome)) {
      done.removed.push_back(row.key());
      if (outcome == SubmitOutcome::kAccepted) {
        done.accepted.push_back(row.created);
      } else {
        ++done.duplicates;
      }
    } else if (outcome == SubmitOutcome::kConflict) {
      done.refused.push_back(
          {row.key(), Shortened(fmt::format("job_id is {}: another job has this id", Shown(row.job_id)))});
    } else {
      Postpone(batch.topic, {CodeOf(outcome), fmt::format("a job was not stored: {}", NameOf(outcome)), {}}, done);
    }
  }
}

void Handover::TakeCancels(const Batch& batch, HandedOver& done) {
  const bool no_topic = !batch.amended && batch.amended.error().code == Code::kTopicNotFound;
  if (!batch.amended && !no_topic) return Fail(batch, batch.amended.error(), done);
  for (size_t i = 0; i < batch.entries.size(); ++i) {
    const AmendOutcome outcome = no_topic ? AmendOutcome::kUnknown : (*batch.amended)[i].outcome;
    if (const auto refusal = RefusalOf(outcome)) {
      Postpone(batch.topic, *refusal, done);
      continue;
    }
    done.removed.push_back(batch.entries[i]->row.key());
    ++(outcome == AmendOutcome::kDone ? done.cancelled : done.cancelled_late);
  }
}

void Handover::Fail(const Batch& batch, const Error& error, HandedOver& done) {
  const bool of_rows = error.code == Code::kInvalidArgument || error.code == Code::kForbidden ||
                       error.code == Code::kTooLarge || error.code == Code::kConflict;
  if (!of_rows) return Postpone(batch.topic, error, done);
  for (const Entry* const entry : batch.entries) done.refused.push_back({entry->row.key(), Shortened(error.message)});
}

void Handover::Postpone(const std::string& topic, const Error& error, HandedOver& done) {
  if (error.code != Code::kOverCapacity) done.trouble = error;
  if (!postponed_.insert(topic).second) return;
  if (error.code == Code::kOverCapacity) done.full_topics.emplace_back(topic, error.message);
}

}  // namespace tocsin::outbox
