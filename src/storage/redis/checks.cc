#include "storage/redis/store.h"

namespace tocsin::redis {
namespace {

// Older versions wrap an error inside a script in a text of their own: a full memory would look like a bug.
constexpr int kMajorMin = 7;

std::string_view Line(std::string_view info, std::string_view name) {
  const size_t at = info.find(name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = info.substr(at + name.size());
  return rest.substr(0, rest.find_first_of("\r\n"));
}

bool OldVersion(std::string_view version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major < kMajorMin;
}

/// Pairs of an answer to CONFIG GET.
std::vector<std::pair<std::string, std::string>> Pairs(const ReplyView& reply) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i + 1 < reply.size(); i += 2) pairs.emplace_back(reply[i].text(), reply[i + 1].text());
  return pairs;
}

}  // namespace

std::vector<std::string> Findings(std::string_view server, Mode mode, std::string_view info,
                                  const std::vector<std::pair<std::string, std::string>>& settings) {
  std::vector<std::string> found;
  const auto setting = [&](std::string_view name) -> std::string_view {
    const auto at = std::ranges::find(settings, name, &std::pair<std::string, std::string>::first);
    return at == settings.end() ? std::string_view() : at->second;
  };
  const std::string_view version = Line(info, "redis_version:");
  if (OldVersion(version)) {
    found.push_back(fmt::format("Redis {} is version {}: {}.0 or newer is needed", server, version, kMajorMin));
  }
  if (settings.empty()) {
    found.push_back(fmt::format("Redis {} does not answer CONFIG GET: its persistence cannot be checked", server));
    return found;
  }
  if (mode != Mode::kCluster && setting("cluster-enabled") == "yes") {
    found.push_back(fmt::format("Redis {} is a node of a Redis Cluster; set redis.mode = cluster", server));
  }
  if (setting("appendonly") != "yes") {
    found.push_back(fmt::format("Redis {} has appendonly {}: a restart of it loses jobs; set appendonly yes", server,
                                setting("appendonly")));
  } else if (setting("appendfsync") == "no") {
    found.push_back(fmt::format(
        "Redis {} has appendfsync no: a power cut loses up to half a minute; set everysec or always", server));
  }
  const std::string_view policy = setting("maxmemory-policy");
  if (policy != "noeviction") {
    found.push_back(
        fmt::format("Redis {} has maxmemory-policy {}: it may throw jobs away; set noeviction", server, policy));
  }
  return found;
}

void CheckServers(Client& client, Mode mode, Done<std::vector<std::string>> done) {
  Command info("INFO");
  info.Add("server");
  client.CallEach(info, [&client, mode, done = std::move(done)](auto infos) mutable {
    if (!infos) return done(std::unexpected(std::move(infos).error()));
    Command get("CONFIG");
    get.Add("GET").Add("*");
    client.CallEach(get, [mode, infos = *std::move(infos), done = std::move(done)](auto settings) mutable {
      if (!settings) return done(std::unexpected(std::move(settings).error()));
      std::vector<std::string> found;
      for (const auto& [endpoint, reply] : infos) {
        const auto at = std::ranges::find_if(*settings, [&](const auto& each) { return each.first == endpoint; });
        const auto pairs = at == settings->end() ? decltype(Pairs(reply.root())){} : Pairs(at->second.root());
        for (std::string& finding : Findings(endpoint.Text(), mode, reply.root().text(), pairs)) {
          found.push_back(std::move(finding));
        }
      }
      done(std::move(found));
    });
  });
}

}  // namespace tocsin::redis
