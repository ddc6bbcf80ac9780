// RedisStore: list and sweep. Both go through the slots of this shard one after the other; the cursor is their
// position.
#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

constexpr size_t kStepsMax = 100;  // commands for one page, even if they find few jobs
constexpr size_t kPageBytesMax = 16 << 20;
constexpr size_t kFirstAsked = 32;      // jobs, before their sizes are known
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

/// The zsets that hold jobs of a state; scheduled jobs that wait for a count alone are in the second one.
std::vector<Part> PartsOf(State state) {
  switch (state) {
    case State::kScheduled:
      return {Part::kStore, Part::kCount};
    case State::kLeased:
      return {Part::kPrepare};
    case State::kDead:
      return {Part::kDead};
    case State::kDone:
    case State::kCancelled:
      return {Part::kEnded};
  }
  return {};
}

}  // namespace

/// The position of a listing: ZSCAN's own cursor, and the last job shown of those that it gave, which may be more than
/// a page.
struct RedisStore::Listing {
  std::string topic;
  State state = State::kScheduled;
  size_t limit = 0;
  Moment now;
  Done<Page> done;
  uint64_t slot = 0;
  uint64_t part = 0;
  uint64_t scan = 0;
  uint64_t shown = 0;  // the sequence number of that job, plus 1
  size_t steps = 0;
  size_t looked = 0;            // jobs of this page, shown or not
  size_t bytes = 0;             // of those
  std::vector<uint64_t> found;  // by the scan at `scan`, and not shown yet
  bool whole = true;            // those are all that it found
  uint64_t next_scan = 0;
  Page page;

  std::string Cursor() const { return fmt::format("{}.{}.{}.{}", slot, part, scan, shown); }
};

void RedisStore::List(std::string_view topic, State state, std::string_view cursor, size_t limit, Moment now,
                      Done<Page> done) {
  if (FindTopic(topic) == nullptr) return done(NoSuchTopic(topic));
  auto listing = std::make_shared<Listing>(std::string(topic), state, limit, now, std::move(done));
  if (!cursor.empty()) {
    const auto at = ParseNumbers<4>(cursor);
    if (!at || (*at)[1] >= PartsOf(state).size()) return listing->done(NoCursor());
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
  const bool full = listing->page.jobs.jobs.size() >= listing->limit || listing->bytes >= kPageBytesMax;
  if (full || ++listing->steps > kStepsMax) {
    listing->page.cursor = listing->Cursor();
    return listing->done(std::move(listing->page));
  }
  Command command = at->second->keys.Call("ZSCAN", PartsOf(listing->state)[listing->part]);
  // ZSCAN gives somewhat more than it is asked for, so ask for half of what fits, in jobs and in bytes, if the next
  // jobs are as large as those before.
  const size_t room = listing->limit - listing->page.jobs.jobs.size();
  const size_t fitting =
      listing->looked == 0 ? kFirstAsked : (kPageBytesMax - listing->bytes) * listing->looked / (listing->bytes + 1);
  command.Add(static_cast<int64_t>(listing->scan))
      .Add("COUNT")
      .Add(static_cast<int64_t>(std::max<size_t>(std::min(room, fitting) / 2, 1)));
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
  const size_t room = listing->limit - listing->page.jobs.jobs.size();
  listing->whole = found.size() <= room;
  if (!listing->whole && room < listing->limit) {
    // The next page begins here. Only what fits no page is shown in parts: if Redis resizes its hash table in between,
    // some of it is shown twice.
    listing->page.cursor = listing->Cursor();
    return listing->done(std::move(listing->page));
  }
  if (!listing->whole) found.resize(room);
  ListShow(std::move(listing));
}

/// Shows as much as one script reads.
void RedisStore::ListShow(std::shared_ptr<Listing> listing) {
  const std::vector<uint64_t>& found = listing->found;
  if (found.empty() && listing->whole) {
    listing->shown = 0;
    listing->scan = listing->next_scan;
    if (listing->scan == 0 && ++listing->part == PartsOf(listing->state).size()) {
      ++listing->slot;
      listing->part = 0;
    }
  }
  if (found.empty()) return ListNext(std::move(listing));
  const auto [slots, slot] = FindSlot(listing->topic, static_cast<uint32_t>(listing->slot));
  if (slot == nullptr) return listing->done(NoSuchTopic(listing->topic));
  Command command = slot->keys.Call(Lua<"find">(), {Part::kStore, Part::kJob, Part::kPrepare, Part::kDead, Part::kEnded,
                                                    Part::kId, Part::kNote, Part::kCount});
  AddNow(command, listing->now);
  for (const uint64_t sequence : found) command.Add(MemberOf(sequence)).Add("");
  Send(std::move(command), [this, listing](Result<Reply> reply) {
    if (!reply) return listing->done(std::unexpected(std::move(reply).error()));
    const ReplyView list = reply->root()[1];
    const size_t looked = list.size() / kFindFields;
    for (size_t i = 0; i < looked; ++i) {
      JobView view;
      if (Status shown =
              ShowFound(list, kFindFields * i, static_cast<uint32_t>(listing->slot), listing->page.jobs, view);
          !shown) {
        return listing->done(std::unexpected(std::move(shown).error()));
      }
      // A job that waits for either is in both zsets: show it with the first.
      const bool again = listing->part == 1 && view.due != kNever;
      ++listing->looked;
      listing->bytes += view.payload.size();
      if (view.uid == 0 || view.state != listing->state || again) continue;
      listing->page.jobs.jobs.push_back(std::move(view));
    }
    listing->shown = listing->found[looked - 1] + 1;
    listing->found.erase(listing->found.begin(), listing->found.begin() + static_cast<ptrdiff_t>(looked));
    ListShow(listing);
  });
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
