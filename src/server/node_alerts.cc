#include "server/node_alerts.h"

#include <algorithm>
#include <string_view>

#include <sys/statvfs.h>

#include "base/log.h"
#include "core/figures.h"
#include "core/future_minutes.h"
#include "model/placement.h"

namespace tocsin {
namespace {

constexpr Millis kRoundEvery{1'000};
constexpr int kRestsPerLook = 50;
constexpr Millis kPassEvery{10'000};  // over the topics with minutes to come
constexpr size_t kSearchesEach = 16;  // topics, in one round
constexpr Millis kSearchFor{100};     // in one round; the topic that is being searched is ended
constexpr int kRestsPerSearch = 20;

/// A node's id is its name and a random part (Member::id).
std::string_view NameOf(std::string_view id) { return id.substr(0, id.rfind('-')); }

void ReadDisk(const std::string& folder, NodeReading& reading) {
  struct statvfs disk{};
  if (folder.empty() || statvfs(folder.c_str(), &disk) != 0) return;
  reading.disk_size = uint64_t{disk.f_blocks} * disk.f_frsize;
  reading.disk_free = uint64_t{disk.f_bavail} * disk.f_frsize;
}

uint64_t Whole(int number) { return static_cast<uint64_t>(number); }

}  // namespace

AlertSettings AlertSettingsOf(const Config& config) {
  return {.topics = {.due_jobs = Whole(config.alerts_due_jobs),
                     .late = config.alerts_late,
                     .stalled = config.alerts_stalled,
                     .attempts = static_cast<uint32_t>(config.alerts_attempts),
                     .push_failures = Whole(config.alerts_push_failures),
                     .dead_jobs = Whole(config.alerts_dead_jobs),
                     .future_jobs = Whole(config.alerts_future_jobs)},
          .hold = config.alerts_hold,
          .node_silent = config.alerts_node_silent,
          .nearly_full_percent = static_cast<uint32_t>(config.alerts_nearly_full)};
}

AlertOrigin AlertOriginOf(const Config& config) {
  return {.instance = config.node_name, .cluster = config.store == StoreKind::kRedis ? config.redis_prefix : ""};
}

std::vector<NodeReading::Vanished> VanishedOf(const ClusterReport& report) {
  std::vector<NodeReading::Vanished> vanished;
  for (const Member& lost : report.lost) {
    const bool back = std::ranges::any_of(report.members, [&](const ClusterMember& each) {
      if (NameOf(each.member.id) != NameOf(lost.id)) return false;
      return each.member.http == lost.http || each.member.joined >= lost.heard;
    });
    if (!back) vanished.push_back({lost.id, lost.heard});
  }
  return vanished;
}

bool PostsHere(const ClusterReport& report, const AlertCondition& condition) {
  const AlertScope scope = condition.rule->scope;
  if (scope == AlertScope::kPart || scope == AlertScope::kNode) return true;  // each its own
  if (scope == AlertScope::kCluster) {
    const auto first = std::ranges::min_element(report.members, {}, [](const ClusterMember& each) {
      return std::pair(each.member.joined, std::string_view(each.member.id));
    });
    return first != report.members.end() && first->self;
  }
  if (report.groups.empty()) return false;
  const uint32_t group = GroupOf(condition.topic, 0, static_cast<uint32_t>(report.groups.size()));
  return report.groups[group].mine;
}

NodeAlerts::NodeAlerts(Parts parts)
    : parts_(std::move(parts)),
      settings_(AlertSettingsOf(parts_.config)),
      watch_(settings_),
      timer_(parts_.main_loop.io()),
      shown_(parts_.metrics.AddCollector([book = parts_.book](metrics::Samples& samples) {
        const auto listing = book->List();
        for (const AlertRule& rule : kAlertRules) {
          const uint64_t firing = listing->firing[static_cast<size_t>(rule.id)];
          if (firing == 0) continue;  // no wall of zeros
          samples.Add(metrics::Kind::kGauge, "tocsin_alerts_firing", "Alerts of this rule that fire.",
                      {{"rule", std::string(rule.name)}}, static_cast<double>(firing));
        }
      })) {}

void NodeAlerts::Round() {
  looking_ = true;
  parts_.backing.cluster()->Describe(parts_.main_loop, [this](Result<ClusterReport> report) {
    // SingleNode answers at once, Ownership later; both on this loop.
    Look(report ? std::move(*report) : ClusterReport{});
  });
}

void NodeAlerts::Look(ClusterReport report) {
  report_ = std::move(report);
  if (stopping_) {
    looking_ = false;
    return CheckStopped();
  }
  for (auto& [topic, found] : std::exchange(found_, {})) watch_.SetFuture(topic, std::move(found));
  struct Looking {
    NodeReading reading;
    std::vector<AlertCondition> conditions;
    Moment now;
    Millis took;
  };
  const auto looking = std::make_shared<Looking>();
  looking->reading = parts_.backing.Read();
  looking->reading.vanished = VanishedOf(report_);
  if (const auto outage = parts_.service.Outage()) looking->reading.outage = outage->message;
  if (parts_.outbox != nullptr) looking->reading.outbox_outage = parts_.outbox->Outage();
  const std::string folder = parts_.config.store == StoreKind::kJournal ? parts_.config.data_dir : "";
  auto look = [this, looking, folder] {
    const IoTime begin = parts_.clock.IoNow();
    ReadDisk(folder, looking->reading);
    looking->now = parts_.clock.Now();
    const FiguresBoard::Rows latest = parts_.service.figures().Latest();
    looking->conditions = watch_.Look(latest.rows(), looking->reading, looking->now);
    looking->took = std::chrono::duration_cast<Millis>(parts_.clock.IoNow() - begin);
  };
  parts_.worker.Run(parts_.main_loop, std::move(look), [this, looking](const Status& /*without a limit*/) {
    Looked(std::move(looking->conditions), looking->now, looking->took);
  });
}

void NodeAlerts::Looked(std::vector<AlertCondition> conditions, Moment now, Millis took) {
  looking_ = false;
  if (stopping_) return CheckStopped();
  // Before all shards have scanned, topics seem to be gone.
  if (parts_.service.figures().complete()) parts_.book->Update(conditions, now, settings_.hold);
  if (parts_.poster != nullptr) {
    parts_.poster->Post([this](const AlertCondition& condition) { return PostsHere(report_, condition); });
  }
  LookAtFuture();
  timer_.expires_after(std::max(kRoundEvery, took * kRestsPerLook));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !stopping_) Round();
  });
}

