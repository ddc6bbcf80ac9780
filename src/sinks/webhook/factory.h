// Factory: makes the webhook sinks of a node, and owns what they share: the list of networks that they may reach, the
// certificates that they trust, the places for their sockets, and the threads that look names up.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <boost/asio/ssl/context.hpp>

#include "model/owners.h"
#include "net/asio_loop.h"
#include "net/places.h"
#include "sinks/webhook/address_guard.h"
#include "sinks/webhook/answer.h"
#include "sinks/webhook/lookup.h"
#include "sinks/webhook/signer.h"
#include "sinks/webhook/target.h"
#include "spi/sink.h"

namespace tocsin::webhook {

struct Options {
  std::string allow;    // webhook.allow: networks, with commas between them
  std::string ca_file;  // webhook.ca_file: trusted in addition to the system's; empty: none
  std::string version;  // the server's, for the header "user-agent"
  /// A secret by its name. Its errors say the name, and how to make the secret known.
  std::function<Result<std::string>(std::string_view name)> find_secret;
  Owners owners;  // of secrets
  /// Those that sinks are opened on, for their sockets. They outlive the factory.
  std::vector<net::AsioLoop*> loops;
  NameLookup::Find find_addresses = NameLookup::FindBySystem;
  NameLookup::Times lookup_times;
  size_t connections_max = 10'000;  // to all receivers together
};

class Factory final : public SinkFactory {
 public:
  /// kInvalidArgument names webhook.allow or webhook.ca_file.
  static Result<std::unique_ptr<Factory>> Make(Options options);

  Status Check(const Topic& topic) const override;
  /// `loop` is one of Options::loops.
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) override;

 private:
  explicit Factory(Options options)
      : options_(std::move(options)),
        places_(options_.connections_max),
        lookup_(options_.find_addresses, options_.lookup_times) {}

  Result<Target> TargetOf(const Topic& topic) const;
  static Result<FinalStatuses> FinalStatusesOf(const Topic& topic);
  /// Null if the topic names no secret. kForbidden if it may not use the one that it names.
  Result<std::unique_ptr<const Signer>> SignerOf(const Topic& topic) const;
  Result<std::unique_ptr<const Signer>> LoadSigner(std::string_view secret) const;
  /// Null if the target needs none.
  Result<boost::asio::ssl::context*> TlsContextFor(const Target& target) const;

  const Options options_;
  Networks allow_;
  net::Places places_;
  NameLookup lookup_;
  mutable std::mutex mutex_;  // protects tls_
  /// Made when the first sink needs it, because the system has many certificates.
  mutable std::unique_ptr<boost::asio::ssl::context> tls_;
};

}  // namespace tocsin::webhook
