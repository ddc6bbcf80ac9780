#include "real/zookeeper_server.h"

#include <array>

#include <fmt/ranges.h>

#include "real/ask.h"
#include "real/ports.h"

namespace tocsin::real {

namespace {

// Of Debian's libzookeeper-java; the server's own names the other jars that it needs. The second writes the log to
// stderr.
constexpr std::array kJars = {"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"};

}  // namespace

std::string WhyNoZooKeeper() {
  if (FindProgram("java").empty()) return "the program java is not installed (Debian: default-jre-headless)";
  for (const char* jar : kJars) {
    if (!std::filesystem::exists(jar)) return fmt::format("{} is not installed (Debian: libzookeeper-java)", jar);
  }
  return {};
}

Result<std::unique_ptr<ZooKeeperServer>> ZooKeeperServer::Make(ZooKeeperOptions options) {
  if (const std::string why = WhyNoZooKeeper(); !why.empty()) return Fail(Code::kIo, "{}", why);
  std::unique_ptr<ZooKeeperServer> server(new ZooKeeperServer(options));
  // A small machine that starts fast: one compiler, one collector, no files of its own.
  const std::vector<std::string> arguments = {FindProgram("java"),
                                              "-Xmx128m",
                                              "-XX:+UseSerialGC",
                                              "-XX:TieredStopAtLevel=1",
                                              "-XX:-UsePerfData",
                                              "-Xshare:auto",
                                              "-Djava.net.preferIPv4Stack=true",
                                              "-cp",
                                              fmt::format("{}", fmt::join(kJars, ":")),
                                              "org.apache.zookeeper.server.ZooKeeperServerMain",
                                              (server->folder_ / "zoo.cfg").string()};
  server->process_ = std::make_unique<Process>(arguments, server->folder_.path(), server->folder_ / "log");
  TOCSIN_TRY(StartOnFreePorts([&] {
    server->Configure();
    return server->Start();
  }));
  return server;
}

void ZooKeeperServer::Configure() {
  port_ = FreePort();
  WriteFile(folder_ / "zoo.cfg", fmt::format("tickTime={}\n"
                                             "minSessionTimeout={}\n"
                                             "maxSessionTimeout={}\n"
                                             "dataDir={}\n"
                                             "clientPort={}\n"
                                             "clientPortAddress=127.0.0.1\n"
                                             "maxClientCnxns=0\n"
                                             "admin.enableServer=false\n"
                                             "4lw.commands.whitelist=*\n"
                                             "preAllocSize=1024\n",  // KiB; otherwise 64 MiB for each test
                                             options_.tick.count(), options_.session_timeout_min.count(),
                                             options_.session_timeout_max.count(), (folder_ / "data").string(), port_));
}

// Another server may answer on the port while ours finds it taken: the answer must name our folder. A connection that
// comes before the server is ready is never answered: it must not be waited for.
Status ZooKeeperServer::Start() {
  return process_->Start([this] {
    const Result<std::string> configuration = AskText(port_, "conf", Millis(100));
    return configuration && configuration->contains(folder_.path().string());
  });
}

std::string ZooKeeperServer::Hosts() const { return fmt::format("127.0.0.1:{}", port_); }

Result<std::string> ZooKeeperServer::Ask(std::string_view word) const { return AskText(port_, word, Millis(5'000)); }

}  // namespace tocsin::real
