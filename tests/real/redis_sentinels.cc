#include <algorithm>
#include <charconv>

#include "real/redis_servers.h"
#include "real/replication.h"

namespace tocsin::real {

namespace {

constexpr size_t kServers = 3;
constexpr size_t kSentinels = 3;

/// The port of the master that a sentinel names; 0 if it names none.
uint16_t MasterSaidBy(RedisServer& sentinel) {
  if (!sentinel.awake()) return 0;
  const Result<Answer> answer = sentinel.Ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", RedisSentinels::kMasterName});
  if (!answer || answer->elements.size() != 2) return 0;
  const std::string& text = answer->elements[1].text;
  uint16_t port = 0;
  std::from_chars(text.data(), text.data() + text.size(), port);
  return port;
}

std::vector<uint16_t> PortsOf(const std::vector<std::unique_ptr<RedisServer>>& servers) {
  std::vector<uint16_t> ports;
  for (const auto& server : servers) ports.push_back(server->port());
  return ports;
}

}  // namespace

Result<std::unique_ptr<RedisSentinels>> RedisSentinels::Make(SentinelOptions options) {
  std::unique_ptr<RedisSentinels> all(new RedisSentinels(std::move(options)));
  TOCSIN_TRY(all->StartServers());
  TOCSIN_TRY(all->StartSentinels());
  const auto watched = [&] {
    return std::ranges::all_of(all->sentinels_, [&](auto& one) { return all->Watched(*one); });
  };
  if (!WaitFor(Millis(20'000), watched)) {
    return Fail(Code::kTimedOut, "the sentinels did not find all servers and each other:\n{}",
                all->Sentinel(0).Output());
  }
  return all;
}

Status RedisSentinels::StartServers() {
  for (size_t i = 0; i < kServers; ++i) {
    RedisOptions options{.password = options_.password, .lines = options_.lines};
    if (i > 0) options.lines.push_back(fmt::format("replicaof 127.0.0.1 {}", servers_[0]->port()));
    auto server = RedisServer::Make(std::move(options));
    if (!server) return std::unexpected(std::move(server).error());
    servers_.push_back(std::move(*server));
  }
  // Sentinels learn of the replicas from the master: they must be there when it is asked first.
  return WaitUntilInStep();
}

Status RedisSentinels::StartSentinels() {
  RedisOptions options{.password = options_.sentinel_password};
  options.lines = {fmt::format("sentinel monitor {} 127.0.0.1 {} 2", kMasterName, servers_[0]->port()),
                   fmt::format("sentinel down-after-milliseconds {} {}", kMasterName, options_.down_after.count()),
                   fmt::format("sentinel failover-timeout {} {}", kMasterName, options_.failover_timeout.count()),
                   fmt::format("sentinel parallel-syncs {} 2", kMasterName)};
  if (!options_.password.empty()) {
    options.lines.push_back(fmt::format("sentinel auth-pass {} {}", kMasterName, options_.password));
  }
  if (!options_.sentinel_password.empty()) {
    options.lines.push_back(fmt::format("sentinel sentinel-pass {}", options_.sentinel_password));
  }
  for (size_t i = 0; i < kSentinels; ++i) {
    auto sentinel = RedisServer::MakeKind(options, RedisServer::Kind::kSentinel);
    if (!sentinel) return std::unexpected(std::move(sentinel).error());
    sentinels_.push_back(std::move(*sentinel));
  }
  return {};
}

bool RedisSentinels::Watched(RedisServer& sentinel) {
  const Result<Answer> info = sentinel.Ask({"INFO", "sentinel"});
  return info && InfoField(info->text, "master0") ==
                     fmt::format("name={},status=ok,address=127.0.0.1:{},slaves={},sentinels={}", kMasterName,
                                 servers_[0]->port(), kServers - 1, kSentinels);
}

std::vector<uint16_t> RedisSentinels::SentinelPorts() const { return PortsOf(sentinels_); }
std::vector<uint16_t> RedisSentinels::ServerPorts() const { return PortsOf(servers_); }

Result<uint16_t> RedisSentinels::Master() {
  for (const auto& sentinel : sentinels_) {
    if (const uint16_t port = MasterSaidBy(*sentinel); port != 0) return port;
  }
  return Fail(Code::kIo, "no sentinel names a master");
}

RedisServer& RedisSentinels::At(uint16_t port) {
  const bool sentinel = std::ranges::any_of(sentinels_, [&](const auto& one) { return one->port() == port; });
  return ServerAt(sentinel ? sentinels_ : servers_, port);
}

Result<uint16_t> RedisSentinels::KillMaster() {
  Result<uint16_t> port = Master();
  if (port) At(*port).Kill();
  return port;
}

Result<uint16_t> RedisSentinels::PauseMaster() {
  Result<uint16_t> port = Master();
  if (port) At(*port).Pause();
  return port;
}

Result<uint16_t> RedisSentinels::WaitForNewMaster(uint16_t old, Millis within) {
  uint16_t found = 0;
  const auto agreed = [&] {
    found = 0;
    for (const auto& sentinel : sentinels_) {
      if (!sentinel->awake()) continue;
      const uint16_t said = MasterSaidBy(*sentinel);
      if (said == 0 || said == old || (found != 0 && said != found)) return false;
      found = said;
    }
    return found != 0 && IsMaster(At(found));
  };
  if (WaitFor(within, agreed)) return found;
  return Fail(Code::kTimedOut, "no new master within {} ms:\n{}", within.count(), Sentinel(0).Output());
}

Status RedisSentinels::WaitUntilInStep(Millis within) {
  const auto one_master = [&] {
    return std::ranges::count_if(servers_, [](auto& one) { return IsMaster(*one); }) == 1;
  };
  if (WaitFor(within, [&] { return one_master() && InStep(servers_); })) return {};
  return Fail(Code::kTimedOut, "the replicas are not in step after {} ms", within.count());
}

Result<Answer> RedisSentinels::Ask(uint16_t port, const std::vector<std::string>& command) {
  return At(port).Ask(command);
}

}  // namespace tocsin::real
