// ShardStore: listings of the jobs that a selector names.
#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "base/result.h"
#include "base/text_search.h"
#include "storage/journal/cursor.h"
#include "storage/journal/shard_store.h"

namespace tocsin::journal {
namespace {

/// The most places that one call looks at, and jobs and bytes that a page lists. A page always holds one job.
constexpr size_t kScanMax = 8192;
constexpr size_t kListMax = 512;
constexpr size_t kListBytes = 256 << 10;
/// What a call may take, and what its parts take: in nanoseconds, about. No selector may stall the shard.
constexpr size_t kWorkMax = 250'000;
constexpr size_t kJobWork = 10;      // to look at the fixed part of a job
constexpr size_t kBodyWork = 40;     // to read its texts
constexpr size_t kHeaderWork = 150;  // and its headers
constexpr size_t kDetailsWork = 80;
constexpr size_t kIdWork = 100;  // to prepare one of the selector's ids
/// A longer payload is searched in parts of this size, over several calls. A byte takes about a nanosecond.
constexpr size_t kSearchBytes = 64 << 10;

uint64_t CountOf(State state, const TopicState& topic) {
  const TopicFigures& figures = topic.figures;
  switch (state) {
    case State::kScheduled:
      return figures.scheduled;
    case State::kLeased:
      return figures.leased;
    case State::kDead:
      return figures.dead;
    case State::kDone:
    case State::kCancelled:
      break;
  }
  return topic.jobs - figures.scheduled - figures.leased - figures.dead;  // both together
}

/// False if no job of the topic can match: most topics have no dead letters, so this saves the scan.
bool MayHaveAny(const Selector& what, const TopicState& topic) {
  const auto has_some = [&](State state) { return what.states.MayHave(state) && CountOf(state, topic) > 0; };
  return has_some(State::kScheduled) || has_some(State::kLeased) || has_some(State::kDead) || has_some(State::kDone) ||
         has_some(State::kCancelled);
}

}  // namespace

/// Looks at the jobs of one listing. It reads no more of a job than the selector asks for: most jobs do not match.
class ShardStore::Look {
 public:
  enum class Found : uint8_t { kNo, kYes, kUnfinished };

  Look(const ShardStore& store, const Selector& what, Moment now)
      : store_(store),
        tier_(store.tier_),
        what_(what),
        now_(now),
        payload_(what.payload),
        reads_headers_(!what.header.empty()),
        reads_texts_(reads_headers_ || !what.ids.empty() || !what.id_prefix.empty() || !what.key.empty() ||
                     !what.payload.empty()),
        reads_details_(!what.reason.empty() || !what.reason_is.empty() || what.died.Bounds()) {
    for (const std::string& id : what.ids) {
      ids_.insert(id);
      if (const auto uid = ParseUid(id)) uids_.insert(*uid);
    }
    work_ = std::min(what.ids.size() * kIdWork, kWorkMax / 2);  // however many there are, a call gets on
  }

  /// `offset`: where the search of its payload goes on. kUnfinished: call again, with the offset that this returned.
  Found At(Index index, size_t& offset);
  size_t work() const { return work_; }

 private:
  void Read(Index index);
  bool HasId() const {
    return ids_.empty() || uids_.contains(view_.uid) || (!view_.own_id.empty() && ids_.contains(view_.own_id));
  }

