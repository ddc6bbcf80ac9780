#include <bit>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/comma_list.h"
#include "config/options.h"
#include "config/start_time.h"

namespace tocsin {
namespace {

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return host == "localhost";
}

template <class... Args>
std::unexpected<Error> Refuse(std::string_view key, fmt::format_string<Args...> format, Args&&... args) {
  return FailField(Code::kInvalidArgument, std::string(key), "{} {}", key,
                   fmt::format(format, std::forward<Args>(args)...));
}

Status CheckDoors(const Config& config) {
  const bool guarded = !config.auth_token_file.empty() || config.auth_allow_unauthenticated;
  const std::pair<std::string_view, const Address&> doors[] = {{"http.listen", config.http_listen},
                                                               {"resp.listen", config.resp_listen}};
  for (const auto& [key, address] : doors) {
    if (guarded || IsLoopback(address.host)) continue;
    return Refuse(key,
                  "is on {}, which other machines can reach, without authentication. Make an access token with "
                  "`tocsin token create --file F --name me --scope admin` and add `--auth-token-file F`; or bind "
                  "127.0.0.1, localhost or [::1]",
                  address.host);
  }
  return {};
}

Status CheckAllowedHosts(const Config& config) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-._";
  for (const std::string_view host : CommaList(config.http_allowed_hosts)) {
    if (!host.empty() && host.find_first_not_of(kAllowed) == std::string_view::npos) continue;
    return Refuse("http.allowed_hosts",
                  "has '{}': it takes names in small letters with commas between them, without a port or http://",
                  host);
  }
  return {};
}

bool IsDefault(const Option& option, const Config& config) {
  Config plain;
  return SetOption(option, option.fallback, plain) && ShowOption(option, plain) == ShowOption(option, config);
}

/// Refuses options that have no effect because of another one, unless they have their default.
Status CheckUnused(const Config& config, std::initializer_list<std::string_view> prefixes, std::string_view why) {
  for (const Option& option : Options()) {
    const bool named = std::ranges::any_of(prefixes, [&](auto prefix) { return option.key.starts_with(prefix); });
    if (named && !IsDefault(option, config)) return Refuse(option.key, "{}", why);
  }
  return {};
}

/// The TLS of the server's own doors.
Status CheckServerTls(const Config& config) {
  if (config.tls_certificate.empty()) {
    return CheckUnused(config, {"tls."}, "is set, but tls.certificate is not: the server has no TLS");
  }
  if (config.tls_key.empty()) return Refuse("tls.key", "is empty: a certificate and its key are given together");
  if (config.http_tls == DoorTls::kOff && config.resp_tls == DoorTls::kOff) {
    return Refuse("tls.certificate", "is set, but has no effect with http.tls = off and resp.tls = off");
  }
  if (!config.tls_client_ca.empty()) {
    const bool pointless = config.tls_client_auth == TlsClientAuth::kOptional && config.auth_token_file.empty();
    if (!pointless) return {};
    return Refuse("tls.client_auth",
                  "is optional, but auth.token_file is not set: clients without a certificate could do everything");
  }
  return CheckUnused(config, {"tls.client_auth"}, "is set, but tls.client_ca is not: clients show no certificates");
}

/// `family`: the options <family>.tls_cert_file and <family>.tls_key_file.
Status CheckCertificate(std::string_view family, const std::string& cert_file, const std::string& key_file) {
  if (cert_file.empty() == key_file.empty()) return {};
  return Refuse(fmt::format("{}.tls_{}_file", family, cert_file.empty() ? "cert" : "key"),
                "is empty: a certificate and its key are given together");
}

Status CheckJournal(const Config& config) {
  TOCSIN_TRY(CheckUnused(config, {"redis.", "zookeeper.", "coordination", "session_timeout"},
                         "is set, but has no effect with store = journal: add store = redis"));
  // A record, the batch that it ends and the list of topics before them share a segment.
  constexpr uint64_t kPayloadsInSegment = 5;
  if (config.limits_payload_size * kPayloadsInSegment <= config.journal_segment_size) return {};
  return Refuse("journal.segment_size", "is {} bytes, but has to be at least {} times limits.payload_size, {} bytes",
                config.journal_segment_size, kPayloadsInSegment, config.limits_payload_size);
}

