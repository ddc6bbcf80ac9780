#include "server/program.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/audit.h"
#include "net/listener.h"
#include "server/node.h"

namespace tocsin {
namespace {

void Print(std::FILE* to, std::string_view text) {
  fmt::print(to, "{}", text);
  std::fflush(to);
}

int ExitStatusOf(Code code) {
  if (code == Code::kShuttingDown) return kExitOk;
  return code == Code::kInvalidArgument ? kExitBadConfig : kExitCannotStart;
}

}  // namespace

std::string BannerText(const BannerFacts& facts) {
  const std::string topic = facts.url + "/v1/topics/demo";
  const std::string_view token = facts.tokens ? " -H \"Authorization: Bearer $TOCSIN_TOKEN\"" : "";
  std::string text = fmt::format(
      "{}"
      "{}\n"
      "http     {}{}\n"
      "resp     {}{}   ({}redis-cli{} -p {})\n"
      "metrics  {}/metrics\n",
      facts.version, facts.store, facts.url, facts.dashboard ? "   (in a browser: the dashboard)" : "",
      facts.resp_tls ? "rediss://" : "", facts.resp, facts.tokens ? "REDISCLI_AUTH=$TOCSIN_TOKEN " : "",
      facts.resp_tls ? " --tls" : "", facts.resp.substr(facts.resp.rfind(':') + 1), facts.url);
  if (facts.virtual_clock) {
    text += fmt::format("clock    virtual: curl{} -d '{{\"ms\":1000}}' {}/v1/clock/advance\n", token, facts.url);
  }
  if (facts.tokens)
    text += "tokens   every call needs an access token: export TOCSIN_TOKEN=... (tocsin token create)\n";
  text += fmt::format(
      "\nA first job, due in 5 seconds; paste this into another terminal:\n"
      "  curl{1} -d '{{\"payload\":\"hello\",\"delay_ms\":5000}}' {0}/jobs\n",
      topic, token);
  if (facts.url.starts_with("https://")) {
    text += "  (--cacert ca.crt, if the certificate is of an authority of your own: docs/tls.md)\n";
  }
  // With a virtual clock nothing becomes due by itself.
  if (facts.virtual_clock) text += fmt::format("  curl{} -d '{{\"ms\":5000}}' {}/v1/clock/advance\n", token, facts.url);
  text += fmt::format(
      "  TOKEN=$(curl{1} -s -d '{{\"wait_ms\":10000}}' {0}/reserve | tee /dev/stderr | grep -o '\"token\":\"[^\"]*' "
      "| cut -d'\"' -f4)\n"
      "  curl{1} -d \"{{\\\"tokens\\\":[\\\"$TOKEN\\\"]}}\" {0}/ack\n"
      "\nReady. Stop with Ctrl-C.\n",
      topic, token);
  return text;
}

size_t OwnFiles(const Config& config) {
  constexpr size_t kFixed = 32;   // the journal, the listeners, signals, token and secret files
  constexpr size_t kOfALoop = 3;  // epoll, a timer, an event
  // One for each look-up of a name that counts. One that is stuck takes the place of the connection it is for.
  constexpr size_t kLookups = 64;
  constexpr size_t kKafka = 128;  // three for each broker and producer
  constexpr size_t kRabbitmq = 4;
  constexpr size_t kZookeeper = 8;
  constexpr size_t kOutbox = 4;
  constexpr size_t kMasters = 64;  // of a Redis Cluster
  const size_t loops = static_cast<size_t>(config.shards) + 1;
  size_t files = kFixed + kOfALoop * loops + 2 * net::Listener::kRefusalsMax + kLookups;
  if (!config.kafka_brokers.empty()) files += kKafka;
  if (!config.rabbitmq_url.empty()) files += kRabbitmq;
  if (!config.outbox_url.empty()) files += kOutbox;
  if (config.store != StoreKind::kRedis) return files;
  return files + kZookeeper + 2 * loops * (config.redis_mode == RedisMode::kCluster ? kMasters : 2);
}

SocketPlan PlanSockets(size_t wanted, size_t own_files) {
  constexpr size_t kWebhooksMin = 1024;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {wanted, kWebhooksMin};
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const size_t files = limit.rlim_cur;
  const size_t sockets = std::max({files - std::min(files, own_files), files / 4, size_t{2}});
  const size_t webhooks_min = std::clamp<size_t>(sockets / 4, 1, kWebhooksMin);
  const size_t connections = std::min(wanted, sockets - webhooks_min);
  if (connections < wanted) {
    LogWarn("limits.connections is {}, but the system allows {} open files: accepting {} connections", wanted, files,
            connections);
  }
  return {connections, sockets - connections};
}

int RunProgram(const Inputs& inputs, std::FILE* out, std::FILE* err) {
  const auto loaded = LoadConfig(inputs);
  if (!loaded) {
    Print(err, fmt::format("tocsind: {}\n", loaded.error().message));
    return kExitBadConfig;
  }
  if (loaded->action == Action::kPrint) {
    Print(out, loaded->text);
    return kExitOk;
  }
  SetLogLevel(loaded->config.log_level);
  SetLogFormat(loaded->config.log_format);
  std::unique_ptr<AuditFile> audit_file;  // outlives the node
  if (!loaded->config.log_audit_file.empty()) {
    auto opened = AuditFile::Open(loaded->config.log_audit_file);
    if (!opened) {
      Print(err, fmt::format("tocsind: log.audit_file: {}\n", opened.error().message));
      return kExitCannotStart;
    }
    audit_file = *std::move(opened);
  }
  const auto node = ServerNode::Open(loaded->config);
  if (!node) {
    Print(err, fmt::format("tocsind: {}\n", node.error().message));
    return ExitStatusOf(node.error().code);
  }
  if (::isatty(::fileno(out)) != 0) Print(out, (*node)->Banner());  // others read the log
  return (*node)->Run();
}

}  // namespace tocsin
