#include "config/options.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace tocsin {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

constexpr std::array<std::string_view, 3> kDurabilities{"fsync", "interval", "os"};
constexpr std::array<std::string_view, 2> kClocks{"real", "virtual"};
constexpr std::array<std::string_view, 5> kLogLevels{"debug", "info", "warn", "error", "off"};
constexpr std::array<std::string_view, 2> kLogFormats{"text", "json"};

constexpr std::array<std::string_view, 2> kStores{"journal", "redis"};
constexpr std::array<std::string_view, 3> kRedisModes{"single", "sentinel", "cluster"};
constexpr std::array<std::string_view, 2> kRedisChecks{"refuse", "warn"};
constexpr std::array<std::string_view, 2> kCoordinations{"redis", "zookeeper"};

constexpr std::array<std::string_view, 4> kKafkaSecurities{"plaintext", "tls", "sasl_plaintext", "sasl_tls"};
constexpr std::array<std::string_view, 3> kKafkaMechanisms{"plain", "scram-sha-256", "scram-sha-512"};
constexpr std::array<std::string_view, 2> kKafkaCompressions{"none", "lz4"};

constexpr std::array<std::string_view, 2> kDoorTls{"auto", "off"};
constexpr std::array<std::string_view, 2> kTlsClientAuths{"required", "optional"};

constexpr std::array<std::string_view, 2> kSwitch{"false", "true"};

constexpr std::string_view kServer = "Server";
constexpr std::string_view kRedis = "Redis";
constexpr std::string_view kNodes = "Many nodes";
constexpr std::string_view kKafka = "Kafka";
constexpr std::string_view kAuth = "Authentication";
constexpr std::string_view kTls = "TLS";
constexpr std::string_view kDurable = "Durability";
constexpr std::string_view kPush = "Push";
constexpr std::string_view kRabbitmq = "RabbitMQ";
constexpr std::string_view kOutbox = "Outbox";
constexpr std::string_view kAlerts = "Alerts";
constexpr std::string_view kLimits = "Limits";
constexpr int64_t kDayMs = 86'400'000;
constexpr std::string_view kNoAlert = "never";

template <class T>
constexpr Option Choice(std::string_view group, std::string_view key, T Config::* member, std::string_view fallback,
                        std::span<const std::string_view> choices, std::string_view doc) {
  return {.group = group, .key = key, .member = member, .fallback = fallback, .choices = choices, .doc = doc};
}

constexpr Option Switch(std::string_view group, std::string_view key, bool Config::* member, std::string_view doc) {
  return Choice(group, key, member, "false", kSwitch, doc);
}

/// A path or addresses.
template <class T>
constexpr Option Plain(std::string_view group, std::string_view key, T Config::* member, std::string_view fallback,
                       std::string_view doc) {
  return {.group = group, .key = key, .member = member, .fallback = fallback, .doc = doc};
}

constexpr Option Text(std::string_view group, std::string_view key, std::string Config::* member,
                      std::string_view fallback, TextKind text, int64_t min, int64_t max, std::string_view doc) {
  return {group, key, member, fallback, min, max, text, "", {}, doc};
}

constexpr Option Secret(Option option) {
  option.secret = true;
  return option;
}

/// A number, a size or a duration.
template <class T>
constexpr Option Quantity(std::string_view group, std::string_view key, T Config::* member, std::string_view fallback,
                          int64_t min, int64_t max, std::string_view doc, std::string_view zero = "") {
  return {group, key, member, fallback, min, max, {}, zero, {}, doc};
}

