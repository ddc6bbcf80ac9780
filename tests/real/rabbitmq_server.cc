#include "real/rabbitmq_server.h"

#include <fstream>
#include <iterator>

#include "real/ask.h"
#include "real/ports.h"

namespace tocsin::real {

namespace {

constexpr Millis kStartWithin{120'000};  // a slow machine under a sanitizer's load
// Not those of /usr/sbin, which change the user and write into the package's folders.
constexpr const char* kServer = "/usr/lib/rabbitmq/bin/rabbitmq-server";
constexpr const char* kControl = "/usr/lib/rabbitmq/bin/rabbitmqctl";
constexpr std::string_view kReady = "Starting broker... completed";
// Erlang's nodes listen for each other on all addresses unless told.
constexpr std::string_view kLoopbackOnly = "-kernel inet_dist_use_interface {127,0,0,1}";

}  // namespace

std::string WhyNoRabbitMq() {
  if (!std::filesystem::exists(kServer)) return fmt::format("{} is not installed (Debian: rabbitmq-server)", kServer);
  if (FindProgram("epmd").empty()) return "the program epmd is not installed (Debian: erlang-base)";
  if (FindProgram("openssl").empty()) return "the program openssl is not installed";
  return {};
}

Result<std::unique_ptr<RabbitMqServer>> RabbitMqServer::Make() {
  if (const std::string why = WhyNoRabbitMq(); !why.empty()) return Fail(Code::kIo, "{}", why);
  std::unique_ptr<RabbitMqServer> server(new RabbitMqServer());
  auto certificates = MakeCertificates(server->folder_.path());
  if (!certificates) return std::unexpected(std::move(certificates).error());
  server->certificates_ = *std::move(certificates);
  TOCSIN_TRY(server->StartNames());
  TOCSIN_TRY(StartOnFreePorts([&] {
    server->Configure();
    server->process_ =
        std::make_unique<Process>(server->Command(kServer), server->folder_.path(), server->folder_ / "log");
    return server->Start();
  }));
  return server;
}

Status RabbitMqServer::StartNames() {
  names_port_ = FreePort();
  const std::vector<std::string> arguments = {FindProgram("epmd"), "-address", "127.0.0.1", "-port",
                                              std::to_string(names_port_)};
  names_ = std::make_unique<Process>(arguments, folder_.path(), folder_ / "names.log");
  constexpr std::string_view kNames("\0\1n", 3);
  return names_->Start([&] { return AskText(names_port_, kNames, Millis(1'000)).has_value(); });
}

void RabbitMqServer::Configure() {
  port_ = FreePort();
  tls_port_ = FreePort();
  distribution_port_ = FreePort();
  WriteFile(folder_ / "enabled_plugins", "[].\n");
  WriteFile(folder_ / "rabbitmq.conf",
            fmt::format("listeners.tcp.1 = 127.0.0.1:{}\n"
                        "listeners.ssl.1 = 127.0.0.1:{}\n"
                        "ssl_options.cacertfile = {}\n"
                        "ssl_options.certfile = {}\n"
                        "ssl_options.keyfile = {}\n"
                        "ssl_options.verify = verify_none\n"
                        "ssl_options.fail_if_no_peer_cert = false\n"
                        "default_user = {}\n"
                        "default_pass = {}\n"
                        "vm_memory_high_watermark.relative = 0.6\n"
                        "disk_free_limit.absolute = 50MB\n",
                        port_, tls_port_, certificates_.ca_file, certificates_.server_cert_file,
                        certificates_.server_key_file, kUsername, kPassword));
}

std::vector<std::string> RabbitMqServer::Command(const char* program) const {
  const std::string folder = folder_.path().string();
  return {"/usr/bin/env",
          "HOME=" + folder,  // of the cookie
          "ERL_EPMD_ADDRESS=127.0.0.1",
          fmt::format("ERL_EPMD_PORT={}", names_port_),
          fmt::format("RABBITMQ_NODENAME=tocsin{}@localhost", port_),
          fmt::format("RABBITMQ_DIST_PORT={}", distribution_port_),
          "RABBITMQ_MNESIA_BASE=" + folder + "/data",
          "RABBITMQ_LOG_BASE=" + folder + "/logs",
          "RABBITMQ_CONFIG_FILE=" + folder + "/rabbitmq.conf",
          "RABBITMQ_ENABLED_PLUGINS_FILE=" + folder + "/enabled_plugins",
          "RABBITMQ_PID_FILE=" + folder + "/pid",
          "RABBITMQ_CONF_ENV_FILE=/dev/null",
          fmt::format("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS={}", kLoopbackOnly),
          fmt::format("RABBITMQ_CTL_ERL_ARGS={}", kLoopbackOnly),
          "RUNNING_UNDER_SYSTEMD=true",  // the script becomes the server, so that signals reach it
          program};
}

Status RabbitMqServer::Start() {
  WriteFile(folder_ / "log", "");  // what an earlier run has said
  return process_->Start([this] { return process_->Output().contains(kReady); }, kStartWithin);
}

std::string RabbitMqServer::Log() const {
  std::ifstream in(folder_ / fmt::format("logs/tocsin{}@localhost.log", port_), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Status RabbitMqServer::Control(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = Command(kControl);
  arguments.insert(arguments.end(), words.begin(), words.end());
  return Process(std::move(arguments), folder_.path(), folder_ / "control.log").Run(kStartWithin);
}

}  // namespace tocsin::real
