#include "real/kafka_server.h"

#include <fstream>
#include <iterator>

#include "real/ports.h"

namespace tocsin::real {

namespace {

constexpr Millis kStartWithin{120'000};  // a slow machine under a sanitizer's load
constexpr std::string_view kReady = "Kafka Server started";
constexpr std::string_view kScram = "org.apache.kafka.common.security.scram.ScramLoginModule required;";

std::filesystem::path Build() { return std::filesystem::path(TOCSIN_SOURCE_FOLDER) / "build"; }

std::string ReadText(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A program of Kafka's, in a small machine that starts fast: one compiler, one collector, no files of its own.
std::vector<std::string> Java(std::vector<std::string> words) {
  std::vector<std::string> arguments = {FindProgram("java"),
                                        "-Xmx512m",
                                        "-XX:+UseSerialGC",
                                        "-XX:TieredStopAtLevel=1",
                                        "-XX:-UsePerfData",
                                        "-Xshare:auto",
                                        "-Djava.net.preferIPv4Stack=true",
                                        "-Dlog4j.configuration=file:log4j.properties",
                                        "-cp",
                                        (Build() / "kafka" / "*").string()};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return arguments;
}

}  // namespace

std::string WhyNoKafka() {
  if (FindProgram("java").empty()) return "the program java is not installed (Debian: default-jre-headless)";
  if (std::filesystem::exists(Build() / "kafka" / "wanted")) return {};
  std::string why = ReadText(Build() / "kafka-missing");
  while (why.ends_with('\n')) why.pop_back();
  return why.empty() ? "the jars of Kafka are not there: tools/kafka_jars.sh gets them" : "no Kafka: " + why;
}

Result<std::unique_ptr<KafkaServer>> KafkaServer::Make(KafkaServerOptions options) {
  if (const std::string why = WhyNoKafka(); !why.empty()) return Fail(Code::kIo, "{}", why);
  std::unique_ptr<KafkaServer> server(new KafkaServer(std::move(options)));
  server->process_ = std::make_unique<Process>(Java({"kafka.Kafka", "server.properties"}), server->folder_.path(),
                                               server->folder_ / "log");
  TOCSIN_TRY(StartOnFreePorts([&]() -> Status {
    server->Configure();
    TOCSIN_TRY(server->Format());
    return server->Start();
  }));
  return server;
}

void KafkaServer::Configure() {
  port_ = FreePort();
  controller_port_ = FreePort();
  secure_port_ = FreePort();
  WriteFile(folder_ / "log4j.properties",
            "log4j.rootLogger=WARN, out\n"
            "log4j.logger.kafka.server.KafkaRaftServer=INFO\n"
            "log4j.appender.out=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %m%n\n");
  const bool secure = options_.tls.has_value();
  WriteFile(folder_ / "server.properties",
            fmt::format("process.roles=broker,controller\n"
                        "node.id=1\n"
                        "controller.quorum.voters=1@127.0.0.1:{1}\n"
                        "listeners=PLAIN://127.0.0.1:{0},CONTROLLER://127.0.0.1:{1}{2}\n"
                        "listener.security.protocol.map=PLAIN:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL\n"
                        "inter.broker.listener.name=PLAIN\n"
                        "controller.listener.names=CONTROLLER\n"
                        "log.dirs={3}\n"
                        "num.partitions={4}\n"
                        "auto.create.topics.enable=true\n"
                        "offsets.topic.replication.factor=1\n"
                        "transaction.state.log.replication.factor=1\n"
                        "transaction.state.log.min.isr=1\n"
                        "broker.session.timeout.ms=1000\n"  // else a killed one has to wait that long before it is back
                        "broker.heartbeat.interval.ms=200\n"
                        "num.network.threads=1\n"
                        "num.io.threads=2\n"
                        "log.cleaner.enable=false\n"
                        "log.index.size.max.bytes=1048576\n"
                        "{5}",
                        port_, controller_port_, secure ? fmt::format(",SECURE://127.0.0.1:{}", secure_port_) : "",
                        (folder_ / "data").string(), options_.partitions, secure ? SecureDoor() : ""));
}

std::string KafkaServer::SecureDoor() const {
  WriteFile(folder_ / "keystore.pem",
            ReadText(options_.tls->server_key_file) + ReadText(options_.tls->server_cert_file));
  return fmt::format(
      "ssl.keystore.type=PEM\n"
      "ssl.keystore.location={}\n"
      "ssl.truststore.type=PEM\n"
      "ssl.truststore.location={}\n"
      "listener.name.secure.ssl.client.auth=requested\n"
      "listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512\n"
      "listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
      "user_{}=\"{}\";\n"
      "listener.name.secure.scram-sha-256.sasl.jaas.config={}\n"
      "listener.name.secure.scram-sha-512.sasl.jaas.config={}\n",
      (folder_ / "keystore.pem").string(), options_.tls->ca_file, options_.username, options_.password, kScram, kScram);
}

Status KafkaServer::Format() {
  constexpr const char* kCluster = "4L6g3nShT-eMCtK--X86sw";
  if (!options_.tls) {  // what Kafka's own tool would write, without a second start of java
    std::filesystem::create_directories(folder_ / "data");
    WriteFile(folder_ / "data" / "meta.properties", fmt::format("version=1\ncluster.id={}\nnode.id=1\n", kCluster));
    return {};
  }
  std::vector<std::string> words = {
      "kafka.tools.StorageTool", "format", "--ignore-formatted", "--cluster-id", kCluster, "--config",
      "server.properties"};
  for (const char* mechanism : {"SCRAM-SHA-256", "SCRAM-SHA-512"}) {
    words.insert(words.end(), {"--add-scram", fmt::format("{}=[name={},password={}]", mechanism, options_.username,
                                                          options_.password)});
  }
  return Process(Java(std::move(words)), folder_.path(), folder_ / "format.log").Run(kStartWithin);
}

Status KafkaServer::Start() {
  WriteFile(folder_ / "log", "");  // what an earlier run has said
  return process_->Start([this] { return process_->Output().contains(kReady); }, kStartWithin);
}

std::string KafkaServer::Brokers() const { return fmt::format("127.0.0.1:{}", port_); }
std::string KafkaServer::SecureBrokers() const { return fmt::format("127.0.0.1:{}", secure_port_); }

}  // namespace tocsin::real