struct NodeAlerts::Searching {
  std::vector<FutureCandidate> candidates;
  IoTime began{};
  size_t next = 0;
  std::vector<Found> found;
};

void NodeAlerts::LookAtFuture() {
  const IoTime now = parts_.clock.IoNow();
  if (searching_ || now < next_search_ || report_.groups.empty()) return;
  if (queue_.empty()) {
    if (now < next_pass_) return;
    queue_ = watch_.Candidates(kSearchesEach, [this](const std::string& topic) {
      return PostsHere(report_, {&RuleOf(AlertRuleId::kFutureLoad), topic, {}, 0, 0, {}});
    });
    if (watch_.pass_over()) next_pass_ = now + kPassEvery;
    if (queue_.empty()) return;
  }
  searching_ = true;
  const auto searching = std::make_shared<Searching>(std::exchange(queue_, {}), now);
  parts_.shard_loop.Post([this, searching] { SearchNext(searching); });
}

void NodeAlerts::SearchNext(const std::shared_ptr<Searching>& searching) {
  const auto took = parts_.clock.IoNow() - searching->began;
  if (searching->next == searching->candidates.size() || (searching->next > 0 && took >= kSearchFor)) {
    return parts_.main_loop.Post([this, searching, took] { Searched(*searching, took); });
  }
  const FutureCandidate& candidate = searching->candidates[searching->next++];
  FindFullMinute(parts_.service, parts_.shard_loop, candidate, parts_.clock.Now().utc,
                 [this, searching, topic = candidate.topic](Result<FutureFinding> found) {
                   // What could not be found out stays as it was.
                   if (found) searching->found.emplace_back(topic, std::move(*found));
                   SearchNext(searching);
                 });
}

void NodeAlerts::Searched(Searching& searching, IoTime::duration took) {
  searching_ = false;
  // The embedded store keeps counts, so a search costs it little.
  if (parts_.config.store == StoreKind::kRedis) next_search_ = parts_.clock.IoNow() + took * kRestsPerSearch;
  const auto rest = searching.candidates.begin() + static_cast<ptrdiff_t>(searching.next);
  queue_.assign(std::move_iterator(rest), std::move_iterator(searching.candidates.end()));
  std::ranges::move(searching.found, std::back_inserter(found_));  // the last look may not have taken the others yet
  CheckStopped();
}

void NodeAlerts::Stop(Task done) {
  stopping_ = true;
  timer_.cancel();
  stopped_ = std::move(done);
  CheckStopped();
}

void NodeAlerts::CheckStopped() {
  if (!stopping_ || looking_ || searching_ || !stopped_) return;
  Task done = std::exchange(stopped_, nullptr);
  if (parts_.poster == nullptr) return done();
  parts_.poster->Close(std::move(done));
}

}  // namespace tocsin
