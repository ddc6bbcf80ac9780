// RedisStore: list and sweep. Both go through the slots of this shard one after the other; the cursor is their
// position.
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr size_t kStepsMax = 100;  // commands for one page, even if they find few jobs
constexpr size_t kPageBytesMax = 16 << 20;
constexpr size_t kFirstAsked = 32;      // jobs, before their sizes are known
constexpr size_t kAskedMax = 400;       // jobs, however few match
constexpr uint64_t kSweepPartsMax = 5;  // zsets of a slot

std::unexpected<Error> NoCursor() { return FailField(Code::kInvalidArgument, "cursor", "cursor is not one"); }

/// Numbers with dots between them.
template <size_t N>
std::optional<std::array<uint64_t, N>> ParseNumbers(std::string_view text) {
  std::array<uint64_t, N> numbers{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (size_t i = 0; i < N; ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [stop, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc()) return std::nullopt;
    at = stop;
  }
  if (at != end) return std::nullopt;
  return numbers;
}

/// The zsets that hold jobs of these states. Scheduled jobs that wait for a count alone are in kCount.
std::vector<Part> PartsOf(StateSet states) {
  std::vector<Part> parts;
  if (states.MayHave(State::kScheduled)) parts = {Part::kStore, Part::kCount};
  if (states.MayHave(State::kLeased)) parts.push_back(Part::kPrepare);
  if (states.MayHave(State::kDead)) parts.push_back(Part::kDead);
  if (states.MayHave(State::kDone) || states.MayHave(State::kCancelled)) parts.push_back(Part::kEnded);
  return parts;
}

}  // namespace

/// The position of a listing: ZSCAN's own cursor, and the last job shown of those that it gave, which may be more than
/// a page.
struct RedisStore::Listing {
  std::string topic;
  Selector what;
  std::vector<Part> parts;
  JobMax max;
  Moment now;
  Done<Page> done;
  uint64_t slot = 0;
  uint64_t part = 0;
  uint64_t scan = 0;
  uint64_t shown = 0;           // the sequence number of that job, plus 1
  size_t steps = 0;             // commands
  size_t bytes = 0;             // of the jobs that were looked at
  size_t copied = 0;            // of those in the page
  std::vector<uint64_t> found;  // by the scan at `scan`, and not looked at yet
  uint64_t next_scan = 0;
  size_t shown_before = 0;  // jobs of this page that earlier scans found
  size_t count = 0;         // that the scan was asked for
  size_t count_max = kAskedMax / 2;
  Page page;

  std::vector<JobView>& Jobs() { return page.jobs.jobs; }
  bool Full() { return Jobs().size() >= max.jobs; }
  /// How many jobs to look at, so that those which match fill the page, if as many match as before.
  size_t Likely() { return (max.jobs - Jobs().size()) * (page.looked + 1) / (Jobs().size() + 1); }
  /// ZSCAN gives somewhat more than it is asked for, so ask for half of what fits, in jobs and in bytes, if the next
  /// jobs are as large as those before.
  int64_t Count() {
    const size_t fitting = page.looked == 0 ? kFirstAsked : (kPageBytesMax - bytes) * page.looked / (bytes + 1);
    count = shown > 0 ? 1 : std::clamp<size_t>(std::min(Likely(), fitting) / 2, 1, count_max);
    return static_cast<int64_t>(count);
  }
  /// Whether what the scan found may be shown in parts. A scan for one gives one bucket of Redis' hash table, and gives
  /// it again to the next page. A larger one may give other buckets then.
  bool InParts() const { return count == 1; }

  std::string Cursor() const { return fmt::format("{}.{}.{}.{}", slot, part, scan, shown); }
  /// The next page begins here.
  void End() {
    page.cursor = Cursor();
    done(std::move(page));
  }
  /// Nothing that the scan found is shown.
  void TakeBack() {
    Jobs().resize(shown_before);
    page.jobs.bytes.resize(shown_before);
    found.clear();
    shown = 0;
  }
};

void RedisStore::List(std::string_view topic, const Selector& what, std::string_view cursor, JobMax max, Moment now,
                      Done<Page> done) {
  if (FindTopic(topic) == nullptr) return done(NoSuchTopic(topic));
  auto listing = std::make_shared<Listing>(std::string(topic), what, PartsOf(what.states), max, now, std::move(done));
  if (!cursor.empty()) {
    const auto at = ParseNumbers<4>(cursor);
    if (!at || (*at)[1] >= listing->parts.size()) return listing->done(NoCursor());
    std::tie(listing->slot, listing->part, listing->scan, listing->shown) = std::tuple_cat(*at);
  }
  ListNext(std::move(listing));
}

