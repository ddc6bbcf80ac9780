// Service: lists. An unsorted list asks the topic's shards one after the other. A sorted one walks through all jobs for
// each page, and keeps those that come next; while it walks, it narrows what it asks for, so that few jobs are copied.
#include <algorithm>
#include <charconv>

#include "base/hash.h"
#include "core/scatter.h"
#include "core/service.h"
#include "core/validate.h"

namespace tocsin {
namespace {

/// A page of a listing ends with about this many bytes, but holds at least one job: an answer has to fit into memory.
constexpr size_t kPageBytes = 4 << 20;

/// Where List goes on.
struct ListCursor {
  uint32_t offset = 0;  // of the shard, counted from the topic's home
  std::string inner;    // its store's own cursor
};

/// What a cursor begins with: a hash of the topic, seeded with a number that the service draws at its start. A cursor
/// means nothing to another topic, nor after a restart.
std::string MarkOf(uint32_t start, std::string_view topic) {
  return fmt::format("{:08x}.", static_cast<uint32_t>(TableHash(topic, start)));
}

std::string CursorText(uint32_t start, std::string_view topic, const ListCursor& cursor) {
  return fmt::format("{}{}:{}", MarkOf(start, topic), cursor.offset, cursor.inner);
}

Result<ListCursor> ParseCursor(uint32_t start, std::string_view topic, std::string_view text, uint32_t spread) {
  ListCursor cursor;
  if (text.empty()) return cursor;
  const std::string mine = MarkOf(start, topic);
  const char* end = text.data() + text.size();
  const char* begin = text.data() + std::min(mine.size(), text.size());
  const auto [at, error] = std::from_chars(begin, end, cursor.offset);
  if (!text.starts_with(mine) || error != std::errc{} || at == end || *at != ':' || cursor.offset >= spread) {
    return FailField(Code::kInvalidArgument, "cursor",
                     "cursor is not one that a listing of this topic gave since the server was started");
  }
  cursor.inner.assign(at + 1, end);
  return cursor;
}

constexpr size_t kWalkJobs = 200;  // on a page of a walk

/// The last job of a sorted page.
struct SortCursor {
  Time time = Time::min();
  Uid uid = 0;

  static Result<SortCursor> Parse(const std::string& mark, std::string_view text) {
    SortCursor cursor;
    if (text.empty()) return cursor;
    int64_t ms = 0;
    const char* const end = text.data() + text.size();
    const char* const begin = text.data() + std::min(mark.size() + 1, text.size());
    const auto [at, error] = std::from_chars(begin, end, ms);
    const auto uid = at < end ? ParseUid({at + 1, end}) : std::nullopt;
    if (!text.starts_with(mark + "s") || error != std::errc{} || !uid) {
      return FailField(Code::kInvalidArgument, "cursor",
                       "cursor is not one that a sorted list of this topic gave since the server was started");
    }
    cursor.time = FromMs(ms);
    cursor.uid = *uid;
    return cursor;
  }
  std::string Text(const std::string& mark) const { return fmt::format("{}s{}:{}", mark, ToMs(time), UidText(uid)); }

  friend auto operator<=>(const SortCursor&, const SortCursor&) = default;
};

size_t CopyBytes(const JobView& job) { return CountedBytes(job) + job.reason.size() + job.holder.size(); }

}  // namespace

struct Service::Listing final : JobRoom {
  Listing(Call<Page> the_call, ListRequest the_request, uint32_t the_home, uint32_t the_spread, ListCursor from)
      : call(std::move(the_call)),
        request(std::move(the_request)),
        home(the_home),
        spread(the_spread),
        at(std::move(from)) {}

  Call<Page> call;
  ListRequest request;
  uint32_t home;
  uint32_t spread;
  ListCursor at;
  Page page;
  size_t job_bytes = 0;  // of those in the page

  // Those in the page, and the next.
  bool Reach(size_t jobs, size_t bytes) override {
    return request.room->Reach(page.jobs.jobs.size() + jobs, job_bytes + bytes);
  }
  void Lower(size_t jobs, size_t bytes) override {
    request.room->Lower(page.jobs.jobs.size() + jobs, job_bytes + bytes);
  }
  JobMax Next() { return {request.limit - page.jobs.jobs.size(), request.room == nullptr ? nullptr : this}; }

