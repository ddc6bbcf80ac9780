#include "server/redis_options.h"

#include <string_view>
#include <utility>

#include "config/options.h"
#include "server/password_file.h"

namespace tocsin {
namespace {

static_assert(static_cast<int>(redis::Mode::kSingle) == static_cast<int>(RedisMode::kSingle));
static_assert(static_cast<int>(redis::Mode::kSentinel) == static_cast<int>(RedisMode::kSentinel));
static_assert(static_cast<int>(redis::Mode::kCluster) == static_cast<int>(RedisMode::kCluster));

}  // namespace

std::string AddressesText(const Addresses& addresses) {
  Config config;
  config.redis_endpoints = addresses;
  return ShowOption(*FindOption("redis.endpoints"), config);
}

Result<redis::Options> RedisOptionsOf(const Config& config) {
  redis::Options options{.mode = static_cast<redis::Mode>(config.redis_mode)};
  for (const Address& address : config.redis_endpoints) options.endpoints.push_back({address.host, address.port});
  options.master = config.redis_master;
  options.username = config.redis_username;
  options.sentinel_username = config.redis_sentinel_username;
  auto password = PasswordOf("redis.password_file", config.redis_password_file);
  if (!password) return std::unexpected(std::move(password).error());
  options.password = *std::move(password);
  password = PasswordOf("redis.sentinel_password_file", config.redis_sentinel_password_file);
  if (!password) return std::unexpected(std::move(password).error());
  options.sentinel_password = *std::move(password);
  options.tls = {.on = config.redis_tls,
                 .ca_file = config.redis_tls_ca_file,
                 .cert_file = config.redis_tls_cert_file,
                 .key_file = config.redis_tls_key_file};
  options.command_timeout = config.redis_timeout;
  return options;
}

Result<ZookeeperOptions> ZookeeperOptionsOf(const Config& config) {
  auto secret = PasswordOf("zookeeper.password_file", config.zookeeper_password_file);
  if (!secret) return std::unexpected(std::move(secret).error());
  const size_t colon = secret->find(':');
  if (!secret->empty() && (colon == 0 || colon == std::string::npos)) {
    return FailField(Code::kInvalidArgument, "zookeeper.password_file",
                     "zookeeper.password_file: {} does not hold user:password", config.zookeeper_password_file);
  }
  ZookeeperOptions options;
  options.hosts = AddressesText(config.zookeeper_hosts);
  options.path = config.zookeeper_path;
  options.session = config.session_timeout;
  if (!secret->empty()) {
    options.username = secret->substr(0, colon);
    options.password = secret->substr(colon + 1);
  }
  return options;
}

}  // namespace tocsin