Status CheckClock(const Config& config) {
  if (config.clock_start.empty()) return {};
  if (config.clock == ClockKind::kReal) return Refuse("clock_start", "is set, but has no effect with clock = real");
  if (ParseStartTime(config.clock_start)) return {};
  return Refuse("clock_start",
                "is not a time of this century such as 2026-12-01T09:00:00Z, nor milliseconds since 1970");
}

Status CheckSentinel(const Config& config) {
  if (config.redis_mode == RedisMode::kSentinel) {
    if (config.redis_master.empty()) {
      return Refuse("redis.master",
                    "is empty: with redis.mode = sentinel, set it to what the sentinels call the master");
    }
  } else {
    TOCSIN_TRY(CheckUnused(config, {"redis.master", "redis.sentinel_"},
                           "is set, but has an effect only with redis.mode = sentinel"));
  }
  if (!config.redis_sentinel_username.empty() && config.redis_sentinel_password_file.empty()) {
    return Refuse("redis.sentinel_username", "needs redis.sentinel_password_file");
  }
  return {};
}

Status CheckTls(const Config& config) {
  if (!config.redis_tls) {
    TOCSIN_TRY(CheckUnused(config, {"redis.tls_"}, "is set, but redis.tls is false: add redis.tls = true"));
  }
  return CheckCertificate("redis", config.redis_tls_cert_file, config.redis_tls_key_file);
}

Status CheckRedis(const Config& config) {
  TOCSIN_TRY(
      CheckUnused(config, {"durability", "journal."},
                  "is of the embedded store and has no effect with store = redis: Redis itself decides how durable "
                  "jobs are (appendfsync). Leave it out"));
  if (!std::has_single_bit(static_cast<unsigned>(config.shards))) {
    return Refuse("shards", "is {}: with store = redis it takes a power of two from 1 to 64", config.shards);
  }
  if (!std::has_single_bit(static_cast<unsigned>(config.redis_groups))) {
    return Refuse("redis.groups", "is {}: it takes a power of two from 64 to 4096", config.redis_groups);
  }
  if (config.redis_mode == RedisMode::kSingle && config.redis_endpoints.size() != 1) {
    return Refuse("redis.endpoints", "has {} addresses, but redis.mode is single: name one, or another mode",
                  config.redis_endpoints.size());
  }
  if (!config.redis_username.empty() && config.redis_password_file.empty()) {
    return Refuse("redis.username", "needs redis.password_file");
  }
  TOCSIN_TRY(CheckSentinel(config));
  TOCSIN_TRY(CheckTls(config));
  if (config.coordination == CoordinationKind::kRedis) {
    return CheckUnused(config, {"zookeeper."}, "is set, but coordination is redis: add coordination = zookeeper");
  }
  if (config.zookeeper_path.starts_with('/') && !config.zookeeper_path.ends_with('/')) return {};
  return Refuse("zookeeper.path", "is \"{}\": it begins with a slash and does not end with one", config.zookeeper_path);
}

/// Refuses options that the chosen kafka.security does not use.
Status CheckKafkaSecurity(const Config& config) {
  const KafkaSecurity security = config.kafka_security;
  if (security != KafkaSecurity::kTls && security != KafkaSecurity::kSaslTls) {
    TOCSIN_TRY(CheckUnused(config, {"kafka.tls_"},
                           "is set, but kafka.security has no TLS: add kafka.security = tls or sasl_tls"));
  }
  if (security == KafkaSecurity::kPlaintext || security == KafkaSecurity::kTls) {
    return CheckUnused(config, {"kafka.sasl_mechanism", "kafka.username", "kafka.password_file"},
                       "is set, but kafka.security has no SASL: add kafka.security = sasl_tls or sasl_plaintext");
  }
  if (config.kafka_username.empty()) return Refuse("kafka.username", "is empty, but kafka.security has SASL");
  if (config.kafka_password_file.empty()) return Refuse("kafka.password_file", "is empty, but kafka.security has SASL");
  return {};
}

