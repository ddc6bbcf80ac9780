// Webhooks: makes the webhook sinks of a node, and owns what they share: the list of networks that they may reach, the
// certificates that they trust, and the threads that look names up.
//
// Thread-safe. It outlives its sinks; the loops outlive it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "net/asio_loop.h"
#include "sinks/webhook/address_guard.h"
#include "sinks/webhook/lookup.h"
#include "sinks/webhook/signer.h"
#include "sinks/webhook/target.h"
#include "spi/sink.h"

namespace tocsin::webhook {

struct WebhookOptions {
  std::string allow;    // webhook.allow: networks, with commas between them
  std::string ca_file;  // webhook.ca_file: trusted besides the system's; empty: none
  std::string version;  // the server's, for the header "user-agent"
  /// A secret by its name. Its errors say the name, and how to make the secret known.
  std::function<Result<std::string>(std::string_view name)> find_secret;
  NameLookup::Find find_addresses = NameLookup::FindBySystem;
};

class Webhooks {
 public:
  /// kInvalidArgument names webhook.allow or webhook.ca_file.
  static Result<std::unique_ptr<Webhooks>> Make(WebhookOptions options);

  /// As Sinks::Check, for a topic whose sink is "webhook".
  Status Check(const Topic& topic);
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, net::AsioLoop& loop);

 private:
  explicit Webhooks(WebhookOptions options);

  Result<Target> TargetOf(const Topic& topic) const;
  /// Null where there is no name.
  Result<std::unique_ptr<const Signer>> SignerOf(std::string_view name) const;
  Result<boost::asio::ssl::context*> TlsContext();

  const WebhookOptions options_;
  Networks allow_;
  NameLookup lookup_;
  std::mutex mutex_;  // protects the next one
  std::unique_ptr<boost::asio::ssl::context>
      tls_;  // made when the first sink needs it: the system has many certificates
};

}  // namespace tocsin::webhook
