#include "config/options.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tocsin {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

constexpr std::array<std::string_view, 3> kDurabilities{"fsync", "interval", "os"};
constexpr std::array<std::string_view, 2> kClocks{"real", "virtual"};
constexpr std::array<std::string_view, 5> kLogLevels{"debug", "info", "warn", "error", "off"};

constexpr std::array<std::string_view, 2> kStores{"journal", "redis"};
constexpr std::array<std::string_view, 3> kRedisModes{"single", "sentinel", "cluster"};
constexpr std::array<std::string_view, 2> kRedisChecks{"refuse", "warn"};
constexpr std::array<std::string_view, 2> kCoordinations{"redis", "zookeeper"};

constexpr std::array<std::string_view, 4> kKafkaSecurities{"plaintext", "tls", "sasl_plaintext", "sasl_tls"};
constexpr std::array<std::string_view, 3> kKafkaMechanisms{"plain", "scram-sha-256", "scram-sha-512"};
constexpr std::array<std::string_view, 2> kKafkaCompressions{"none", "lz4"};

constexpr std::array<std::string_view, 2> kSwitch{"false", "true"};

constexpr std::string_view kServer = "Server";
constexpr std::string_view kRedis = "Redis";
constexpr std::string_view kNodes = "Many nodes";
constexpr std::string_view kKafka = "Kafka";
constexpr std::string_view kAuth = "Authentication";
constexpr std::string_view kDurable = "Durability";
constexpr std::string_view kPush = "Push";
constexpr std::string_view kRabbitmq = "RabbitMQ";
constexpr std::string_view kLimits = "Limits";

