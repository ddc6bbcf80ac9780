// Service: pages of topics, by name or by a figure; their history and lateness; the state of their deliveries.
#include <algorithm>

#include "core/monitor.h"
#include "core/scatter.h"
#include "core/service.h"
#include "core/topic_reports.h"

namespace tocsin {
namespace {

constexpr size_t kNamesEach = 1000;  // that one step of a walk looks at

}  // namespace

/// A walk through all names, for a page of those that match. Descending pages need the number of matches first: they
/// take a second walk.
struct Service::NameWalk {
  Shard& here;
  TopicsPageRequest request;
  std::function<void(size_t total, std::vector<std::string> names)> done;
  std::string after = {};
  size_t matched = 0;
  size_t from = 0;  // of the matches, those that are kept
  size_t to = 0;
  bool counted = false;
  std::vector<std::string> names = {};
};

void Service::WalkNames(std::shared_ptr<NameWalk> walk) {
  Shard& here = walk->here;
  here.InTurn([this, walk = std::move(walk)]() mutable {
    const TopicsPageRequest& request = walk->request;
    auto names = walk->here.topics().NamesAfter(request.prefix, walk->after, kNamesEach);
    const bool more = names.size() == kNamesEach;
    if (more) walk->after = names.back();
    for (std::string& name : names) {
      if (!name.contains(request.filter)) continue;
      if (walk->matched >= walk->from && walk->matched < walk->to) walk->names.push_back(std::move(name));
      ++walk->matched;
    }
    if (more) return WalkNames(std::move(walk));
    if (!request.descending || walk->counted) {
      if (request.descending) std::ranges::reverse(walk->names);
      return walk->done(walk->matched, std::move(walk->names));
    }
    walk->counted = true;
    walk->to = walk->matched - std::min(walk->matched, request.offset);
    walk->from = walk->to - std::min(walk->to, request.limit);
    walk->matched = 0;
    walk->after.clear();
    WalkNames(std::move(walk));
  });
}

void Service::PageOfNames(Shard& here, TopicsPageRequest request,
                          std::function<void(size_t, std::vector<std::string>)> done) {
  if (!request.filter.empty()) {
    auto walk = std::make_shared<NameWalk>(here, std::move(request), std::move(done));
    if (!walk->request.descending) {
      walk->from = walk->request.offset;
      walk->to = walk->request.offset + walk->request.limit;
    }
    return WalkNames(std::move(walk));
  }
  const size_t total = here.topics().CountOf(request.prefix);
  const size_t offset = std::min(request.offset, total);
  const size_t count = std::min(request.limit, total - offset);
  const size_t from = request.descending ? total - offset - count : offset;
  auto names = here.topics().NamesAt(request.prefix, from, count);
  if (request.descending) std::ranges::reverse(names);
  done(total, std::move(names));
}

void Service::TopicsPage(Loop& caller, TopicsPageRequest request, Done<TopicsPageReport> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  Shard& here = *call->caller;
  const auto shared = std::make_shared<Call<TopicsPageReport>>(std::move(*call));
  const auto show = [this, &here, shared](size_t total, std::vector<std::string> names) {
    const auto report = std::make_shared<TopicsPageReport>();
    report->total = total;
    const auto take = [report](TopicReport topic) {
      report->topics.push_back(std::move(topic));
      return Status();
    };
    reporter_->Some(here, std::move(names), take, [report, shared](Result<void> all) {
      all ? (*shared)(std::move(*report)) : (*shared)(std::unexpected(all.error()));
    });
  };
  if (request.sort == TopicSort::kName) return PageOfNames(here, std::move(request), show);
  const auto rank = [shared, show](Result<Monitor::Ranked> ranked) {
    if (!ranked) return (*shared)(std::unexpected(ranked.error()));
    show(ranked->total, std::move(ranked->names));
  };
  if (!monitor_) return rank(Monitor::RankNow(node_->board, request));
  monitor_->Rank(caller, std::move(request), rank);
}

void Service::Watch(Worker& worker) {
  monitor_ = std::make_unique<Monitor>(*node_, worker);
  node_->on_scanned = [this] { monitor_->Tick(); };
}

EventHub& Service::events() { return node_->events; }

void Service::History(Loop& caller, const std::string& topic, Done<HistoryReport> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  const TopicEntry* const entry = call->caller->topics().Find(topic);
  if (!topic.empty() && entry == nullptr) return (*call)(NoSuchTopic(topic));
  if (!monitor_) return (*call)(HistoryReport{.step = Monitor::kStep});
  (*call)(topic.empty() ? monitor_->OfNode() : monitor_->OfTopic(topic, entry->lateness));
}

void Service::ShowLateness(Loop& caller, const std::string& topic, Done<metrics::Histogram::Snapshot> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  const TopicEntry* const entry = call->caller->topics().Find(topic);
  if (entry == nullptr) return (*call)(NoSuchTopic(topic));
  (*call)(entry->lateness->Read());
}

/// Topics that are pushed, by name, each described by its home.
struct Service::Pushing {
  Call<DeliveriesPage> call;
  std::string prefix;
  std::string after;
  size_t limit;
  DeliveriesPage page = {};
};

void Service::Deliveries(Loop& caller, DeliveriesRequest request, Done<DeliveriesPage> done) {
  auto call = Admit(caller, done);
  if (!call) return;
  NextPushing(
      std::make_shared<Pushing>(std::move(*call), std::move(request.prefix), std::move(request.after), request.limit));
}

void Service::NextPushing(std::shared_ptr<Pushing> pushing) {
  Shard& here = *pushing->call.caller;
  here.InTurn([this, &here, pushing = std::move(pushing)]() mutable {
    DeliveriesPage& page = pushing->page;
    const auto names = here.topics().NamesAfter(pushing->prefix, pushing->after, kNamesEach);
    for (const std::string& name : names) {
      if (page.deliveries.size() == pushing->limit) {
        page.cursor = pushing->after;
        break;
      }
      pushing->after = name;
      const Topic& topic = here.topics().Find(name)->topic;
      if (!topic.delivery.Pushes()) continue;
      page.deliveries.push_back({.topic = name,
                                 .sink = topic.delivery.sink,
                                 .target = PlaceOf(topic.delivery),
                                 .state = topic.paused ? DeliveryState::kPaused : DeliveryState::kClosing});
    }
    if (!names.empty() && page.cursor.empty()) return NextPushing(std::move(pushing));
    DescribePushing(std::move(pushing));
  });
}

void Service::DescribePushing(std::shared_ptr<Pushing> pushing) {
  const auto describe = [this, pushing](Shard& shard, Done<void> described) {
    for (DeliveryReport& report : pushing->page.deliveries) {
      if (node_->placement.HomeOf(report.topic) == shard.index()) shard.Describe(report);
    }
    described({});
  };
  OnEveryShard(*node_, *pushing->call.caller, describe,
               [pushing](Result<void>) { pushing->call(std::move(pushing->page)); });
}

}  // namespace tocsin