Status CheckKafka(const Config& config) {
  if (config.kafka_brokers.empty()) {
    return CheckUnused(config, {"kafka."}, "is set, but kafka.brokers is not: there is no Kafka");
  }
  TOCSIN_TRY(CheckKafkaSecurity(config));
  return CheckCertificate("kafka", config.kafka_tls_cert_file, config.kafka_tls_key_file);
}

/// The rest of the address is parsed by the sink. Its text is not shown, because it may hold a password.
Status CheckRabbitmq(const Config& config) {
  std::string_view url = config.rabbitmq_url;
  if (url.empty()) {
    return CheckUnused(config, {"rabbitmq."}, "is set, but rabbitmq.url is not: there is no RabbitMQ");
  }
  const bool tls = url.starts_with("amqps://");
  if (!tls && !url.starts_with("amqp://")) return Refuse("rabbitmq.url", "does not begin with amqp:// or amqps://");
  if (!tls && !config.rabbitmq_ca_file.empty()) {
    return Refuse("rabbitmq.ca_file", "is set, but rabbitmq.url has no TLS: it has to begin with amqps://");
  }
  url.remove_prefix(url.find("//") + 2);
  url = url.substr(0, url.find('/'));
  const size_t at = url.rfind('@');
  const std::string_view user = at == std::string_view::npos ? "guest" : url.substr(0, at);
  if (user.contains(':')) {
    return Refuse("rabbitmq.url", "holds a password: put it into a file, and name that in rabbitmq.password_file");
  }
  if (user != "guest" && config.rabbitmq_password_file.empty()) {
    return Refuse("rabbitmq.password_file", "is empty, but rabbitmq.url names a user");
  }
  return {};
}

/// The rest of the address is parsed by the client. Its text is not shown, because it may hold a password.
Status CheckOutbox(const Config& config) {
  const std::string_view url = config.outbox_url;
  if (url.empty()) return CheckUnused(config, {"outbox."}, "is set, but outbox.url is not: there is no outbox");
  const bool tls = url.starts_with("mysqls://");
  if (!tls && !url.starts_with("mysql://")) return Refuse("outbox.url", "does not begin with mysql:// or mysqls://");
  const std::string_view host = url.substr(url.find("//") + 2);
  const std::string_view login = host.substr(0, host.find('/'));
  const size_t at = login.rfind('@');
  if (at != std::string_view::npos && login.substr(0, at).contains(':')) {
    return Refuse("outbox.url", "holds a password: put it into a file, and name that in outbox.password_file");
  }
  if (!tls) {
    TOCSIN_TRY(
        CheckUnused(config, {"outbox.tls_"}, "is set, but outbox.url has no TLS: it has to begin with mysqls://"));
  }
  return CheckCertificate("outbox", config.outbox_tls_cert_file, config.outbox_tls_key_file);
}

}  // namespace

Status CheckTogether(const Config& config) {
  TOCSIN_TRY(CheckAllowedHosts(config));
  TOCSIN_TRY(CheckClock(config));
  TOCSIN_TRY(CheckDoors(config));
  TOCSIN_TRY(CheckServerTls(config));
  if (config.limits_payload_size > config.limits_body_size) {
    return Refuse("limits.payload_size", "is {} bytes, but a body may have only limits.body_size, {} bytes",
                  config.limits_payload_size, config.limits_body_size);
  }
  TOCSIN_TRY(CheckKafka(config));
  TOCSIN_TRY(CheckRabbitmq(config));
  TOCSIN_TRY(CheckOutbox(config));
  return config.store == StoreKind::kRedis ? CheckRedis(config) : CheckJournal(config);
}

}  // namespace tocsin
