#include "sinks/webhook/factory.h"

#include <algorithm>

#include "base/result.h"
#include "sinks/webhook/sink.h"

namespace tocsin::webhook {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Result<std::unique_ptr<ssl::context>> MakeTlsContext(const std::string& ca_file) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                       ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  error_code error;
  context->set_verify_mode(ssl::verify_peer, error);
  if (!error) context->set_default_verify_paths(error);
  if (error) return Fail(Code::kIo, "the system's certificates cannot be used: {}", error.message());
  if (ca_file.empty()) return context;
  context->load_verify_file(ca_file, error);
  if (!error) return context;
  return FailField(Code::kInvalidArgument, "webhook.ca_file", "webhook.ca_file: {} cannot be used: {}", ca_file,
                   error.message());
}

}  // namespace

Factory::Factory(Options options) : options_(std::move(options)), lookup_(options_.find_addresses) {}

Result<std::unique_ptr<Factory>> Factory::Make(Options options) {
  auto allow = Networks::Parse(options.allow);
  if (!allow) return std::unexpected(std::move(allow).error());
  std::unique_ptr<Factory> factory(new Factory(std::move(options)));
  factory->allow_ = *std::move(allow);
  // If the file cannot be read, say so at the start of the server.
  if (!factory->options_.ca_file.empty()) TOCSIN_TRY(factory->TlsContextFor({.tls = true}));
  return factory;
}

Result<ssl::context*> Factory::TlsContextFor(const Target& target) const {
  if (!target.tls) return nullptr;
  const std::lock_guard lock(mutex_);
  if (tls_ == nullptr) {
    auto made = MakeTlsContext(options_.ca_file);
    if (!made) return std::unexpected(std::move(made).error());
    tls_ = *std::move(made);
  }
  return tls_.get();
}

Result<Target> Factory::TargetOf(const Topic& topic) const {
  auto target = ParseTarget(topic.delivery.Text("url"));
  if (target) TOCSIN_TRY(CheckHost(*target, allow_));
  return target;
}

Result<std::unique_ptr<const Signer>> Factory::SignerOf(std::string_view name) const {
  if (name.empty()) return nullptr;
  auto secret = options_.find_secret(name);
  if (!secret) {
    return FailField(Code::kInvalidArgument, "delivery.secret", "delivery.secret: {}", secret.error().message);
  }
  auto signer = Signer::Make(*std::move(secret));
  if (!signer) return std::unexpected(std::move(signer).error());
  return std::make_unique<const Signer>(*std::move(signer));
}

Status Factory::Check(const Topic& topic) const {
  const auto target = TargetOf(topic);
  if (!target) return std::unexpected(target.error());
  TOCSIN_TRY(SignerOf(topic.delivery.Text("secret")));
  TOCSIN_TRY(TlsContextFor(*target));
  return {};
}

Result<std::unique_ptr<Sink>> Factory::Open(const Topic& topic, Loop& loop) {
  auto target = TargetOf(topic);
  if (!target) return std::unexpected(std::move(target).error());
  const std::string secret(topic.delivery.Text("secret"));
  auto signer = SignerOf(secret);
  if (!signer) return std::unexpected(std::move(signer).error());
  const auto tls = TlsContextFor(*target);
  if (!tls) return std::unexpected(tls.error());
  const auto own_loop = std::ranges::find(options_.loops, &loop);
  TOCSIN_CHECK(own_loop != options_.loops.end());
  const Delivery& delivery = topic.delivery;
  const SinkSettings settings{.in_flight = delivery.Number("in_flight"),
                              .batch = delivery.Number("batch"),
                              .timeout = Millis(delivery.Number("timeout_ms")),
                              .retry_4xx = delivery.Flag("retry_4xx")};
  MessageWriter writer(*target, topic.name, "tocsin/" + options_.version, *std::move(signer));
  Route route{.loop = **own_loop, .target = *std::move(target), .allow = allow_, .lookup = lookup_, .tls = *tls};
  ReadSigner read_signer;
  if (!secret.empty()) read_signer = [this, secret] { return SignerOf(secret); };
  return std::make_unique<WebhookSink>(std::move(route), std::move(writer), settings, std::move(read_signer));
}

}  // namespace tocsin::webhook