constexpr std::array kOptions{
    Option{
        .group = kServer,
        .key = "store",
        .member = &Config::store,
        .fallback = "journal",
        .choices = kStores,
        .doc =
            "Where jobs live. journal: the embedded store, in data_dir, for one node. redis: a Redis that any number "
            "of nodes share; see the options of Redis."},
    Option{.group = kServer,
           .key = "data_dir",
           .member = &Config::data_dir,
           .fallback = "./tocsin-data",
           .doc = "The folder of the embedded store. Created if it is missing; only one server at a time may use it."},
    Option{.group = kServer,
           .key = "http.listen",
           .member = &Config::http_listen,
           .fallback = "127.0.0.1:7420",
           .doc =
               "The address of the HTTP API. One that other machines can reach needs auth.token_file. Port 0 takes any "
               "free one; the log names it."},
    Option{.group = kServer,
           .key = "resp.listen",
           .member = &Config::resp_listen,
           .fallback = "127.0.0.1:7421",
           .doc =
               "The address for Redis clients (RESP). One that other machines can reach needs auth.token_file. Port 0 "
               "takes any free one; the log names it."},
    Option{.group = kServer,
           .key = "shards",
           .member = &Config::shards,
           .fallback = "0",
           .min = 1,
           .max = 64,
           .zero = "half of the cores, at least 1",
           .doc = "Threads that serve connections and topics, each with its own part of the jobs. With store = redis a "
                  "power of two; the default is then rounded down to one."},
    Option{.group = kServer,
           .key = "memory_limit",
           .member = &Config::memory_limit,
           .fallback = "0",
           .min = 64 * kMiB,
           .max = 1024 * 1024 * kGiB,
           .zero = "70 % of the memory",
           .doc = "What jobs may occupy in memory. New jobs are refused at the limit; delivery, ack and cancel go on."},
    Option{.group = kServer,
           .key = "clock",
           .member = &Config::clock,
           .fallback = "real",
           .choices = kClocks,
           .doc =
               "A virtual clock stands still until it is advanced through the API, so that a test can be thirty days "
               "later at once. Never for production."},
    Option{.group = kServer,
           .key = "log.level",
           .member = &Config::log_level,
           .fallback = "info",
           .choices = kLogLevels,
           .doc = "The least important messages that are still logged."},
    Option{.group = kServer,
           .key = "node.name",
           .member = &Config::node_name,
           .min = 1,
           .max = 64,
           .text = TextKind::kWord,
           .doc = "What this node is called among others. Empty: the name of the machine."},
    Option{.group = kAuth,
           .key = "auth.token_file",
           .member = &Config::auth_token_file,
           .doc =
               "The file of access tokens that `tocsin token create` writes; mode 0600. Every call then needs one of "
               "them, except the health checks. Read again when it changes, and on SIGHUP. Empty: no authentication, "
               "and only this machine can reach the server."},
    Option{.group = kAuth,
           .key = "auth.allow_unauthenticated",
           .member = &Config::auth_allow_unauthenticated,
           .fallback = "false",
           .choices = kSwitch,
           .doc = "Lets other machines reach http.listen and resp.listen without auth.token_file: whoever reaches them "
                  "may do everything. Only if something else, such as a firewall, protects them."},
    Option{.group = kDurable,
           .key = "durability",
           .member = &Config::durability,
           .fallback = "fsync",
           .choices = kDurabilities,
           .doc =
               "When a call is answered. fsync: after its data is on the disk; a power cut loses nothing that was "
               "acknowledged. interval: at once, with a sync every durability_interval; a power cut loses up to that "
               "much. os: at once, synced when the kernel decides; a crash of the server alone still loses nothing."},
    Option{.group = kDurable,
           .key = "durability_interval",
           .member = &Config::durability_interval,
           .fallback = "50ms",
           .min = 1,
           .max = 10'000,
           .doc = "The time between two syncs if durability is interval."},
    Option{.group = kDurable,
           .key = "journal.segment_size",
           .member = &Config::journal_segment_size,
           .fallback = "64MiB",
           .min = 4 * kMiB,
           .max = kGiB,
           .doc = "The size of one file of the journal, at least five times limits.payload_size. Space is freed in "
                  "these units. A data folder keeps the size that it was made with."},
    Option{.group = kRedis,
           .key = "redis.mode",
           .member = &Config::redis_mode,
           .fallback = "single",
           .choices = kRedisModes,
           .doc = "single: one server. sentinel: the master that the sentinels name. cluster: a Redis Cluster."},
    Option{.group = kRedis,
           .key = "redis.endpoints",
           .member = &Config::redis_endpoints,
           .fallback = "127.0.0.1:6379",
           .doc = "The server; the sentinels; or some nodes of the Cluster, which name the others."},
    Option{.group = kRedis,
           .key = "redis.master",
           .member = &Config::redis_master,
           .min = 1,
           .max = 256,
           .text = TextKind::kWord,
           .doc = "What the sentinels call the master, such as mymaster. Needed if redis.mode is sentinel."},
    Option{.group = kRedis,
           .key = "redis.username",
           .member = &Config::redis_username,
           .min = 1,
           .max = 256,
           .text = TextKind::kWord,
           .doc = "The user of Redis' ACL. Empty: the default one."},
    Option{.group = kRedis,
           .key = "redis.password_file",
           .member = &Config::redis_password_file,
           .doc = "The file that holds the password, on one line; mode 0600. Empty: Redis asks for none."},
    Option{.group = kRedis,
           .key = "redis.sentinel_username",
           .member = &Config::redis_sentinel_username,
           .min = 1,
           .max = 256,
           .text = TextKind::kWord,
           .doc = "The user for the sentinels themselves."},
    Option{.group = kRedis,
           .key = "redis.sentinel_password_file",
           .member = &Config::redis_sentinel_password_file,
           .doc = "The file that holds the password for the sentinels themselves; mode 0600."},
    Option{.group = kRedis,
           .key = "redis.tls",
           .member = &Config::redis_tls,
           .fallback = "false",
           .choices = kSwitch,
           .doc = "Speak TLS with Redis and the sentinels, and check their certificates."},
    Option{.group = kRedis,
           .key = "redis.tls_ca_file",
           .member = &Config::redis_tls_ca_file,
           .doc = "The certificates that may sign those of Redis. Empty: the system's."},
    Option{.group = kRedis,
           .key = "redis.tls_cert_file",
           .member = &Config::redis_tls_cert_file,
           .doc = "This node's own certificate, if Redis asks for one; with redis.tls_key_file."},
    Option{.group = kRedis,
           .key = "redis.tls_key_file",
           .member = &Config::redis_tls_key_file,
           .doc = "The key of redis.tls_cert_file."},
    Option{.group = kRedis,
           .key = "redis.prefix",
           .member = &Config::redis_prefix,
           .fallback = "tocsin",
           .min = 1,
           .max = 64,
           .text = TextKind::kName,
           .doc = "What all keys begin with. Nodes with the same prefix on the same Redis are one queue."},
    Option{.group = kRedis,
           .key = "redis.timeout",
           .member = &Config::redis_timeout,
           .fallback = "5s",
           .min = 100,
           .max = 60'000,
           .doc = "How long Redis may take to answer a command; a call then answers unavailable."},
    Option{.group = kRedis,
           .key = "redis.checks",
           .member = &Config::redis_checks,
           .fallback = "refuse",
           .choices = kRedisChecks,
           .doc = "What to do at the start if Redis would lose jobs (no persistence, or a maxmemory-policy other than "
                  "noeviction) or is older than 7.0: refuse to start, or warn and go on."},
    Option{.group = kNodes,
           .key = "coordination",
           .member = &Config::coordination,
           .fallback = "redis",
           .choices = kCoordinations,
           .doc = "How nodes on the same Redis know of each other: through that Redis, or through ZooKeeper."},
    Option{.group = kNodes,
           .key = "session_timeout",
           .member = &Config::session_timeout,
           .fallback = "6s",
           .min = 1'000,
           .max = 60'000,
           .doc = "A node that is silent for so long counts as dead, and others take over its part."},
    Option{.group = kNodes,
           .key = "zookeeper.hosts",
           .member = &Config::zookeeper_hosts,
           .fallback = "127.0.0.1:2181",
           .doc = "The servers of ZooKeeper."},
    Option{.group = kNodes,
           .key = "zookeeper.path",
           .member = &Config::zookeeper_path,
           .fallback = "/tocsin",
           .min = 2,
           .max = 256,
           .text = TextKind::kWord,
           .doc = "The node of ZooKeeper below which members register; created if it is missing."},
    Option{.group = kNodes,
           .key = "zookeeper.password_file",
           .member = &Config::zookeeper_password_file,
           .doc = "The file that holds user:password for ZooKeeper (digest), on one line; mode 0600. Empty: no "
                  "authentication, and whoever reaches ZooKeeper may change the members."},
    Option{.group = kPush,
           .key = "secrets_dir",
           .member = &Config::secrets_dir,
           .doc =
               "The folder of the secrets that topics name, a file for each. A secret without a file is looked for in "
               "the environment, as TOCSIN_SECRET_<NAME>. Read whenever one is needed."},
    Option{.group = kPush,
           .key = "webhook.allow",
           .member = &Config::webhook_allow,
           .min = 1,
           .max = 4096,
           .text = TextKind::kWord,
           .doc = "Networks that webhooks may be sent to although they are not public, such as "
                  "10.1.0.0/16,127.0.0.1,fd00::/8. Whoever may set a topic can make this server talk to them. Empty: "
                  "none; loopback, private and link-local addresses are refused."},
    Option{.group = kPush,
           .key = "webhook.ca_file",
           .member = &Config::webhook_ca_file,
           .doc = "Certificates that may sign those of webhooks with https, in addition to the system's. Empty: none."},
    Option{.group = kKafka,
           .key = "kafka.brokers",
           .member = &Config::kafka_brokers,
           .doc = "Some brokers of the Kafka that topics with the sink kafka deliver to; they name the others. Empty: "
                  "there is none."},
    Option{.group = kKafka,
           .key = "kafka.security",
           .member = &Config::kafka_security,
           .fallback = "plaintext",
           .choices = kKafkaSecurities,
           .doc = "How to speak with the brokers: with TLS, with a user name and a password (SASL), with both, or with "
                  "neither. With TLS their certificates are checked."},
    Option{.group = kKafka,
           .key = "kafka.sasl_mechanism",
           .member = &Config::kafka_sasl_mechanism,
           .fallback = "plain",
           .choices = kKafkaMechanisms,
           .doc = "How the password is proved."},
    Option{.group = kKafka,
           .key = "kafka.username",
           .member = &Config::kafka_username,
           .min = 1,
           .max = 256,
           .text = TextKind::kWord,
           .doc = "The user, if kafka.security is sasl_plaintext or sasl_tls."},
    Option{.group = kKafka,
           .key = "kafka.password_file",
           .member = &Config::kafka_password_file,
           .doc = "The file that holds the password of kafka.username, on one line; mode 0600."},
    Option{.group = kKafka,
           .key = "kafka.tls_ca_file",
           .member = &Config::kafka_tls_ca_file,
           .doc = "The certificates that may sign those of the brokers. Empty: the system's."},
    Option{.group = kKafka,
           .key = "kafka.tls_cert_file",
           .member = &Config::kafka_tls_cert_file,
           .doc = "This node's own certificate, if the brokers ask for one; with kafka.tls_key_file."},
    Option{.group = kKafka,
           .key = "kafka.tls_key_file",
           .member = &Config::kafka_tls_key_file,
           .doc = "The key of kafka.tls_cert_file."},
    Option{.group = kKafka,
           .key = "kafka.compression",
           .member = &Config::kafka_compression,
           .fallback = "none",
           .choices = kKafkaCompressions,
           .doc = "How batches of messages are compressed."},
    Option{.group = kKafka,
           .key = "kafka.message_size",
           .member = &Config::kafka_message_size,
           .fallback = "1MiB",
           .min = 1000,
           .max = 256 * kMiB,
           .doc =
               "The largest message, and the largest batch of several; not above the max.message.bytes of the topics "
               "of Kafka. A job that does not fit becomes a dead letter at once."},
    Option{.group = kRabbitmq,
           .key = "rabbitmq.url",
           .member = &Config::rabbitmq_url,
           .min = 1,
           .max = 1024,
           .text = TextKind::kWord,
           .doc =
               "The RabbitMQ that topics with the sink rabbitmq deliver to: amqp://user@host:port/vhost, or amqps:// "
               "for TLS, with a check of its certificate. The defaults: the user is guest, the port 5672 (5671 with "
               "TLS) and the vhost /. Empty: there is none."},
    Option{.group = kRabbitmq,
           .key = "rabbitmq.password_file",
           .member = &Config::rabbitmq_password_file,
           .doc = "The file that holds the password of the user in rabbitmq.url, on one line; mode 0600. Empty: guest, "
                  "which RabbitMQ accepts only from the user guest on the same machine."},
    Option{.group = kRabbitmq,
           .key = "rabbitmq.ca_file",
           .member = &Config::rabbitmq_ca_file,
           .doc = "With amqps://: the certificates that may sign that of RabbitMQ. Empty: the system's."},
    Option{.group = kLimits,
           .key = "limits.payload_size",
           .member = &Config::limits_payload_size,
           .fallback = "1MiB",
           .min = 1,
           .max = 16 * kMiB,
           .doc = "The largest payload of one job, at most limits.body_size."},
    Option{.group = kLimits,
           .key = "limits.body_size",
           .member = &Config::limits_body_size,
           .fallback = "16MiB",
           .min = 1024,
           .max = 256 * kMiB,
           .doc = "The largest body of one HTTP request, and the largest RESP command."},
    Option{.group = kLimits,
           .key = "limits.connections",
           .member = &Config::limits_connections,
           .fallback = "10000",
           .min = 1,
           .max = 1'000'000,
           .doc = "Connections open at once, over HTTP and RESP together; more are refused."},
    Option{.group = kLimits,
           .key = "limits.batch",
           .member = &Config::limits_batch,
           .fallback = "10000",
           .min = 1,
           .max = 100'000,
           .doc = "Jobs, delivery tokens or ids in one call."},
};

}  // namespace

std::span<const Option> Options() { return kOptions; }

const Option* FindOption(std::string_view key) {
  const auto* const found = std::ranges::find(kOptions, key, &Option::key);
  return found == kOptions.end() ? nullptr : found;
}

std::string FlagOf(std::string_view key) {
  std::string flag = "--" + std::string(key);
  std::ranges::replace_if(flag, [](char c) { return c == '.' || c == '_'; }, '-');
  return flag;
}

std::string VariableOf(std::string_view key) {
  std::string variable = "TOCSIN_";
  for (const char c : key) {
    variable += c == '.' || c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

}  // namespace tocsin
