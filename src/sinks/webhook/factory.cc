#include "sinks/webhook/factory.h"

#include <algorithm>

#include "base/result.h"
#include "net/stream.h"
#include "sinks/webhook/sink.h"

namespace tocsin::webhook {
namespace {

namespace ssl = boost::asio::ssl;

/// Trusts the system's certificates and those of the file.
Result<std::unique_ptr<ssl::context>> MakeTlsContext(const std::string& ca_file) {
  auto context = net::MakeTlsContext({.on = true, .ca_file = {}, .cert_file = {}, .key_file = {}});
  if (!context) return Fail(Code::kIo, "{}", context.error().message);
  if (ca_file.empty()) return context;
  boost::system::error_code error;
  (*context)->load_verify_file(ca_file, error);
  if (!error) return context;
  return FailField(Code::kInvalidArgument, "webhook.ca_file", "webhook.ca_file: {} cannot be used: {}", ca_file,
                   error.message());
}

}  // namespace

Result<std::unique_ptr<Factory>> Factory::Make(Options options) {
  std::unique_ptr<Factory> factory(new Factory(std::move(options)));
  TOCSIN_ASSIGN(factory->allow_, Networks::Parse(factory->options_.allow));
  // If the file cannot be read, say so at the start of the server.
  if (!factory->options_.ca_file.empty()) TOCSIN_TRY(factory->TlsContextFor({.tls = true}));
  return factory;
}

Result<ssl::context*> Factory::TlsContextFor(const Target& target) const {
  if (!target.tls) return nullptr;
  const std::lock_guard lock(mutex_);
  if (tls_ == nullptr) {
    TOCSIN_ASSIGN(tls_, MakeTlsContext(options_.ca_file));
  }
  return tls_.get();
}

Result<Target> Factory::TargetOf(const Topic& topic) const {
  auto target = ParseTarget(topic.delivery.Text("url"));
  if (target) TOCSIN_TRY(CheckHost(*target, allow_));
  return target;
}

Result<FinalStatuses> Factory::FinalStatusesOf(const Topic& topic) {
  if (topic.delivery.Flag("retry_4xx")) return FinalStatuses();
  return FinalStatuses::Parse(topic.delivery.Text("final_statuses"));
}

Result<std::unique_ptr<const Signer>> Factory::SignerOf(const Topic& topic) const {
  const std::string_view name = topic.delivery.Text("secret");
  if (name.empty()) return nullptr;
  TOCSIN_TRY(options_.owners.Check(Owned::kSecret, name, topic.name, "delivery.secret"));
  return LoadSigner(name);
}

Result<std::unique_ptr<const Signer>> Factory::LoadSigner(std::string_view name) const {
  auto secret = options_.find_secret(name);
  if (!secret) {
    return FailField(Code::kInvalidArgument, "delivery.secret", "delivery.secret: {}", secret.error().message);
  }
  TOCSIN_ASSIGN(Signer signer, Signer::Make(*std::move(secret)));
  return std::make_unique<const Signer>(std::move(signer));
}

Status Factory::Check(const Topic& topic) const {
  TOCSIN_ASSIGN(const Target target, TargetOf(topic));
  TOCSIN_TRY(FinalStatuses::Parse(topic.delivery.Text("final_statuses")));
  TOCSIN_TRY(SignerOf(topic));
  TOCSIN_TRY(TlsContextFor(target));
  return {};
}

Result<std::unique_ptr<Sink>> Factory::Open(const Topic& topic, Loop& loop) {
  TOCSIN_ASSIGN(Target target, TargetOf(topic));
  TOCSIN_ASSIGN(auto signer, SignerOf(topic));
  TOCSIN_ASSIGN(ssl::context* const tls, TlsContextFor(target));
  const auto own_loop = std::ranges::find(options_.loops, &loop);
  TOCSIN_CHECK(own_loop != options_.loops.end());
  const Delivery& delivery = topic.delivery;
  SinkSettings settings{.in_flight = delivery.Number("in_flight"),
                        .batch = delivery.Number("batch"),
                        .timeout = Millis(delivery.Number("timeout_ms")),
                        .final_statuses = {}};
  TOCSIN_ASSIGN(settings.final_statuses, FinalStatusesOf(topic));
  MessageWriter writer(target, topic.name, "tocsin/" + options_.version, std::move(signer));
  Route route{.loop = **own_loop,
              .target = std::move(target),
              .allow = allow_,
              .lookup = lookup_,
              .tls = tls,
              .places = places_};
  ReadSigner read_signer;
  if (const std::string secret(delivery.Text("secret")); !secret.empty()) {
    read_signer = [this, secret] { return LoadSigner(secret); };
  }
  return std::make_unique<WebhookSink>(std::move(route), std::move(writer), std::move(settings),
                                       std::move(read_signer));
}

}  // namespace tocsin::webhook
