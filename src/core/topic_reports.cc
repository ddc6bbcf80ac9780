#include "core/topic_reports.h"

#include <unordered_set>
#include <utility>

#include "core/scatter.h"

namespace tocsin {
namespace {

constexpr size_t kWalkTopics = 64;  // in one step
constexpr size_t kAnswers = 16;     // the same; each is encoded and sent

/// Null if nothing was delivered.
const metrics::Histogram* HistogramOf(Shard& origin, const TopicFigures& figures) {
  const TopicEntry* entry = origin.topics().Find(figures.topic.name);
  return entry == nullptr || figures.delivered == 0 ? nullptr : entry->lateness.get();
}

TopicReport ReportOf(Shard& origin, TopicFigures figures) {
  const metrics::Histogram* const histogram = HistogramOf(origin, figures);
  const Millis age = RowOf(figures, origin.Now().utc).oldest_age;
  return {.figures = std::move(figures),
          .lateness = histogram == nullptr ? Lateness{} : LatenessOf(histogram->Read()),
          .oldest_age = age};
}

}  // namespace

Lateness LatenessOf(const metrics::Histogram::Snapshot& recorded) {
  return {.count = recorded.count,
          .p50 = recorded.Quantile(0.5),
          .p99 = recorded.Quantile(0.99),
          .p999 = recorded.Quantile(0.999),
          .max = recorded.Quantile(1)};
}

struct TopicReporter::Walk {
  Shard& origin;
  std::string prefix;
  std::move_only_function<Status(TopicFigures)> take;
  std::move_only_function<void(Status)> end;
  std::string after = {};  // the last name of the step before
};

struct TopicReporter::Adding {
  std::vector<Done<Totals>> callers;
  Totals totals = {};
  metrics::Histogram::Snapshot lateness = {};
  std::unordered_set<const metrics::Histogram*> added = {};  // topics over the registry's limit share one
  size_t answered = 0;                                       // callers
};

void TopicReporter::Read(Shard& origin, std::vector<std::string> names, Done<std::vector<TopicFigures>> done) {
  struct Reading {
    std::vector<std::string> names;
    std::vector<std::vector<std::optional<TopicFigures>>> parts;  // by shard
  };
  const auto reading = std::make_shared<Reading>(std::move(names));
  reading->parts.resize(node_.shards.size());
  const auto look = [&origin, reading](Shard& shard, Done<void> looked) {
    auto read = [&shard, reading, looked = std::move(looked)]() mutable {
      auto& part = reading->parts[shard.index()];
      for (const std::string& name : reading->names) part.push_back(shard.store().FindFigures(name));
      looked({});
    };
    if (&shard == &origin) return read();
    shard.InTurn(std::move(read));
  };
  OnEveryShard(node_, origin, look, [reading, done = std::move(done)](Result<void>) mutable {
    std::vector<TopicFigures> sums(reading->names.size());
    for (const auto& part : reading->parts) {
      for (size_t i = 0; i < sums.size(); ++i) {
        if (part[i]) AddPart(sums[i], *part[i]);
      }
    }
    done(std::move(sums));
  });
}

void TopicReporter::One(Shard& origin, std::string topic, Done<TopicReport> done) {
  Read(origin, {topic}, [&origin, topic, done = std::move(done)](Result<std::vector<TopicFigures>> read) mutable {
    if (read->front().topic.name.empty()) return done(NoSuchTopic(topic));
    done(ReportOf(origin, std::move(read->front())));
  });
}

void TopicReporter::Next(std::shared_ptr<Walk> walk) {
  Shard& here = walk->origin;
  here.InTurn([this, &here, walk = std::move(walk)]() mutable {
    auto names = here.topics().NamesAfter(walk->prefix, walk->after, kWalkTopics);
    if (names.empty()) return walk->end({});
    walk->after = names.back();
    Read(here, std::move(names), [this, walk = std::move(walk)](Result<std::vector<TopicFigures>> read) mutable {
      for (TopicFigures& figures : *read) {
        if (figures.topic.name.empty()) continue;  // dropped meanwhile
        if (Status taken = walk->take(std::move(figures)); !taken) return walk->end(std::move(taken));
      }
      Next(std::move(walk));
    });
  });
}

void TopicReporter::All(Shard& origin, std::string prefix, TakeTopic take, Done<void> done) {
  auto report = [&origin, take = std::move(take)](TopicFigures figures) mutable {
    return take(ReportOf(origin, std::move(figures)));
  };
  Next(std::make_shared<Walk>(origin, std::move(prefix), std::move(report), std::move(done)));
}

struct TopicReporter::Naming {
  Shard& origin;
  std::vector<std::string> names;
  TakeTopic take;
  Done<void> done;
  size_t next = 0;
};

void TopicReporter::Some(Shard& origin, std::vector<std::string> names, TakeTopic take, Done<void> done) {
  NextNames(std::make_shared<Naming>(origin, std::move(names), std::move(take), std::move(done)));
}

void TopicReporter::NextNames(std::shared_ptr<Naming> naming) {
  if (naming->next == naming->names.size()) return naming->done({});
  naming->origin.InTurn([this, naming = std::move(naming)]() mutable {
    const auto from = naming->names.begin() + static_cast<ptrdiff_t>(naming->next);
    const size_t count = std::min(kWalkTopics, naming->names.size() - naming->next);
    naming->next += count;
    Shard& origin = naming->origin;
    auto take = [this, naming = std::move(naming)](Result<std::vector<TopicFigures>> read) mutable {
      for (TopicFigures& figures : *read) {
        if (figures.topic.name.empty()) continue;
        Status taken = naming->take(ReportOf(naming->origin, std::move(figures)));
        if (!taken) return naming->done(std::move(taken));
      }
      NextNames(std::move(naming));
    };
    Read(origin, {from, from + static_cast<ptrdiff_t>(count)}, std::move(take));
  });
}

void TopicReporter::NextLeased(Shard& origin, std::string prefix, std::string after, Done<NextTopics> done) {
  origin.InTurn(
      [this, &origin, prefix = std::move(prefix), after = std::move(after), done = std::move(done)]() mutable {
        NextTopics next{.names = origin.topics().NamesAfter(prefix, after, kWalkTopics)};
        if (next.names.size() == kWalkTopics) next.last = next.names.back();
        if (origin.shared_store() != nullptr) return done(std::move(next));
        auto names = std::exchange(next.names, {});
        auto keep = [next = std::move(next), done = std::move(done)](Result<std::vector<TopicFigures>> read) mutable {
          for (TopicFigures& figures : *read) {
            if (figures.leased > 0) next.names.push_back(std::move(figures.topic.name));
          }
          done(std::move(next));
        };
        Read(origin, std::move(names), std::move(keep));
      });
}

void TopicReporter::Total(Shard& origin, Done<Totals> done) {
  Waiting& waiting = totals_[origin.index()];
  waiting.callers.push_back(std::move(done));
  if (!waiting.walking) StartTotals(origin);
}

void TopicReporter::StartTotals(Shard& origin) {
  Waiting& waiting = totals_[origin.index()];
  waiting.walking = true;
  const auto adding = std::make_shared<Adding>(std::exchange(waiting.callers, {}));
  auto take = [&origin, adding](const TopicFigures& figures) {
    ++adding->totals.topics;
    Add(adding->totals.figures, figures);
    const metrics::Histogram* const histogram = HistogramOf(origin, figures);
    if (histogram != nullptr && adding->added.insert(histogram).second) adding->lateness.Add(histogram->Read());
    return Status();
  };
  auto end = [this, &origin, &waiting, adding](const Status&) {
    adding->totals.lateness = LatenessOf(adding->lateness);
    waiting.walking = false;
    // Started before the answers: after the last of them the shard may be quiet.
    if (!waiting.callers.empty()) StartTotals(origin);
    AnswerSome(origin, adding);
  };
  Next(std::make_shared<Walk>(origin, std::string(), std::move(take), std::move(end)));
}

void TopicReporter::AnswerSome(Shard& origin, std::shared_ptr<Adding> adding) {
  const size_t stop = std::min(adding->answered + kAnswers, adding->callers.size());
  // Posted before the answers, for the same reason.
  if (stop < adding->callers.size()) origin.InTurn([&origin, adding] { AnswerSome(origin, adding); });
  while (adding->answered < stop) adding->callers[adding->answered++](adding->totals);
}

}  // namespace tocsin
