#include "real/mariadb_server.h"

#include <unistd.h>

#include "real/ports.h"

namespace tocsin::real {
namespace {

/// mariadbd does not run as root unless it is told to.
std::string User() { return ::geteuid() == 0 ? "user = root\n" : ""; }

}  // namespace

std::string WhyNoMariaDb() {
  for (const char* const program : {"mariadbd", "mariadb-install-db", "openssl"}) {
    if (FindProgram(program).empty()) {
      return fmt::format("the program {} is not installed (Debian: mariadb-server, openssl)", program);
    }
  }
  return {};
}

Result<std::unique_ptr<MariaDbServer>> MariaDbServer::Make() {
  if (const std::string why = WhyNoMariaDb(); !why.empty()) return Fail(Code::kIo, "{}", why);
  std::unique_ptr<MariaDbServer> server(new MariaDbServer());
  auto certificates = MakeCertificates(server->folder_.path());
  if (!certificates) return std::unexpected(std::move(certificates).error());
  server->certificates_ = *std::move(certificates);
  TOCSIN_TRY(server->Install());
  const std::vector<std::string> arguments = {FindProgram("mariadbd"),
                                              "--defaults-file=" + (server->folder_ / "my.cnf").string()};
  server->process_ = std::make_unique<Process>(arguments, server->folder_.path(), server->folder_ / "log");
  TOCSIN_TRY(StartOnFreePorts([&] {
    server->Configure();
    return server->Start();
  }));
  return server;
}

Status MariaDbServer::Install() {
  Configure();
  const std::vector<std::string> arguments = {FindProgram("mariadb-install-db"),
                                              "--defaults-file=" + (folder_ / "my.cnf").string(),
                                              "--auth-root-authentication-method=normal", "--skip-test-db"};
  return Process(arguments, folder_.path(), folder_ / "install.log").Run(Millis(120'000));
}

void MariaDbServer::Configure() {
  port_ = FreePort();
  const std::string folder = folder_.path().string();
  WriteFile(folder_ / "init.sql", fmt::format("CREATE DATABASE IF NOT EXISTS {0};\n"
                                              "CREATE USER IF NOT EXISTS '{1}'@'%' IDENTIFIED BY '{2}';\n"
                                              "GRANT ALL ON *.* TO '{1}'@'%' WITH GRANT OPTION;\n",
                                              kDatabase, kUsername, kPassword));
  WriteFile(folder_ / "my.cnf", fmt::format("[mariadbd]\n"
                                            "{0}datadir = {1}/data\n"
                                            "tmpdir = {1}\n"
                                            "socket = {1}/socket\n"
                                            "pid-file = {1}/pid\n"
                                            "bind-address = 127.0.0.1,127.0.0.2\n"
                                            "port = {2}\n"
                                            "init-file = {1}/init.sql\n"
                                            "skip-name-resolve\n"
                                            "innodb_buffer_pool_size = 64M\n"
                                            "innodb_log_file_size = 16M\n"
                                            "ssl-ca = {3}\n"
                                            "ssl-cert = {4}\n"
                                            "ssl-key = {5}\n",
                                            User(), folder, port_, certificates_.ca_file,
                                            certificates_.server_cert_file, certificates_.server_key_file));
}

Status MariaDbServer::Start() {
  WriteFile(folder_ / "log", "");  // what an earlier run has said
  return process_->Start([this] { return process_->Output().contains("ready for connections"); });
}

}  // namespace tocsin::real