void RedisStore::ListNext(std::shared_ptr<Listing> listing) {
  TopicSlots* slots = FindTopic(listing->topic);
  if (slots == nullptr) return listing->done(NoSuchTopic(listing->topic));
  const auto at = slots->by_number.lower_bound(static_cast<uint32_t>(std::min<uint64_t>(listing->slot, kSlotsMax)));
  if (at == slots->by_number.end()) return listing->done(std::move(listing->page));
  if (at->first != listing->slot) {
    listing->slot = at->first;
    listing->part = listing->scan = listing->shown = 0;
  }
  if (listing->Full() || listing->bytes >= kPageBytesMax || ++listing->steps > kStepsMax) return listing->End();
  Command command = at->second->keys.Call("ZSCAN", listing->parts[listing->part]);
  command.Add(static_cast<int64_t>(listing->scan)).Add("COUNT").Add(listing->Count());
  Send(std::move(command), [this, listing](Result<Reply> reply) {
    if (!reply) return listing->done(std::unexpected(std::move(reply).error()));
    ListFound(listing, reply->root());
  });
}

void RedisStore::ListFound(std::shared_ptr<Listing> listing, const ReplyView& scanned) {
  listing->next_scan = static_cast<uint64_t>(ParseMs(scanned[0].text()));
  std::vector<uint64_t>& found = listing->found;
  for (size_t i = 0; i < scanned[1].size(); i += 2) {
    const auto sequence = SequenceOf(scanned[1][i].text());
    if (sequence && *sequence + 1 > listing->shown) found.push_back(*sequence);
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  listing->shown_before = listing->Jobs().size();
  const bool too_many = found.size() > listing->Likely() && (listing->shown_before > 0 || !listing->InParts());
  too_many ? ListLess(std::move(listing), false) : ListShow(std::move(listing));
}

/// The page cannot have all that the scan found. If nothing is in it yet, a scan for less may find what fits. Only what
/// fits no page is shown in parts: if Redis resizes its hash table in between, some of it is shown twice.
void RedisStore::ListLess(std::shared_ptr<Listing> listing, bool no_room) {
  if (listing->shown_before > 0) {
    listing->TakeBack();
    return listing->End();
  }
  if (listing->InParts()) {
    listing->page.jobs.no_room = no_room && listing->Jobs().empty();
    return listing->End();
  }
  listing->TakeBack();
  listing->copied = listing->bytes = listing->steps = 0;  // a page ends only where it has moved on
  listing->count_max = std::max<size_t>(listing->count / 4, 1);
  ListNext(std::move(listing));
}

/// Looks at as much as one script reads.
void RedisStore::ListShow(std::shared_ptr<Listing> listing) {
  const std::vector<uint64_t>& found = listing->found;
  if (found.empty()) {
    listing->shown = 0;
    listing->scan = listing->next_scan;
    if (listing->scan == 0 && ++listing->part == listing->parts.size()) {
      ++listing->slot;
      listing->part = 0;
    }
    return ListNext(std::move(listing));
  }
  if (listing->bytes >= kPageBytesMax) return ListLess(std::move(listing), false);
  if (listing->Full() && listing->shown_before == 0 && listing->InParts()) return listing->End();
  const auto [slots, slot] = FindSlot(listing->topic, static_cast<uint32_t>(listing->slot));
  if (slot == nullptr) return listing->done(NoSuchTopic(listing->topic));
  Command command = FindCall(*slot, listing->now);
  // A full page may still be the whole of what the scan found.
  const size_t some = listing->Full() ? kAskedMax : std::clamp<size_t>(listing->Likely(), 1, kAskedMax);
  for (size_t i = 0; i < std::min(some, found.size()); ++i) command.Add(MemberOf(found[i])).Add("");
  ++listing->steps;
  Send(std::move(command), [this, listing](Result<Reply> reply) {
    if (!reply) return listing->done(std::unexpected(std::move(reply).error()));
    ListLooked(listing, reply->root()[1]);
  });
}

void RedisStore::ListLooked(std::shared_ptr<Listing> listing, const ReplyView& list) {
  const size_t looked = list.size() / kFindFields;
  std::vector<uint64_t>& found = listing->found;
  JobRoom* const room = listing->max.room;
  for (size_t i = 0; i < looked; ++i) {
    JobView view;
    const auto slot = static_cast<uint32_t>(listing->slot);
    if (Status shown = ShowFound(list, kFindFields * i, slot, view); !shown) {
      return listing->done(std::unexpected(std::move(shown).error()));
    }
    const size_t bytes = FoundBytes(list, kFindFields * i);
    ++listing->page.looked;
    listing->bytes += bytes;
    // A job that waits for either is in both zsets: show it with the first.
    const bool again = listing->parts[listing->part] == Part::kCount && view.due != kNever;
    if (view.uid == 0 || again || !Matches(listing->what, view, listing->now.utc)) continue;
    const size_t jobs = listing->Jobs().size() + 1;
    if (listing->Full() || (room != nullptr && !room->Reach(jobs, listing->copied + bytes))) {
      if (i > 0) listing->shown = found[i - 1] + 1;
      return ListLess(std::move(listing), true);
    }
    listing->copied += bytes;
    Append(listing->page.jobs, std::move(view));
  }
  listing->shown = found[looked - 1] + 1;
  found.erase(found.begin(), found.begin() + static_cast<ptrdiff_t>(looked));
  ListShow(std::move(listing));
}

struct RedisStore::Sweeping {
  std::string topic;
  SweepKind kind = SweepKind::kRedrive;
  size_t limit = 0;
  Moment now;
  Done<Swept> done;
  uint64_t slot = 0;
  std::string began;  // as the script gave it; empty at the beginning of a slot
  uint64_t part = 0;  // the zset of the slot, and where ZSCAN is in it
  uint64_t scan = 0;
  size_t steps = 0;
  Swept swept;
};

void RedisStore::Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
                       Done<Swept> done) {
  if (FindTopic(topic) == nullptr) return done(NoSuchTopic(topic));
  auto sweeping = std::make_shared<Sweeping>(std::string(topic), kind, limit, now, std::move(done));
  if (!cursor.empty()) {
    const auto at = ParseNumbers<4>(cursor);
    if (!at || (*at)[2] > kSweepPartsMax) return sweeping->done(NoCursor());
    sweeping->slot = (*at)[0];
    if ((*at)[1] != 0) sweeping->began = fmt::format("{}", (*at)[1]);
    sweeping->part = (*at)[2];
    sweeping->scan = (*at)[3];
  }
  SweepNext(std::move(sweeping));
}