  const ShardStore& store_;
  const HotTier& tier_;
  const Selector& what_;
  const Moment now_;
  TextSearch payload_;
  const bool reads_headers_;
  const bool reads_texts_;
  const bool reads_details_;
  std::unordered_set<std::string_view, TextHash> ids_;
  std::unordered_set<Uid, WordHash> uids_;
  JobView view_;  // of the job that it looks at, as far as the selector asks
  size_t work_ = 0;
};

void ShardStore::Look::Read(Index index) {
  const HotJob& hot = tier_.at(index);
  view_.uid = hot.uid;
  view_.state = hot.state;
  view_.due = store_.ShownDue(index, now_);
  view_.attempt = ShownAttempt(hot);
  view_.created = store_.ShownCreated(hot, now_);
  if (!what_.holder.empty()) {
    const Lease* lease = tier_.LeaseOf(index);
    view_.holder = lease == nullptr ? std::string_view() : tier_.HolderOf(*lease);
  }
  if (reads_texts_) {
    constexpr Index kAhead = 8;
    tier_.PrefetchBody(index + kAhead);
    work_ += kBodyWork;
    if (reads_headers_) {
      work_ += kHeaderWork;
      view_.headers.clear();
      TOCSIN_CHECK(DecodeBody(tier_.BodyOf(hot), view_));
    } else {
      DecodeTexts(tier_.BodyOf(hot), view_);
    }
  }
  if (!reads_details_) return;
  const Details* details = tier_.DetailsOf(index);
  view_.reason = details == nullptr ? std::string_view() : details->reason;
  view_.died = details != nullptr && hot.state == State::kDead ? ShownTime(details->ended, now_) : Time{};
  work_ += view_.reason.size();
}

ShardStore::Look::Found ShardStore::Look::At(Index index, size_t& offset) {
  work_ += (tier_.at(index).flags & kHasDetails) == 0 ? kJobWork : kJobWork + kDetailsWork;
  if (!what_.states.MayHave(tier_.at(index).state)) return Found::kNo;
  Read(index);
  if (!MatchesRest(what_, view_, now_.utc) || !HasId()) return Found::kNo;
  if (what_.payload.empty()) return Found::kYes;
  const std::string_view rest = view_.payload.substr(std::min(offset, view_.payload.size()));
  const std::string_view part = rest.substr(0, kSearchBytes + payload_.size());
  work_ += part.size();
  if (payload_.IsIn(part)) return Found::kYes;
  if (part.size() == rest.size()) return Found::kNo;
  offset += kSearchBytes;
  return Found::kUnfinished;
}

void ShardStore::List(std::string_view name, const Selector& what, std::string_view cursor, JobMax max, Moment now,
                      Done<Page> done) {
  TopicNumber topic = kNoTopic;
  if (!Ready(name, topic, done)) return;
  // Where to go on: the index of a job. If a part of its payload was searched: how much, the uid, and the body, because
  // the job may have got another payload since.
  std::array<uint64_t, 4> place{1};
  if (Status status = ParseCursor(cursor, place); !status) return done(std::unexpected(std::move(status).error()));
  auto at = static_cast<Index>(place[0]);
  if (!MayHaveAny(what, tier_.topic(topic))) at = tier_.end();
  Look look(*this, what, now);
  Page page;
  std::vector<Index> found;
  size_t bytes = 0;
  Index stopped = 0;  // there is no room for it, or its payload is not yet searched to the end
  size_t offset = 0;
  at = tier_.Walk(topic, at, kScanMax, [&](Index index) {
    const HotJob& hot = tier_.at(index);
    const bool goes_on = index == place[0] && hot.uid == place[2] && hot.body == place[3];
    offset = goes_on ? place[1] : 0;
    const Look::Found outcome = look.At(index, offset);
    if (outcome == Look::Found::kYes) {
      bytes += ViewBytes(index);
      if (max.room != nullptr && !max.room->Reach(found.size() + 1, bytes)) {
        page.jobs.no_room = found.empty();
        offset = 0;
        stopped = index;
        return false;
      }
      found.push_back(index);
    } else if (outcome == Look::Found::kUnfinished) {
      stopped = index;
      return false;
    }
    ++page.looked;
    return found.size() < std::min(max.jobs, kListMax) && bytes < kListBytes && look.work() < kWorkMax;
  });
  if (stopped != 0) at = stopped;
  const bool no_room = page.jobs.no_room;
  page.jobs = ViewAll(found, now);
  page.jobs.no_room = no_room;
  if (at < tier_.end()) page.cursor = std::to_string(at);
  if (stopped != 0 && offset > 0) {
    page.cursor += fmt::format(".{}.{}.{}", offset, tier_.at(stopped).uid, tier_.at(stopped).body);
  }
  done(std::move(page));
}

}  // namespace tocsin::journal
