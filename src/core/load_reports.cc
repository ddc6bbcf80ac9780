#include "core/load_reports.h"

#include <algorithm>
#include <utility>

#include "core/scatter.h"

namespace tocsin {
namespace {

constexpr Millis kDefaultLength = std::chrono::hours(1);
constexpr size_t kRankedEach = 32;               // topics in one step
constexpr Millis kShort = std::chrono::days(7);  // a topic's jobs in a longer time may take a turn to count
/// Topics times steps, for a caller that may see only a part of the topics: their counts are added up one by one. A
/// shared store counts with a command for each step of each slot; topics have eight of them by default.
constexpr uint64_t kAddedMax = 2'000'000;
constexpr uint64_t kAddedSharedMax = 12'500;

/// The same time in steps of whole multiples, so few that they can be added up for so many topics.
LoadSpan Coarser(const LoadSpan& span, size_t topics, uint64_t added_max) {
  const uint64_t most = std::max<uint64_t>(1, added_max / std::max<size_t>(1, topics));
  const uint64_t times = (span.steps + most - 1) / most;
  return {span.from, span.step * static_cast<int64_t>(times), static_cast<size_t>((span.steps + times - 1) / times)};
}

void Add(LoadCounts& sum, const LoadCounts& more) {
  sum.due += more.due;
  sum.jobs.resize(std::max(sum.jobs.size(), more.jobs.size()));
  for (size_t i = 0; i < more.jobs.size(); ++i) sum.jobs[i] += more.jobs[i];
}

/// What one shard counts, a part of the steps in each turn.
struct Counting {
  Shard& shard;
  std::string topic;
  LoadSpan span;
  Done<void> done;
  LoadCounts counts = {};
};

void CountOn(const std::shared_ptr<Counting>& counting, LoadCounts& into) {
  counting->shard.InTurn([counting, &into] {
    const LoadSpan rest = counting->span.After(counting->counts.jobs.size());
    counting->shard.store().Load(
        counting->topic, rest, counting->shard.Now(), [counting, &into](Result<LoadCounts> part) {
          if (!part) return counting->done(std::unexpected(std::move(part).error()));
          counting->counts.due = part->due;
          counting->counts.jobs.insert(counting->counts.jobs.end(), part->jobs.begin(), part->jobs.end());
          if (counting->counts.jobs.size() < counting->span.steps) return CountOn(counting, into);
          into = std::move(counting->counts);
          counting->done({});
        });
  });
}

/// Some topics, each with its jobs in all steps.
struct Ranking {
  std::vector<std::string> names;
  LoadSpan whole;
  std::vector<std::vector<uint64_t>> parts = {};  // by shard
};

void RankOn(Shard& shard, const std::shared_ptr<Ranking>& ranking, Done<void> counted) {
  struct Answers final : Round {
    explicit Answers(Done<void> the_done) : done(std::move(the_done)) {}
    void End(Status status) override { done(std::move(status)); }
    Done<void> done;
  };
  const auto answers = std::make_shared<Answers>(std::move(counted));
  std::vector<uint64_t>& jobs = ranking->parts[shard.index()];
  for (size_t i = 0; i < jobs.size(); ++i) {
    answers->Expect();
    shard.store().Load(ranking->names[i], ranking->whole, shard.Now(),
                       [ranking, answers, &jobs, i](Result<LoadCounts> counts) {
                         if (!counts && counts.error().code != Code::kTopicNotFound) {
                           return answers->Take(std::unexpected(std::move(counts).error()));
                         }
                         if (counts) jobs[i] = counts->jobs[0];
                         answers->Take({});
                       });
  }
  answers->Take({});
}

}  // namespace

Result<LoadSpan> LoadSpanOf(const LoadRequest& request, Moment now) {
  const Time from = std::chrono::floor<std::chrono::minutes>(request.from.value_or(now.utc));
  const Time to = request.to.value_or(from + kDefaultLength);
  if (request.step < kLoadMinute || request.step % kLoadMinute != Millis(0)) {
    return FailField(Code::kInvalidArgument, "step", "step is {} ms: it takes whole minutes, such as 60000",
                     request.step.count());
  }
  if (to <= from) return FailField(Code::kInvalidArgument, "to", "to is not after from");
  if (to > kLoadLast) return FailField(Code::kInvalidArgument, "to", "to is after the year 9999");
  const auto steps = static_cast<uint64_t>((to - from + request.step - Millis(1)) / request.step);
  if (steps > kLoadStepsMax) {
    return FailField(Code::kInvalidArgument, "step",
                     "that makes {} steps, and an answer has at most {}: take longer ones", steps, kLoadStepsMax);
  }
  return LoadSpan{from, request.step, static_cast<size_t>(steps)};
}

struct LoadReporter::Reporting {
  Shard& origin;
  LoadRequest request;
  Done<LoadReport> done;
  LoadReport report = {};
  std::string after = {};                                // the last name that the walk has met
  std::vector<std::pair<uint64_t, std::string>> ranked;  // the largest topics so far, the largest first

