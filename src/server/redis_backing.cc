#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "clients/redis/client.h"
#include "config/options.h"
#include "coordination/redis/coordinator.h"
#include "coordination/shared/fallback.h"
#include "coordination/zookeeper/coordinator.h"
#include "server/backing.h"
#include "server/options.h"
#include "server/ownership.h"
#include "storage/redis/store.h"

namespace tocsin {
namespace {

constexpr Millis kOpenTime{60'000};  // how long to wait for Redis
constexpr Millis kFirstWord{1'000};  // when to log first what it waits for,
constexpr Millis kNextWord{5'000};   // and how often later
constexpr Millis kTryEvery{200};
constexpr Millis kPoll{5};
constexpr Millis kBeatEvery{200};  // pings of an idle node, over all shards

/// The reason, with the server's address unless the reader knows it.
std::string WhyAway(const redis::ServerHealth& server, bool known) {
  const std::string named = fmt::format("Redis at {}: ", server.endpoint.Text());
  std::string_view why = server.state;
  if (why.starts_with(named)) why.remove_prefix(named.size());
  return known ? std::string(why) : fmt::format("{}: {}", server.endpoint.Text(), why);
}

class RedisBacking final : public Backing {
 public:
  explicit RedisBacking(BackingParts parts) : parts_(std::move(parts)) {}
  ~RedisBacking() override { static_cast<void>(RedisBacking::Close()); }  // of one that could not be opened

  Status Open(const std::function<bool()>& go_on) override;
  Store& store(uint32_t shard) override { return *shards_[shard].store; }
  SharedStore* shared_store(uint32_t shard) override { return shards_[shard].store.get(); }
  std::shared_ptr<Cluster> cluster() override { return ownership_; }
  std::string Describe() const override;
  void Start() override { ownership_->Start(); }
  void Leave(Task done) override { ownership_->Leave(std::move(done)); }
  Status Close() override {
    if (std::exchange(closed_, true)) return {};
    for (const Part& part : shards_) part.client->Close();
    return {};
  }

 private:
  struct Part {
    std::unique_ptr<redis::Client> client;
    std::unique_ptr<redis::RedisStore> store;
    bool open = false;
    bool asked = false;
    std::optional<Error> error;  // of the last try to open
  };

  Status MakeClients(redis::Options options);
  /// Asks how many groups there are, and makes the stores.
  void AskForGroups();
  void MakeStores();
  Status OpenStores(const std::function<bool()>& go_on);
  void AskToOpen();
  /// Before anything is written: a replica refuses that for as long as it is one.
  Status CheckRoles();
  Status CheckServers();
  Result<std::unique_ptr<Coordinator>> MakeCoordinator(redis::Options options);
  /// What keeps the stores from opening.
  std::string Trouble() const;
  /// Runs the shards' loops on this thread for a moment, or until `done`: their own threads do not run yet.
  template <class Until>
  void Drive(Millis most, Until done);

  const BackingParts parts_;
  std::vector<Part> shards_;
  redis::Groups groups_{.count = 0};  // until they are known
  std::shared_ptr<Ownership> ownership_;
  bool closed_ = false;
};

Status RedisBacking::Open(const std::function<bool()>& go_on) {
  TOCSIN_ASSIGN(redis::Options options, RedisOptionsOf(parts_.config));
  TOCSIN_TRY(MakeClients(options));
  TOCSIN_TRY(OpenStores(go_on));
  TOCSIN_TRY(CheckServers());
  TOCSIN_ASSIGN(std::unique_ptr<Coordinator> coordinator, MakeCoordinator(std::move(options)));
  std::vector<OwnedShard> shards;
  for (size_t i = 0; i < shards_.size(); ++i) shards.push_back({parts_.loops[i], shards_[i].store.get()});
  ownership_ = std::make_shared<Ownership>("redis", groups_.count, parts_.main_loop, std::move(shards),
                                           std::move(coordinator), parts_.self, parts_.metrics);
  return {};
}

Status RedisBacking::MakeClients(redis::Options options) {
  options.beat_min = kBeatEvery * static_cast<int64_t>(parts_.loops.size());
  for (net::AsioLoop* const loop : parts_.loops) {
    TOCSIN_ASSIGN(auto client, Prefixed("redis", redis::Client::Make(loop->io(), options, parts_.metrics)));
    shards_.emplace_back().client = std::move(client);
  }
  return {};
}

void RedisBacking::AskForGroups() {
  Part& first = shards_.front();
  if (std::exchange(first.asked, true)) return;
  const auto wanted = static_cast<uint32_t>(parts_.config.redis_groups);
  parts_.loops.front()->Post([this, &first, wanted] {
    redis::ReadGroups(*first.client, parts_.config.redis_prefix, wanted,
                      [this, &first, wanted](Result<redis::Groups> groups) {
                        first.asked = false;
                        first.error = groups ? std::nullopt : std::optional(groups.error());
                        if (!groups) return;
                        groups_ = *groups;
                        LogInfo("the prefix {} has {} groups", parts_.config.redis_prefix, groups_.Text());
                        if (groups_.count != wanted) {
                          LogWarn("redis.groups is {}, but the prefix {} was first used with {}: this node uses {}",
                                  wanted, parts_.config.redis_prefix, groups_.count, groups_.count);
                        }
                        MakeStores();
                      });
  });
}

void RedisBacking::MakeStores() {
  const auto clock = parts_.virtual_clock != nullptr ? redis::ClockSource::kCaller : redis::ClockSource::kRedis;
  for (uint32_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard].store = std::make_unique<redis::RedisStore>(
        *shards_[shard].client, parts_.clock,
        redis::StoreOptions{.prefix = parts_.config.redis_prefix,
                            .node = parts_.self.id,
                            .shard = shard,
                            .shards = static_cast<uint32_t>(shards_.size()),
                            .groups = groups_,
                            .clock = clock,
                            .topics = static_cast<uint64_t>(parts_.config.limits_topics)});
  }
}

template <class Until>
void RedisBacking::Drive(Millis most, Until done) {
  const auto end = parts_.clock.IoNow() + most;
  while (!done() && parts_.clock.IoNow() < end) {
    size_t ran = 0;
    for (net::AsioLoop* const loop : parts_.loops) ran += loop->io().poll();
    if (ran == 0) parts_.loops.front()->io().run_one_for(kPoll);
  }
}

void RedisBacking::AskToOpen() {
  if (groups_.count == 0) return AskForGroups();
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].open || shards_[i].asked) continue;
    shards_[i].asked = true;
    parts_.loops[i]->Post([&part = shards_[i]] {
      part.store->Open([&part](Result<void> result) {
        part.asked = false;
        part.open = result.has_value();
        part.error = result ? std::nullopt : std::optional(std::move(result).error());
      });
    });
  }
}

Status RedisBacking::OpenStores(const std::function<bool()>& go_on) {
  const auto begin = parts_.clock.IoNow();
  auto next_word = begin + kFirstWord;
  const std::string place = AddressesText(parts_.config.redis_endpoints);
  const auto all_open = [this] { return std::ranges::all_of(shards_, &Part::open); };
  while (true) {
    AskToOpen();
    Drive(kTryEvery, [&, asks = groups_.count == 0] { return asks ? groups_.count != 0 : all_open(); });
    TOCSIN_TRY(CheckRoles());
    if (all_open()) return {};
    if (!go_on()) return Fail(Code::kShuttingDown, "told to stop while waiting for Redis");
    for (const Part& part : shards_) {
      if (part.error && part.error->code != Code::kUnavailable) return std::unexpected(*part.error);
    }
    const auto now = parts_.clock.IoNow();
    if (now - begin >= kOpenTime) {
      return Fail(Code::kUnavailable, "Redis at {} could not be reached within {} s: {}", place,
                  kOpenTime.count() / 1000, Trouble());
    }
    if (now < next_word) continue;
    next_word = now + kNextWord;
    LogWarn("waiting for Redis at {}: {}", place, Trouble());
  }
}

std::string RedisBacking::Trouble() const {
  for (const redis::ServerHealth& server : shards_.front().client->Health()) {
    if (!server.connected) return WhyAway(server, parts_.config.redis_endpoints.size() == 1);
  }
  for (const Part& part : shards_) {
    if (part.error) return part.error->message;
  }
  return "no answer yet";
}

Status RedisBacking::CheckRoles() {
  if (static_cast<redis::Mode>(parts_.config.redis_mode) != redis::Mode::kSingle) return {};
  for (const redis::ServerHealth& server : shards_.front().client->Health()) {
    if (server.role != "replica") continue;
    return FailField(
        Code::kInvalidArgument, "redis.endpoints",
        "redis.endpoints: {} is a replica, which takes no jobs: name its master, or set redis.mode = sentinel",
        server.endpoint.Text());
  }
  return {};
}

Status RedisBacking::CheckServers() {
  const auto mode = static_cast<redis::Mode>(parts_.config.redis_mode);
  std::optional<Result<std::vector<std::string>>> found;
  parts_.loops.front()->Post([this, &found, mode] {
    redis::CheckServers(*shards_.front().client, mode,
                        [&found](Result<std::vector<std::string>> warnings) { found.emplace(std::move(warnings)); });
  });
  while (!found) Drive(kTryEvery, [&found] { return found.has_value(); });  // the client has a deadline
  if (!*found) {
    // A node may come back while a part of Redis is away: the others do their work.
    if (found->error().code != Code::kUnavailable)
      return std::unexpected(std::move(found->error()).Prefixed("cannot check Redis"));
    LogWarn("redis.checks: not every server could be checked: {}", found->error().message);
    return {};
  }
  if ((*found)->empty()) return {};
  if (parts_.config.redis_checks == RedisChecks::kRefuse) {
    return FailField(Code::kInvalidArgument, "redis.checks",
                     "{}. Set Redis right, or start with redis.checks = warn to go on all the same",
                     fmt::join(**found, "; "));
  }
  for (const std::string& warning : **found) LogWarn("redis.checks: {}", warning);
  return {};
}

Result<std::unique_ptr<Coordinator>> RedisBacking::MakeCoordinator(redis::Options options) {
  const Config& config = parts_.config;
  TOCSIN_ASSIGN(auto in_redis,
                Prefixed("coordination",
                         RedisCoordinator::Make(parts_.main_loop.io(), parts_.clock, std::move(options), parts_.metrics,
                                                {.prefix = config.redis_prefix, .session = config.session_timeout})));
  if (config.coordination == CoordinationKind::kZookeeper) {
    TOCSIN_ASSIGN(ZookeeperOptions zookeeper, ZookeeperOptionsOf(config));
    TOCSIN_ASSIGN(auto first, Prefixed("zookeeper", ZookeeperCoordinator::Make(parts_.main_loop, parts_.main_loop.io(),
                                                                               parts_.clock, std::move(zookeeper))));
    return std::make_unique<FallbackCoordinator>(parts_.main_loop.io(), std::move(first), std::move(in_redis),
                                                 config.session_timeout);
  }
  return in_redis;
}

std::string RedisBacking::Describe() const {
  return fmt::format("redis    {} ({}, prefix {}; this node is {})", AddressesText(parts_.config.redis_endpoints),
                     ShowOption(*FindOption("redis.mode"), parts_.config), parts_.config.redis_prefix, parts_.self.id);
}

}  // namespace

std::unique_ptr<Backing> MakeRedisBacking(BackingParts parts) {
  return std::make_unique<RedisBacking>(std::move(parts));
}

}  // namespace tocsin