/// A purge leaves jobs that are leased: they are named again when they fail again.
void RedisStore::ForgetSwept(std::string_view topic, uint32_t number, SweepKind kind) {
  TopicSlots* const slots = FindTopic(topic);
  if (slots == nullptr) return;
  const bool live = kind == SweepKind::kPurge || kind == SweepKind::kEmpty;
  if (live) std::erase_if(slots->worst.live, [&](const FailedJob& each) { return SlotOf(each.uid) == number; });
  if (SlotOf(slots->worst.dead.uid) == number) slots->worst.dead = {};
}

void RedisStore::SweepNext(std::shared_ptr<Sweeping> sweeping) {
  TopicSlots* slots = FindTopic(sweeping->topic);
  if (slots == nullptr) return sweeping->done(NoSuchTopic(sweeping->topic));
  const auto at = slots->by_number.lower_bound(static_cast<uint32_t>(std::min<uint64_t>(sweeping->slot, kSlotsMax)));
  if (at == slots->by_number.end()) return sweeping->done(std::move(sweeping->swept));
  if (at->first != sweeping->slot) {
    sweeping->slot = at->first;
    sweeping->began.clear();
    sweeping->part = sweeping->scan = 0;
  }
  if (sweeping->swept.changed >= sweeping->limit || ++sweeping->steps > kStepsMax) {
    sweeping->swept.cursor = fmt::format("{}.{}.{}.{}", sweeping->slot, sweeping->began.empty() ? "0" : sweeping->began,
                                         sweeping->part, sweeping->scan);
    return sweeping->done(std::move(sweeping->swept));
  }
  const Slot& slot = *at->second;
  Command command = SlotCall(Lua<"sweep">(), slot, sweeping->now);
  command.Add(static_cast<int64_t>(sweeping->kind));
  command.Add(static_cast<int64_t>(std::min<size_t>(sweeping->limit - sweeping->swept.changed, 500)));
  command.Add(sweeping->began).Add(static_cast<int64_t>(sweeping->part)).Add(static_cast<int64_t>(sweeping->scan));
  Send(std::move(command), [this, sweeping, name = slot.name](Result<Reply> reply) {
    if (!reply) return sweeping->done(std::unexpected(std::move(reply).error()));
    const ReplyView root = reply->root();
    sweeping->swept.changed += static_cast<size_t>(root[1].integer());
    if (root[1].integer() > 0) ForgetSwept(sweeping->topic, static_cast<uint32_t>(sweeping->slot), sweeping->kind);
    const bool more = root[5].integer() != 0;
    sweeping->began = more ? fmt::format("{}", root[2].integer()) : "";
    sweeping->part = more ? static_cast<uint64_t>(root[3].integer()) : 0;
    sweeping->scan = more ? static_cast<uint64_t>(ParseMs(root[4].text())) : 0;
    if (!more) ++sweeping->slot;
    LearnSlot(name, root[0].integer(), root[6].integer(), root[7]);
    SweepNext(sweeping);
  });
}

}  // namespace tocsin::redis