  void Rank(uint64_t jobs, std::string topic) {
    if (jobs == 0) return;
    const auto larger = [](const auto& a, const auto& b) { return a.first > b.first; };
    std::pair<uint64_t, std::string> entry{jobs, std::move(topic)};
    ranked.insert(std::ranges::upper_bound(ranked, entry, larger), std::move(entry));
    if (ranked.size() > kLoadTopicsMax) ranked.pop_back();
  }
};

void LoadReporter::Report(Shard& origin, LoadRequest request, Done<LoadReport> done) {
  const auto span = LoadSpanOf(request, origin.Now());
  if (!span) return done(std::unexpected(span.error()));
  const bool one = !request.topic.empty();
  if (one && origin.topics().Find(request.topic) == nullptr) return done(NoSuchTopic(request.topic));
  auto reporting = std::make_shared<Reporting>(origin, std::move(request), std::move(done));
  reporting->report.span = *span;
  if (!one && !reporting->request.prefix.empty()) {
    const bool shared = node_.shards[0]->shared_store() != nullptr;
    const size_t topics = origin.topics().CountOf(reporting->request.prefix);
    reporting->report.span = Coarser(*span, topics, shared ? kAddedSharedMax : kAddedMax);
    reporting->report.counts.jobs.resize(reporting->report.span.steps);
    return AddTopics(std::move(reporting));
  }
  Read(origin, reporting->request.topic, *span, [this, reporting, one](Result<LoadCounts> counts) {
    if (!counts) return reporting->done(std::unexpected(std::move(counts).error()));
    reporting->report.counts = std::move(*counts);
    if (!one && reporting->request.by_topic) return RankTopics(reporting);
    reporting->done(std::move(reporting->report));
  });
}

void LoadReporter::Read(Shard& origin, const std::string& topic, const LoadSpan& span, Done<LoadCounts> done) {
  const auto parts = std::make_shared<std::vector<LoadCounts>>(node_.shards.size());
  const auto count = [parts, topic, span](Shard& shard, Done<void> counted) {
    CountOn(std::make_shared<Counting>(shard, topic, span, std::move(counted)), (*parts)[shard.index()]);
  };
  OnEveryShard(node_, origin, count, [parts, done = std::move(done)](Result<void> all) mutable {
    if (!all) return done(std::unexpected(std::move(all).error()));
    LoadCounts sum;
    for (const LoadCounts& part : *parts) Add(sum, part);
    done(std::move(sum));
  });
}

void LoadReporter::AddTopics(std::shared_ptr<Reporting> reporting) {
  auto names = reporting->origin.topics().NamesAfter(reporting->request.prefix, reporting->after, 1);
  if (names.empty()) {
    reporting->after.clear();
    if (reporting->request.by_topic) return RankTopics(std::move(reporting));
    return reporting->done(std::move(reporting->report));
  }
  reporting->after = names.front();
  Read(reporting->origin, names.front(), reporting->report.span, [this, reporting](Result<LoadCounts> counts) {
    // A topic that was dropped meanwhile has no jobs.
    if (!counts && counts.error().code != Code::kTopicNotFound) {
      return reporting->done(std::unexpected(std::move(counts).error()));
    }
    if (counts) Add(reporting->report.counts, *counts);
    if (!Wanted(reporting->request.wanted)) return reporting->done(ClientGone());
    AddTopics(reporting);
  });
}

void LoadReporter::RankTopics(std::shared_ptr<Reporting> reporting) {
  const LoadSpan whole = reporting->report.span.Whole();
  const size_t each = whole.step <= kShort ? kRankedEach : 1;
  auto names = reporting->origin.topics().NamesAfter(reporting->request.prefix, reporting->after, each);
  if (names.empty()) return ReadLargest(std::move(reporting));
  reporting->after = names.back();
  const auto ranking = std::make_shared<Ranking>(std::move(names), whole);
  for (size_t i = 0; i < node_.shards.size(); ++i) ranking->parts.emplace_back(ranking->names.size());
  const auto count = [ranking](Shard& shard, Done<void> counted) {
    shard.InTurn(
        [&shard, ranking, counted = std::move(counted)]() mutable { RankOn(shard, ranking, std::move(counted)); });
  };
  OnEveryShard(node_, reporting->origin, count, [this, reporting, ranking](Result<void> all) mutable {
    if (!all) return reporting->done(std::unexpected(std::move(all).error()));
    for (size_t i = 0; i < ranking->names.size(); ++i) {
      uint64_t jobs = 0;
      for (const auto& part : ranking->parts) jobs += part[i];
      reporting->Rank(jobs, std::move(ranking->names[i]));
    }
    RankTopics(std::move(reporting));
  });
}

void LoadReporter::ReadLargest(std::shared_ptr<Reporting> reporting) {
  auto& largest = reporting->report.largest;
  if (reporting->ranked.empty()) return reporting->done(std::move(reporting->report));
  largest.push_back({.topic = std::move(reporting->ranked.front().second)});
  reporting->ranked.erase(reporting->ranked.begin());
  Read(reporting->origin, largest.back().topic, reporting->report.span, [this, reporting](Result<LoadCounts> counts) {
    auto& known = reporting->report.largest;
    if (!counts && counts.error().code != Code::kTopicNotFound) {
      return reporting->done(std::unexpected(std::move(counts).error()));
    }
    counts ? void(known.back().counts = std::move(*counts)) : known.pop_back();
    ReadLargest(reporting);
  });
}

}  // namespace tocsin
