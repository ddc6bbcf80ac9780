// The webhook sink passes the contract of sinks against a real HTTP server: plain, with TLS, and with batches.
#include <set>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "base/text.h"
#include "real/certificates.h"
#include "real/process.h"
#include "sinks/webhook/receiver_test_site.h"
#include "sinks/webhook/sink_test_site.h"
#include "spi/contract/sink_contract.h"

namespace tocsin::webhook {
namespace {

namespace json = boost::json;

std::string Decoded(const std::string& text) { return DecodePercent(text, false).value_or("not decoded: " + text); }

ReceivedJob FromFields(const Received& received) {
  constexpr std::string_view kOwn = "tocsin-header-";
  ReceivedJob job{.topic = Decoded(received.Field("tocsin-topic")),
                  .id = Decoded(received.Field("tocsin-job-id")),
                  .key = Decoded(received.Field("tocsin-key")),
                  .attempt = static_cast<uint32_t>(std::stoul(received.Field("tocsin-attempt"))),
                  .due_ms = std::stoll(received.Field("tocsin-due-ms")),
                  .token = received.Field("tocsin-token"),
                  .headers = {},
                  .payload = received.body};
  for (const auto& [name, value] : received.fields) {
    if (name.starts_with(kOwn)) job.headers[Decoded(name.substr(kOwn.size()))] = Decoded(value);
    if (name == "tocsin-probe") job.headers[name] = Decoded(value);
    if (name == "content-type" && value != "application/octet-stream") job.headers[name] = value;
  }
  return job;
}

std::string TextOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  return value == nullptr ? "" : std::string(value->as_string());
}

std::vector<ReceivedJob> FromList(const std::string& body) {
  std::vector<ReceivedJob> jobs;
  for (const json::value& entry : json::parse(body).at("jobs").as_array()) {
    const json::object& object = entry.as_object();
    ReceivedJob& job = jobs.emplace_back();
    job.topic = TextOf(object, "topic");
    job.id = TextOf(object, "id");
    job.key = TextOf(object, "key");
    job.attempt = static_cast<uint32_t>(object.at("attempt").as_int64());
    job.due_ms = object.at("due_ms").as_int64();
    job.token = TextOf(object, "token");
    job.payload =
        object.contains("payload") ? TextOf(object, "payload") : DecodeBase64(TextOf(object, "payload_base64")).value();
    if (!object.contains("headers")) continue;
    for (const auto& header : object.at("headers").as_object()) {
      job.headers[std::string(header.key())] = std::string(header.value().as_string());
    }
  }
  return jobs;
}

struct Kind {
  bool tls = false;
  bool batches = false;
};

class WebhookWorld final : public SinkWorld {
 public:
  explicit WebhookWorld(Kind kind) : kind_(kind) {}
  ~WebhookWorld() override { receiver_.reset(); }

  Status Start() {
    Options options = SinkSite::LoopbackAllowed();
    if (kind_.tls) {
      auto made = real::MakeCertificates(folder_.path());
      if (!made) return Fail(Code::kUnavailable, "{}", made.error().message);
      tls_.use_certificate_chain_file(made->server_cert_file);
      tls_.use_private_key_file(made->server_key_file, boost::asio::ssl::context::pem);
      options.ca_file = made->ca_file;
    }
    options.loops = {&loop_};
    factory_ = Factory::Make(options).value();
    receiver_.emplace([this](const webhook::Received& received) { return Answer(received); },
                      kind_.tls ? &tls_ : nullptr);
    return {};
  }

  Loop& loop() override { return loop_; }
  bool RunUntil(const std::function<bool()>& holds, Millis within) override {
    const auto end = std::chrono::steady_clock::now() + within;
    while (!holds()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      loop_.io().run_one_for(Millis(5));
    }
    return true;
  }
  Topic MakeTopic() override {
    std::map<std::string, std::string> settings = {{"secret", "orders"}};
    if (kind_.batches) settings["batch"] = "10";
    return WebhookTopic(fmt::format("{}://127.0.0.1:{}/", kind_.tls ? "https" : "http", receiver_->port()), settings);
  }
  std::optional<Topic> MakeOrderedTopic() override {
    Topic topic = MakeTopic();
    topic.delivery.settings["in_flight"] = "1";
    return topic;
  }
  Result<std::unique_ptr<Sink>> Open(const Topic& topic) override { return factory_->Open(topic, loop_); }

  void KillReceiver() override { receiver_->Kill(); }
  Status StartReceiver() override {
    receiver_->Start();
    return {};
  }
  void HangReceiver() override { receiver_->Hang(); }
  void ResumeReceiver() override { receiver_->Resume(); }
  Result<std::vector<ReceivedJob>> Received() override {
    std::vector<ReceivedJob> all;
    for (const webhook::Received& received : receiver_->received()) {
      for (ReceivedJob& job : JobsOf(received)) all.push_back(std::move(job));
    }
    return all;
  }

  bool MakeRefused(ContractJob& job) override {
    const std::lock_guard lock(mutex_);
    refused_.insert(job.Id());
    return true;
  }
  bool MakePostponed(ContractJob& job, Millis delay) override {
    const std::lock_guard lock(mutex_);
    postponed_[job.Id()] = delay;
    return true;
  }
  std::vector<std::string> secrets() const override { return {"whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}; }

 private:
  std::vector<ReceivedJob> JobsOf(const webhook::Received& received) const {
    return kind_.batches ? FromList(received.body) : std::vector{FromFields(received)};
  }
  Reply Answer(const webhook::Received& received) {
    const std::lock_guard lock(mutex_);
    if (!kind_.batches) {
      const std::string id = FromFields(received).id;
      if (refused_.contains(id)) return {.status = 410};
      if (!postponed_.contains(id)) return {};
      return {.status = 503, .fields = fmt::format("retry-after: {}\r\n", postponed_[id] / std::chrono::seconds(1))};
    }
    json::array outcomes;
    for (const ReceivedJob& job : FromList(received.body)) {
      json::object outcome{{"id", job.id}, {"outcome", "ok"}};
      if (refused_.contains(job.id)) outcome["outcome"] = "refuse";
      if (postponed_.contains(job.id)) {
        outcome["outcome"] = "retry";
        outcome["delay_ms"] = postponed_[job.id].count();
      }
      outcomes.push_back(std::move(outcome));
    }
    return {.body = json::serialize(json::object{{"outcomes", std::move(outcomes)}})};
  }

  const Kind kind_;
  RealClock clock_;
  net::AsioLoop loop_{clock_};
  std::unique_ptr<Factory> factory_;
  real::Folder folder_;
  boost::asio::ssl::context tls_{boost::asio::ssl::context::tls_server};
  std::mutex mutex_;  // protects the next two
  std::set<std::string> refused_;
  std::map<std::string, Millis> postponed_;
  std::optional<Receiver> receiver_;
};

SinkWorldMaker MakerOf(Kind kind) {
  return [kind]() -> Result<std::unique_ptr<SinkWorld>> {
    auto world = std::make_unique<WebhookWorld>(kind);
    TOCSIN_TRY(world->Start());
    return world;
  };
}

}  // namespace
}  // namespace tocsin::webhook

namespace tocsin {

INSTANTIATE_TEST_SUITE_P(Webhook, SinkContract, testing::Values(webhook::MakerOf({})));
INSTANTIATE_TEST_SUITE_P(WebhookTls, SinkContract, testing::Values(webhook::MakerOf({.tls = true})));
INSTANTIATE_TEST_SUITE_P(WebhookBatch, SinkContract, testing::Values(webhook::MakerOf({.batches = true})));

}  // namespace tocsin
