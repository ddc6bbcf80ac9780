#include "real/ports.h"
#include "real/redis_servers.h"

namespace tocsin::real {

namespace {

// Sentinel's own intervals are made for networks: ten seconds until it looks at a replica again, two until sentinels
// hear of each other. And a sentinel that a busy machine held up does nothing for 30 s (tilt).
const std::vector<std::string> kShortIntervals = {"SENTINEL",       "DEBUG", "INFO-PERIOD", "500", "ASK-PERIOD", "200",
                                                  "PUBLISH-PERIOD", "200",   "TILT-PERIOD", "1000"};

}  // namespace

std::string WhyNoRedis() {
  return FindProgram("redis-server").empty() ? "the program redis-server is not installed (Debian: redis-server)" : "";
}

Result<std::unique_ptr<RedisServer>> RedisServer::Make(RedisOptions options) {
  return MakeKind(std::move(options), Kind::kServer);
}

Result<std::unique_ptr<RedisServer>> RedisServer::MakeKind(RedisOptions options, Kind kind) {
  if (const std::string why = WhyNoRedis(); !why.empty()) return Fail(Code::kIo, "{}", why);
  std::unique_ptr<RedisServer> server(new RedisServer(std::move(options), kind));
  if (server->options_.tls) {
    Result<Certificates> made = MakeCertificates(server->folder());
    if (!made) return std::unexpected(std::move(made).error());
    server->certificates_ = std::move(*made);
  }
  std::vector<std::string> arguments = {FindProgram("redis-server"), (server->folder_ / "redis.conf").string()};
  if (kind == Kind::kSentinel) arguments.emplace_back("--sentinel");
  server->process_ = std::make_unique<Process>(arguments, server->folder(), server->folder_ / "log");
  TOCSIN_TRY(StartOnFreePorts([&] {
    server->Configure();
    return server->Start();
  }));
  return server;
}

void RedisServer::Configure() {
  port_ = FreePort();
  plain_port_ = options_.tls ? FreePort() : port_;
  bus_port_ = kind_ == Kind::kClusterNode ? FreePort() : 0;
  std::string text = fmt::format("bind 127.0.0.1\nport {}\ndir {}\n", plain_port_, folder().string());
  if (!options_.password.empty()) text += fmt::format("requirepass {}\n", options_.password);
  if (kind_ != Kind::kSentinel) text += ServerLines();
  if (options_.tls) text += TlsLines();
  for (const std::string& user : options_.users) text += fmt::format("user {}\n", user);
  for (const std::string& line : options_.lines) text += line + "\n";
  WriteFile(folder_ / "redis.conf", text);
}

std::string RedisServer::ServerLines() const {
  std::string text = fmt::format(
      "save \"\"\n"
      "appendonly {}\n"
      "appendfsync {}\n"
      "shutdown-timeout 2\n"
      "repl-diskless-sync-delay 0\n"
      "repl-ping-replica-period 1\n"
      "enable-debug-command local\n",
      options_.append_only ? "yes" : "no", options_.append_fsync);
  if (!options_.password.empty()) text += fmt::format("masterauth {}\n", options_.password);
  if (kind_ == Kind::kClusterNode) text += fmt::format("cluster-enabled yes\ncluster-port {}\n", bus_port_);
  return text;
}

std::string RedisServer::TlsLines() const {
  return fmt::format(
      "tls-port {}\n"
      "tls-cert-file {}\n"
      "tls-key-file {}\n"
      "tls-ca-cert-file {}\n"
      "tls-auth-clients {}\n",
      port_, certificates_.server_cert_file, certificates_.server_key_file, certificates_.ca_file,
      options_.tls_client_certificates ? "yes" : "no");
}

Status RedisServer::Start() {
  TOCSIN_TRY(process_->Start([this] { return Ready(); }));
  if (kind_ != Kind::kSentinel) return {};
  Result<Answer> set = MustAsk(port_, kShortIntervals, {.password = options_.password});
  if (!set) return std::unexpected(std::move(set).error());
  return {};
}

// Another server may answer on the port while ours finds it taken: the answer must come from our process.
bool RedisServer::Ready() {
  const Result<Answer> info = Ask({"INFO"});
  return info && InfoField(info->text, "process_id") == std::to_string(process_->pid()) &&
         InfoField(info->text, "loading") != "1";
}

Result<Answer> RedisServer::Ask(const std::vector<std::string>& command) {
  return real::Ask(plain_port_, command, {.password = options_.password});
}

}  // namespace tocsin::real
