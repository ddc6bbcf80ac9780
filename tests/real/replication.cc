#include "real/replication.h"

#include <map>

#include "base/result.h"

namespace tocsin::real {

namespace {

/// ROLE: ["master", offset, replicas] or ["slave", host, port, state, offset]; empty if it does not answer.
std::vector<Answer> RoleOf(RedisServer& server) {
  if (!server.awake()) return {};
  Result<Answer> role = server.Ask({"ROLE"});
  return role && role->elements.size() >= 3 ? std::move(role->elements) : std::vector<Answer>{};
}

}  // namespace

bool InStep(std::span<const std::unique_ptr<RedisServer>> servers) {
  // Masters first: their replicas, asked later, are then not behind for what is written meanwhile.
  std::map<int64_t, int64_t> offsets;
  for (const auto& server : servers) {
    const std::vector<Answer> role = RoleOf(*server);
    if (!role.empty() && role[0].text == "master") offsets[server->port()] = role[1].integer;
  }
  for (const auto& server : servers) {
    if (!server->awake()) continue;
    const std::vector<Answer> role = RoleOf(*server);
    if (role.empty()) return false;
    if (role[0].text == "master") continue;
    const auto master = offsets.find(role[2].integer);
    const bool connected = role.size() == 5 && role[3].text == "connected";
    if (!connected || master == offsets.end() || role[4].integer < master->second) return false;
  }
  return !offsets.empty();
}

bool IsMaster(RedisServer& server) {
  const std::vector<Answer> role = RoleOf(server);
  return !role.empty() && role[0].text == "master";
}

RedisServer& ServerAt(std::span<const std::unique_ptr<RedisServer>> servers, uint16_t port) {
  const auto found = std::ranges::find_if(servers, [&](const auto& server) { return server->port() == port; });
  TOCSIN_CHECK(found != servers.end());
  return **found;
}

}  // namespace tocsin::real