  /// True when the page is full or the listing is over.
  bool Take(Page part, uint32_t start) {
    for (JobView& job : part.jobs.jobs) {
      job_bytes += CountedBytes(job) + job.reason.size();
      page.jobs.jobs.push_back(std::move(job));
    }
    for (auto& bytes : part.jobs.bytes) page.jobs.bytes.push_back(std::move(bytes));
    page.looked += part.looked;
    at.inner = std::move(part.cursor);
    if (at.inner.empty() && ++at.offset == spread) {
      page.cursor.clear();
      return true;
    }
    page.cursor = CursorText(start, request.topic, at);
    return page.jobs.jobs.size() >= request.limit || job_bytes >= kPageBytes || page.looked >= request.looked_max;
  }
};

void Service::List(Loop& caller, ListRequest request, Done<Page> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Status valid = Validate(request);
  if (!valid) return (*call)(std::unexpected(std::move(valid).error()));
  const TopicEntry* entry = call->caller->topics().Find(request.topic);
  if (entry == nullptr) return (*call)(NoSuchTopic(request.topic));
  if (request.sort != Sort::kNone) {
    auto after = SortCursor::Parse(MarkOf(start_, request.topic), request.cursor);
    if (!after) return (*call)(std::unexpected(std::move(after).error()));
    return SortNext(std::make_shared<Sorting>(std::move(*call), std::move(request), *after));
  }
  const bool named = !request.what.ids.empty();
  const uint32_t spread =
      named ? static_cast<uint32_t>(request.what.ids.size()) : node_->placement.SpreadOf(entry->topic.slots);
  auto at = ParseCursor(start_, request.topic, request.cursor, spread);
  if (!at) return (*call)(std::unexpected(std::move(at).error()));
  if (named)
    return NameNext(std::make_shared<Naming>(std::move(*call), std::move(request), entry->topic.slots, at->offset));
  ListNext(std::make_shared<Listing>(std::move(*call), std::move(request), entry->home, spread, std::move(*at)));
}

void Service::ListNext(std::shared_ptr<Listing> listing) {
  Shard& here = *listing->call.caller;
  Shard& there = *node_->shards[node_->placement.ShardOf(listing->home, listing->at.offset)];
  auto read = [&there, listing](Done<Page> answer) {
    there.InWalkTurn([&there, listing, answer = std::move(answer)]() mutable {
      const ListRequest& request = listing->request;
      there.store().List(request.topic, request.what, listing->at.inner, listing->Next(), there.Now(),
                         [&there, answer = std::move(answer)](Result<Page> part) mutable {
                           there.Note(part);
                           answer(std::move(part));
                         });
    });
  };
  Ask<Page>(here, there, std::move(read), [this, listing](Result<Page> part) {
    if (!part) return listing->call(std::unexpected(std::move(part).error()));
    const bool cramped = part->jobs.no_room;
    if (cramped && listing->page.jobs.jobs.empty()) return listing->call(NoMemory());
    if (cramped || listing->Take(std::move(*part), start_)) return listing->call(std::move(listing->page));
    if (!Wanted(listing->request.wanted)) return listing->call(ClientGone());
    ListNext(listing);
  });
}

struct Service::Naming {
  Naming(Call<Page> the_call, ListRequest the_request, uint32_t the_slots, size_t from)
      : call(std::move(the_call)), request(std::move(the_request)), slots(the_slots), next(from) {}

  Call<Page> call;
  ListRequest request;
  uint32_t slots;  // of the topic
  size_t next;     // of the ids
  Page page;
  size_t bytes = 0;

  /// Whether an earlier id has named the same job: it is listed once.
  bool NamedBefore(const JobView& job) const {
    const std::span before = std::span(request.what.ids).first(next - 1);
    const std::string uid = UidText(job.uid);
    const std::string& name = request.what.ids[next - 1];
    // An own id is looked for in one slot alone, and as a server id if it looks like one.
    const bool by_own_id = !job.own_id.empty() && !ParseUid(job.own_id) &&
                           SlotFor(request.what.key, job.own_id, slots) == SlotFor({.uid = job.uid}, slots);
    return std::ranges::any_of(
        before, [&](const std::string& id) { return id == name || id == uid || (by_own_id && id == job.own_id); });
  }
};

void Service::NameNext(std::shared_ptr<Naming> naming) {
  Page& page = naming->page;
  const std::vector<std::string>& ids = naming->request.what.ids;
  const bool full = page.jobs.jobs.size() >= naming->request.limit || naming->bytes >= kPageBytes;
  if (full || naming->next == ids.size()) {
    if (naming->next < ids.size()) {
      page.cursor =
          CursorText(start_, naming->request.topic, {.offset = static_cast<uint32_t>(naming->next), .inner = {}});
    }
    return naming->call(std::move(page));
  }
  const std::string& id = ids[naming->next++];
  FindRequest request{
      .topic = naming->request.topic, .jobs = {{.id = id, .key = naming->request.what.key}}, .bytes = naming};
  Find(naming->call.caller->loop(), std::move(request), [this, naming](Result<JobBatch> found) {
    if (!found) return naming->call(std::unexpected(std::move(found).error()));
    if (!Wanted(naming->request.wanted)) return naming->call(ClientGone());
    ++naming->page.looked;
    const JobView& job = found->jobs.front();
    if (job.uid != 0 && !naming->NamedBefore(job) && Matches(naming->request.what, job, node_->clock.Now().utc)) {
      naming->bytes += CopyBytes(job);
      JobRoom* const room = naming->request.room;
      if (room != nullptr && !room->Reach(naming->page.jobs.jobs.size() + 1, naming->bytes)) {
        return naming->call(NoMemory());
      }
      Append(naming->page.jobs, job);
    }
    // Through the loop: many lookups that are answered at once must not become a deep stack.
    naming->call.caller->InWalkTurn([this, naming] { NameNext(naming); });
  });
}

/// Keeps the first jobs, in the order of the sort, of those behind the cursor.
struct Service::Sorting final : JobRoom {
  struct Kept {
    SortCursor at;
    JobBatch job;  // one
    size_t bytes = 0;
  };

