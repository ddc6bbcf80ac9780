#include "clients/redis/client.h"

#include "clients/redis/cluster_client.h"
#include "clients/redis/master_client.h"

namespace tocsin::redis {
namespace {

Status CheckEndpoints(const Options& options) {
  if (options.endpoints.empty()) {
    return FailField(Code::kInvalidArgument, "endpoints", "at least one address of a Redis server is needed");
  }
  if (options.mode == Mode::kSingle && options.endpoints.size() > 1) {
    return FailField(Code::kInvalidArgument, "endpoints",
                     "a single server has one address, not {}; several are for Sentinel or Cluster",
                     options.endpoints.size());
  }
  for (const Endpoint& endpoint : options.endpoints) {
    if (endpoint.host.empty() || endpoint.port == 0) {
      return FailField(Code::kInvalidArgument, "endpoints", "'{}' is no host:port", endpoint.Text());
    }
  }
  if (options.mode == Mode::kSentinel && options.master.empty()) {
    return FailField(Code::kInvalidArgument, "master", "Sentinel needs the name of the master");
  }
  return {};
}

Status CheckLogin(const std::string& username, const std::string& password, std::string_view field) {
  if (username.empty() || !password.empty()) return {};
  return FailField(Code::kInvalidArgument, std::string(field), "the user '{}' needs a password", username);
}

Status CheckTimes(const Options& options) {
  if (options.connect_timeout <= Millis(0)) {
    return FailField(Code::kInvalidArgument, "connect_timeout", "must be above 0 ms");
  }
  if (options.command_timeout <= Millis(0)) {
    return FailField(Code::kInvalidArgument, "command_timeout", "must be above 0 ms");
  }
  if (options.backoff_min <= Millis(0) || options.backoff_max < options.backoff_min) {
    return FailField(Code::kInvalidArgument, "backoff_min", "must be from 1 ms to backoff_max, {} ms",
                     options.backoff_max.count());
  }
  return {};
}

Status Check(const Options& options) {
  TOCSIN_TRY(CheckEndpoints(options));
  TOCSIN_TRY(CheckLogin(options.username, options.password, "password"));
  TOCSIN_TRY(CheckLogin(options.sentinel_username, options.sentinel_password, "sentinel_password"));
  if (options.tls.on && options.tls.cert_file.empty() != options.tls.key_file.empty()) {
    return FailField(Code::kInvalidArgument, options.tls.key_file.empty() ? "tls.key_file" : "tls.cert_file",
                     "a client certificate needs both files, cert_file and key_file");
  }
  return CheckTimes(options);
}

}  // namespace

std::string Endpoint::Text() const {
  return host.contains(':') ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<std::unique_ptr<Client>> Client::Make(boost::asio::io_context& io, Options options, metrics::Registry& metrics) {
  TOCSIN_TRY(Check(options));
  TOCSIN_ASSIGN(auto tls, net::MakeTlsContext(options.tls));
  const Mode mode = options.mode;
  auto context = std::make_unique<Context>(io, std::move(options), std::move(tls), metrics);
  std::unique_ptr<BaseClient> client;
  if (mode == Mode::kCluster) {
    client = std::make_unique<ClusterClient>(std::move(context));
  } else {
    client = std::make_unique<MasterClient>(std::move(context));
  }
  client->Start();
  return client;
}

}  // namespace tocsin::redis
