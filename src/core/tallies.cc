// Service: tallies. One walk through all jobs that match counts them in groups. What the groups take is bounded, and
// the caller's room is asked for it: their values are texts of clients.
#include <algorithm>
#include <map>

#include "core/scatter.h"
#include "core/service.h"
#include "model/names.h"

namespace tocsin {
namespace {

constexpr size_t kGroupsMax = 10'000;     // before the jobs of further ones count as others
constexpr size_t kGroupsBytes = 1 << 20;  // the same for their values
constexpr size_t kGroupBytes = 128;       // about what one takes in memory besides
constexpr size_t kGroupsShown = 1'000;
constexpr int64_t kMinuteMs = 60'000;

/// The value that the job is counted by. `made` keeps one that is not a text of the job.
std::string_view GroupOf(const TallyRequest& request, const JobView& job, std::string& made) {
  switch (request.by) {
    case TallyBy::kNothing:
      break;
    case TallyBy::kState:
      return kStateNames[static_cast<size_t>(job.state)];
    case TallyBy::kReason:
      return job.reason;
    case TallyBy::kKey:
      return job.key;
    case TallyBy::kHeader: {
      const auto header = std::ranges::find(job.headers, std::string_view(request.header), &HeaderView::name);
      return header == job.headers.end() ? std::string_view() : header->value;
    }
    case TallyBy::kMinute:
      if (job.due == kNever) break;
      return made = fmt::format("{}", ToMs(job.due) / kMinuteMs * kMinuteMs);
  }
  return {};
}

/// Not in the middle of a character.
std::string_view Cut(std::string_view value) {
  if (value.size() <= kTallyValueMax) return value;
  size_t end = kTallyValueMax;
  const auto continues = [&](size_t at) { return (static_cast<uint8_t>(value[at]) & 0xC0U) == 0x80U; };
  for (int i = 0; i < 3 && continues(end); ++i) --end;
  return value.substr(0, continues(end) ? kTallyValueMax : end);
}

/// A tally that is under way. For the store, the room that is left besides the groups.
class Counting final : public JobRoom {
 public:
  explicit Counting(TallyRequest request) : request_(std::move(request)) {}

  const TallyRequest& request() const { return request_; }

  bool Reach(size_t jobs, size_t bytes) override { return request_.room->Reach(jobs, bytes_ + bytes); }
  void Lower(size_t jobs, size_t bytes) override { request_.room->Lower(jobs, bytes_ + bytes); }

  Status Take(const Page& page) {
    report_.looked += page.looked;
    report_.total += page.jobs.jobs.size();
    if (request_.by != TallyBy::kNothing) {
      for (const JobView& job : page.jobs.jobs) Count(job);
    }
    if (request_.room != nullptr && !request_.room->Reach(0, bytes_)) return NoMemory();
    return {};
  }

  TallyReport Finish() {
    // The map has sorted them by value, and so minutes by time: the place of each decides between those of one size.
    std::vector<std::pair<const std::pair<const std::string, uint64_t>*, size_t>> order;
    order.reserve(groups_.size());
    for (const auto& group : groups_) order.emplace_back(&group, order.size());
    const size_t shown = std::min(order.size(), kGroupsShown);
    if (request_.by != TallyBy::kMinute) {
      std::ranges::partial_sort(order, order.begin() + static_cast<ptrdiff_t>(shown), {},
                                [](const auto& each) { return std::pair(~each.first->second, each.second); });
    }
    report_.groups.reserve(shown);
    for (size_t i = 0; i < order.size(); ++i) {
      const auto& [value, count] = *order[i].first;
      if (i < shown) report_.groups.emplace_back(value, count);
      if (i >= shown) report_.others += count;
    }
    return std::move(report_);
  }

 private:
  void Count(const JobView& job) {
    std::string made;
    const std::string_view value = Cut(GroupOf(request_, job, made));
    const auto at = groups_.find(value);
    if (at != groups_.end()) {
      ++at->second;
    } else if (groups_.size() < kGroupsMax && value_bytes_ + value.size() <= kGroupsBytes) {
      groups_.emplace(value, 1);
      value_bytes_ += value.size();
      bytes_ += kGroupBytes + value.size();
    } else {
      ++report_.others;
    }
  }

  const TallyRequest request_;
  TallyReport report_;
  std::map<std::string, uint64_t, std::less<>> groups_;
  size_t value_bytes_ = 0;
  size_t bytes_ = 0;  // of the groups, with what they take besides
};

}  // namespace

void Service::ForEachPage(Loop& caller, ListRequest request, std::function<Status(const Page&)> take, Done<void> done) {
  ListRequest part = request;
  List(caller, std::move(part),
       [this, &caller, request = std::move(request), take = std::move(take),
        done = std::move(done)](Result<Page> page) mutable {
         if (!page) return done(std::unexpected(std::move(page).error()));
         if (Status taken = take(*page); !taken) return done(std::move(taken));
         if (page->cursor.empty()) return done({});
         if (!Wanted(request.wanted)) return done(ClientGone());
         request.cursor = std::move(page->cursor);
         ForEachPage(caller, std::move(request), std::move(take), std::move(done));
       });
}

void Service::Tally(Loop& caller, TallyRequest request, Done<TallyReport> done) {
  constexpr size_t kPageJobs = 200;
  const auto counting = std::make_shared<Counting>(std::move(request));
  const TallyRequest& asked = counting->request();
  ListRequest list{.topic = asked.topic,
                   .what = asked.what,
                   .limit = kPageJobs,
                   .room = asked.room == nullptr ? nullptr : counting.get(),
                   .wanted = asked.wanted};
  const auto take = [counting](const Page& page) { return counting->Take(page); };
  ForEachPage(caller, std::move(list), take, [counting, done = std::move(done)](Result<void> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    done(counting->Finish());
  });
}

}  // namespace tocsin