  Sorting(Call<Page> the_call, ListRequest the_request, SortCursor the_after)
      : call(std::move(the_call)),
        request(std::move(the_request)),
        what(request.what),
        limit(request.limit),
        after(the_after) {
    // Jobs that are never due come last.
    what.due.or_none = request.sort == Sort::kDue && !what.due.Bounds();
    if (!request.cursor.empty()) Narrow().from = std::max(Narrow().from.value_or(Time::min()), after.time);
  }

  Call<Page> call;
  ListRequest request;
  Selector what;       // narrower than that of the request
  std::string cursor;  // of the walk
  size_t limit;        // falls if the jobs are large
  SortCursor after;
  std::vector<Kept> kept;  // a heap, whose first comes last in the order
  size_t bytes = 0;
  size_t looked = 0;

  TimeRange& Narrow() { return request.sort == Sort::kDue ? what.due : what.created; }

  // What is kept, and the page that is looked at.
  bool Reach(size_t jobs, size_t more) override { return request.room->Reach(kept.size() + jobs, bytes + more); }
  void Lower(size_t jobs, size_t more) override { request.room->Lower(kept.size() + jobs, bytes + more); }

  void DropLast() {
    std::ranges::pop_heap(kept, {}, &Kept::at);
    bytes -= kept.back().bytes;
    kept.pop_back();
  }

  void Take(const JobView& job) {
    const SortCursor at{request.sort == Sort::kDue ? job.due : job.created, job.uid};
    if (!request.cursor.empty() && at <= after) return;
    if (kept.size() == limit && at >= kept.front().at) return;
    Kept& one = kept.emplace_back(at, JobBatch(), CopyBytes(job));
    Append(one.job, job);
    bytes += one.bytes;
    std::ranges::push_heap(kept, {}, &Kept::at);
    if (kept.size() > limit) DropLast();
    while (bytes > kPageBytes && kept.size() > 1) {
      DropLast();
      limit = kept.size();
    }
    if (kept.size() < limit || kept.front().at.time == kNever) return;
    Narrow().to = kept.front().at.time + Millis(1);
    Narrow().or_none = false;
  }

  Page Finish(const std::string& mark) {
    std::ranges::sort_heap(kept, {}, &Kept::at);
    Page page;
    page.looked = looked;
    if (!kept.empty() && kept.size() == limit) page.cursor = kept.back().at.Text(mark);
    for (Kept& one : kept) {
      page.jobs.jobs.push_back(std::move(one.job.jobs.front()));
      page.jobs.bytes.push_back(std::move(one.job.bytes.front()));
    }
    return page;
  }
};

void Service::SortNext(std::shared_ptr<Sorting> sorting) {
  ListRequest request{.topic = sorting->request.topic,
                      .what = sorting->what,
                      .cursor = sorting->cursor,
                      .limit = kWalkJobs,
                      .room = sorting->request.room == nullptr ? nullptr : sorting.get(),
                      .wanted = sorting->request.wanted};
  List(sorting->call.caller->loop(), std::move(request), [this, sorting](Result<Page> page) {
    if (!page) return sorting->call(std::unexpected(std::move(page).error()));
    sorting->looked += page->looked;
    for (const JobView& job : page->jobs.jobs) sorting->Take(job);
    sorting->cursor = std::move(page->cursor);
    if (!Wanted(sorting->request.wanted)) return sorting->call(ClientGone());
    if (!sorting->cursor.empty()) return SortNext(sorting);
    sorting->call(sorting->Finish(MarkOf(start_, sorting->request.topic)));
  });
}

}  // namespace tocsin