constexpr std::array kOptions{
    Choice(kServer, "store", &Config::store, "journal", kStores,
           "Where jobs live. journal: the embedded store, in data_dir, for one node. redis: a Redis that any number of "
           "nodes share; see the options of Redis."),
    Plain(kServer, "data_dir", &Config::data_dir, "./tocsin-data",
          "The folder of the embedded store. Created if it is missing; only one server at a time may use it."),
    Plain(kServer, "http.listen", &Config::http_listen, "127.0.0.1:7420",
          "The address of the HTTP API. One that other machines can reach needs auth.token_file. Port 0 takes any free "
          "one; the log names it."),
    Text(kServer, "http.allowed_hosts", &Config::http_allowed_hosts, "", TextKind::kWord, 1, 4096,
         "Names under which browsers may reach the server, such as tocsin.example,queue.intern, besides localhost and "
         "IP "
         "addresses. Needed if a server on loopback without auth.token_file is behind a proxy for browsers. Empty: no "
         "others without authentication, any with it."),
    Plain(kServer, "resp.listen", &Config::resp_listen, "127.0.0.1:7421",
          "The address for Redis clients (RESP). One that other machines can reach needs auth.token_file. Port 0 takes "
          "any free one; the log names it."),
    Quantity(kServer, "shards", &Config::shards, "0", 1, 64,
             "Threads that serve connections and topics, each with its own part of the jobs. With store = redis a "
             "power of two; the default is then rounded down to one.",
             "half of the cores, at least 1"),
    Quantity(kServer, "memory_limit", &Config::memory_limit, "0", 64 * kMiB, 1024 * 1024 * kGiB,
             "What jobs may occupy in memory. New jobs are refused at the limit; delivery, ack and cancel go on.",
             "70 % of the memory"),
    Choice(kServer, "clock", &Config::clock, "real", kClocks,
           "A virtual clock stands still until it is advanced through the API, so that a test can be thirty days later "
           "at once. Never for production."),
    Text(kServer, "clock_start", &Config::clock_start, "", TextKind::kWord, 1, 24,
         "Where a virtual clock begins in a new data folder: a time in UTC such as 2026-12-01T09:00:00Z, or "
         "milliseconds since 1970. Empty: 2027-01-15T08:00:00Z."),
    Choice(kServer, "log.level", &Config::log_level, "info", kLogLevels,
           "The least important messages that are still logged."),
    Choice(kServer, "log.format", &Config::log_format, "text", kLogFormats,
           "How a line of the log is written: as text, or as an object of JSON."),
    Plain(kServer, "log.audit_file", &Config::log_audit_file, "",
          "The file of the audit, which has a line for every act of an administrator; mode 0600. Empty: the log."),
    Quantity(kServer, "log.slow_sync", &Config::log_slow_sync, "500ms", 0, 60'000,
             "A sync of the journal that takes longer is logged as slow_disk.", "never"),
    Text(kServer, "node.name", &Config::node_name, "", TextKind::kWord, 1, 64,
         "What this node is called among others. Empty: the name of the machine."),
    Plain(kAuth, "auth.token_file", &Config::auth_token_file, "",
          "The file of access tokens that `tocsin token create` writes; mode 0600. Every call then needs one of them, "
          "except the health checks. Read again when it changes, and on SIGHUP. Empty: no authentication, and only "
          "this machine can reach the server."),
    Switch(kAuth, "auth.allow_unauthenticated", &Config::auth_allow_unauthenticated,
           "Lets other machines reach http.listen and resp.listen without auth.token_file: whoever reaches them may do "
           "everything. Only if something else, such as a firewall, protects them."),
    Plain(
        kTls, "tls.certificate", &Config::tls_certificate, "",
        "The certificate of the server for http.listen and resp.listen, in PEM, with those that lead to its authority "
        "behind it. Both then speak TLS 1.2 and 1.3. Read again when it or tls.key changes, and on SIGHUP. Empty: no "
        "TLS."),
    Plain(kTls, "tls.key", &Config::tls_key, "",
          "The key of tls.certificate, in PEM, without a passphrase; mode 0600."),
    Plain(
        kTls, "tls.client_ca", &Config::tls_client_ca, "",
        "The authorities of clients, in PEM: clients are asked for a certificate of one of them. With auth.token_file "
        "its subject may take the place of an access token (`tocsin token create --certificate`). Empty: clients are "
        "not asked."),
    Choice(
        kTls, "tls.client_auth", &Config::tls_client_auth, "required", kTlsClientAuths,
        "With tls.client_ca. required: a client without a certificate cannot connect. optional: it can, and needs an "
        "access token."),
    Choice(kTls, "http.tls", &Config::http_tls, "auto", kDoorTls,
           "auto: http.listen speaks TLS if tls.certificate is set. off: it never does, for example behind a proxy."),
    Choice(kTls, "resp.tls", &Config::resp_tls, "auto", kDoorTls, "The same for resp.listen."),
    Choice(kDurable, "durability", &Config::durability, "fsync", kDurabilities,
           "When a call is answered. fsync: after its data is on the disk; a power cut loses nothing that was "
           "acknowledged. interval: at once, with a sync every durability_interval; a power cut loses up to that much. "
           "os: at once, synced when the kernel decides; a crash of the server alone still loses nothing."),
    Quantity(kDurable, "durability_interval", &Config::durability_interval, "50ms", 1, 10'000,
             "The time between two syncs if durability is interval."),
    Quantity(kDurable, "journal.segment_size", &Config::journal_segment_size, "0", 4 * kMiB, kGiB,
             "The size of one file of the journal, at least five times limits.payload_size. Space is freed in these "
             "units. A data folder keeps the size that it was made with.",
             "64MiB; with a virtual clock five times limits.payload_size"),
    Choice(kRedis, "redis.mode", &Config::redis_mode, "single", kRedisModes,
           "single: one server. sentinel: the master that the sentinels name. cluster: a Redis Cluster."),
    Plain(kRedis, "redis.endpoints", &Config::redis_endpoints, "127.0.0.1:6379",
          "The server; the sentinels; or some nodes of the Cluster, which name the others."),
    Text(kRedis, "redis.master", &Config::redis_master, "", TextKind::kWord, 1, 256,
         "What the sentinels call the master, such as mymaster. Needed if redis.mode is sentinel."),
    Text(kRedis, "redis.username", &Config::redis_username, "", TextKind::kWord, 1, 256,
         "The user of Redis' ACL. Empty: the default one."),
    Plain(kRedis, "redis.password_file", &Config::redis_password_file, "",
          "The file that holds the password, on one line; mode 0600. Empty: Redis asks for none."),
    Text(kRedis, "redis.sentinel_username", &Config::redis_sentinel_username, "", TextKind::kWord, 1, 256,
         "The user for the sentinels themselves."),
    Plain(kRedis, "redis.sentinel_password_file", &Config::redis_sentinel_password_file, "",
          "The file that holds the password for the sentinels themselves; mode 0600."),
    Switch(kRedis, "redis.tls", &Config::redis_tls,
           "Speak TLS with Redis and the sentinels, and check their certificates."),
    Plain(kRedis, "redis.tls_ca_file", &Config::redis_tls_ca_file, "",
          "The certificates that may sign those of Redis. Empty: the system's."),
    Plain(kRedis, "redis.tls_cert_file", &Config::redis_tls_cert_file, "",
          "This node's own certificate, if Redis asks for one; with redis.tls_key_file."),
    Plain(kRedis, "redis.tls_key_file", &Config::redis_tls_key_file, "", "The key of redis.tls_cert_file."),
    Text(kRedis, "redis.prefix", &Config::redis_prefix, "tocsin", TextKind::kName, 1, 64,
         "What all keys begin with. Nodes with the same prefix on the same Redis are one queue."),
    Quantity(
        kRedis, "redis.groups", &Config::redis_groups, "64", 64, 4096,
        "In how many parts nodes and masters share the slots of all topics; a power of two. Counts when a prefix is "
        "first used: Redis keeps the number, and a node with another one uses what Redis has and logs it. Choose "
        "some 16 for each node, and 4 for each master."),
    Quantity(kRedis, "redis.timeout", &Config::redis_timeout, "5s", 100, 60'000,
             "How long Redis may take to answer a command; a call then answers unavailable."),
    Quantity(kRedis, "redis.wait_replicas", &Config::redis_wait_replicas, "0", 0, 16,
             "How many replicas must have received what a call changes before it is answered. If they have not within "
             "half a second, the call answers unavailable, though it was done. 0: none; a failover loses what the new "
             "master has not received."),
    Choice(kRedis, "redis.checks", &Config::redis_checks, "refuse", kRedisChecks,
           "What to do at the start if Redis would lose jobs (no persistence, or a maxmemory-policy other than "
           "noeviction) or is older than 7.0: refuse to start, or warn and go on."),
    Choice(kNodes, "coordination", &Config::coordination, "redis", kCoordinations,
           "How nodes on the same Redis know of each other: through that Redis, or through ZooKeeper."),
    Quantity(kNodes, "session_timeout", &Config::session_timeout, "6s", 1'000, 60'000,
             "A node that is silent for so long counts as dead, and others take over its part."),
    Plain(kNodes, "zookeeper.hosts", &Config::zookeeper_hosts, "127.0.0.1:2181", "The servers of ZooKeeper."),
    Text(kNodes, "zookeeper.path", &Config::zookeeper_path, "/tocsin", TextKind::kWord, 2, 256,
         "The node of ZooKeeper below which members register; created if it is missing."),
    Plain(kNodes, "zookeeper.password_file", &Config::zookeeper_password_file, "",
          "The file that holds user:password for ZooKeeper (digest), on one line; mode 0600. Empty: no authentication, "
          "and whoever reaches ZooKeeper may change the members."),
    Plain(kPush, "secrets_dir", &Config::secrets_dir, "",
          "The folder of the secrets that topics name, a file for each. A secret without a file is looked for in the "
          "environment, as TOCSIN_SECRET_<NAME>. Read whenever one is needed."),
    Text(kPush, "webhook.allow", &Config::webhook_allow, "", TextKind::kWord, 1, 4096,
         "Networks that webhooks may be sent to although they are not public, such as 10.1.0.0/16,127.0.0.1,fd00::/8. "
         "Whoever may set a topic can make this server talk to them. Empty: none; loopback, private and link-local "
         "addresses are refused."),
    Plain(kPush, "webhook.ca_file", &Config::webhook_ca_file, "",
          "Certificates that may sign those of webhooks with https, in addition to the system's. Empty: none."),
    Text(kPush, "push.owners", &Config::push_owners, "", TextKind::kWord, 1, 65'536,
         "What belongs to the topics of a prefix, so that others cannot use it: KIND:NAME=PREFIX with commas between "
         "them, where KIND is secret, kafka, exchange or queue, and a * ends a NAME that stands for many. What no rule "
         "names "
         "is for callers whose access token has no prefix."),
    Plain(kKafka, "kafka.brokers", &Config::kafka_brokers, "",
          "Some brokers of the Kafka that topics with the sink kafka deliver to; they name the others. Empty: there is "
          "none."),
    Choice(kKafka, "kafka.security", &Config::kafka_security, "plaintext", kKafkaSecurities,
           "How to speak with the brokers: with TLS, with a user name and a password (SASL), with both, or with "
           "neither. With TLS their certificates are checked."),
    Choice(kKafka, "kafka.sasl_mechanism", &Config::kafka_sasl_mechanism, "plain", kKafkaMechanisms,
           "How the password is proved."),
    Text(kKafka, "kafka.username", &Config::kafka_username, "", TextKind::kWord, 1, 256,
         "The user, if kafka.security is sasl_plaintext or sasl_tls."),
    Plain(kKafka, "kafka.password_file", &Config::kafka_password_file, "",
          "The file that holds the password of kafka.username, on one line; mode 0600."),
    Plain(kKafka, "kafka.tls_ca_file", &Config::kafka_tls_ca_file, "",
          "The certificates that may sign those of the brokers. Empty: the system's."),
    Plain(kKafka, "kafka.tls_cert_file", &Config::kafka_tls_cert_file, "",
          "This node's own certificate, if the brokers ask for one; with kafka.tls_key_file."),
    Plain(kKafka, "kafka.tls_key_file", &Config::kafka_tls_key_file, "", "The key of kafka.tls_cert_file."),
    Choice(kKafka, "kafka.compression", &Config::kafka_compression, "none", kKafkaCompressions,
           "How batches of messages are compressed."),
    Quantity(kKafka, "kafka.message_size", &Config::kafka_message_size, "1MiB", 1000, 256 * kMiB,
             "The largest message, and the largest batch of several; not above the max.message.bytes of the topics of "
             "Kafka. A job that does not fit becomes a dead letter at once."),
    Text(kRabbitmq, "rabbitmq.url", &Config::rabbitmq_url, "", TextKind::kWord, 1, 1024,
         "The RabbitMQ that topics with the sink rabbitmq deliver to: amqp://user@host:port/vhost, or amqps:// for "
         "TLS, with a check of its certificate. The defaults: the user is guest, the port 5672 (5671 with TLS) and the "
         "vhost /. Empty: there is none."),
    Plain(kRabbitmq, "rabbitmq.password_file", &Config::rabbitmq_password_file, "",
          "The file that holds the password of the user in rabbitmq.url, on one line; mode 0600. Empty: guest, which "
          "RabbitMQ accepts only from the user guest on the same machine."),
    Plain(kRabbitmq, "rabbitmq.ca_file", &Config::rabbitmq_ca_file, "",
          "With amqps://: the certificates that may sign that of RabbitMQ. Empty: the system's."),
    Text(kOutbox, "outbox.url", &Config::outbox_url, "", TextKind::kWord, 1, 1024,
         "The database of MySQL or MariaDB whose table tocsin_outbox is picked up: applications insert jobs there, in "
         "their own transactions. mysql://user@host:port/database, or mysqls:// for TLS, with a check of its "
         "certificate. The default port is 3306. Empty: there is no outbox."),
    Plain(kOutbox, "outbox.password_file", &Config::outbox_password_file, "",
          "The file that holds the password of the user in outbox.url, on one line; mode 0600. Empty: MySQL asks for "
          "none."),
    Text(kOutbox, "outbox.prefix", &Config::outbox_prefix, "", TextKind::kName, 1, 256,
         "Rows of the outbox may name only topics that begin with this, as with the prefix of an access token; others "
         "are refused. Empty: all topics."),
    Quantity(kOutbox, "outbox.timeout", &Config::outbox_timeout, "5s", 1'000, 60'000,
             "How long MySQL may take to connect, and for each read and write, in whole seconds."),
    Plain(kOutbox, "outbox.tls_ca_file", &Config::outbox_tls_ca_file, "",
          "With mysqls://: the certificates that may sign that of MySQL. Empty: the system's."),
    Plain(kOutbox, "outbox.tls_cert_file", &Config::outbox_tls_cert_file, "",
          "With mysqls://: this node's own certificate, if MySQL asks for one; with outbox.tls_key_file."),
    Plain(kOutbox, "outbox.tls_key_file", &Config::outbox_tls_key_file, "", "The key of outbox.tls_cert_file."),
    Secret(Text(kAlerts, "alerts.webhook_url", &Config::alerts_webhook_url, "", TextKind::kWord, 1, 2048,
                "Where alerts are posted to when they fire and when they are resolved, as Alertmanager does it: "
                "http:// or https://. It may be any address, also of this machine. Empty: alerts are only listed and "
                "logged. It may hold a token, so --config-check does not show it.")),
    Text(kAlerts, "alerts.webhook_secret", &Config::alerts_webhook_secret, "", TextKind::kWord, 1, 256,
         "The name of the secret that signs these posts; see secrets_dir. Empty: they are not signed."),
    Quantity(kAlerts, "alerts.repeat", &Config::alerts_repeat, "4h", 1'000, 30 * kDayMs,
             "An alert that still fires is posted again after this time.", kNoAlert),
    Quantity(kAlerts, "alerts.hold", &Config::alerts_hold, "1m", 0, kDayMs,
             "How long a condition has to last before its alert fires, and how long it has to be gone before the alert "
             "is resolved. Rules about what has happened do not wait."),
    Quantity(kAlerts, "alerts.due_jobs", &Config::alerts_due_jobs, "100000", 1, 2'000'000'000,
             "More due jobs of a topic wait. A topic may have its own number: alert_due_jobs.", kNoAlert),
    Quantity(kAlerts, "alerts.late", &Config::alerts_late, "5s", 1, 3650 * kDayMs,
             "The first due job of a topic waits for longer. A topic may have its own: alert_late_ms.", kNoAlert),
    Quantity(kAlerts, "alerts.stalled", &Config::alerts_stalled, "5m", 1, 3650 * kDayMs,
             "Due jobs of a topic wait, and none is delivered for so long. A topic may have its own: alert_stalled_ms.",
             kNoAlert),
    Quantity(kAlerts, "alerts.attempts", &Config::alerts_attempts, "10", 1, 1'000'000,
             "A job has failed so often. A topic may have its own number: alert_attempts.", kNoAlert),
    Quantity(kAlerts, "alerts.push_failures", &Config::alerts_push_failures, "100", 1, 2'000'000'000,
             "So many pushes of a topic in a row have failed. A topic may have its own number: alert_push_failures.",
             kNoAlert),
    Quantity(kAlerts, "alerts.dead_jobs", &Config::alerts_dead_jobs, "10", 1, 2'000'000'000,
             "A topic has more dead letters. A topic may have its own number: alert_dead_jobs.", kNoAlert),
    Quantity(kAlerts, "alerts.future_jobs", &Config::alerts_future_jobs, "1000", 1, 2'000'000'000,
             "A minute of the next 24 hours holds more jobs of a topic, and more than were ever acknowledged in a "
             "minute. A topic may have its own number: alert_future_jobs.",
             kNoAlert),
    Quantity(kAlerts, "alerts.node_silent", &Config::alerts_node_silent, "1m", 1'000, kDayMs,
             "A node that shares the store has vanished and was not heard of for so long.", kNoAlert),
    Quantity(kAlerts, "alerts.nearly_full", &Config::alerts_nearly_full, "90", 1, 100,
             "So many per cent of the disk, of memory_limit or of a topic's capacity are in use.", kNoAlert),
    Quantity(kLimits, "limits.payload_size", &Config::limits_payload_size, "1MiB", 1, 16 * kMiB,
             "The largest payload of one job, at most limits.body_size."),
    Quantity(kLimits, "limits.body_size", &Config::limits_body_size, "16MiB", 1024, 256 * kMiB,
             "The largest body of one HTTP request, and the largest RESP command."),
    Quantity(kLimits, "limits.connections", &Config::limits_connections, "10000", 1, 1'000'000,
             "Connections open at once, over HTTP and RESP together; more are refused."),
    Quantity(kLimits, "limits.batch", &Config::limits_batch, "10000", 1, 100'000,
             "Jobs, delivery tokens or ids in one call."),
    Quantity(kLimits, "limits.topics", &Config::limits_topics, "10000", 1, 100'000,
             "Topics that there may be; over all nodes, if they share a Redis."),
    Quantity(kLimits, "limits.topics_per_prefix", &Config::limits_topics_per_prefix, "1000", 1, 100'000,
             "Topics that there may be with the prefix of an access token when that token creates one more. Tokens "
             "without a prefix have only limits.topics."),
    Quantity(kLimits, "limits.event_streams", &Config::limits_event_streams, "100", 1, 10'000,
             "Streams of events that may be open at once, such as those of dashboards; more are refused."),
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
  for (const char c : key) variable += c == '.' || c == '-' ? '_' : Capital(c);
  return variable;
}

}  // namespace tocsin
