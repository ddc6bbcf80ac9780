// TokenGuard: reads the file of access tokens at the start, when it changes (it looks once a second) and on SIGHUP, and
// hands on each new set. If the file becomes unreadable, the last set stays in force.
//
// Owned by the ServerNode; runs on the main loop only. A set is immutable, so it can be handed to other threads.
#pragma once

#include <csignal>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "auth/token_set.h"
#include "base/result.h"
#include "config/config.h"

namespace tocsin {

class TokenGuard {
 public:
  using Tokens = std::shared_ptr<const auth::TokenSet>;

  /// Null without auth.token_file. `loopback`: only this machine can reach the server.
  static Result<std::unique_ptr<TokenGuard>> Open(boost::asio::io_context& io, const Config& config, bool loopback);

  /// The last set that was read.
  const Tokens& tokens() const { return tokens_; }
  /// Calls `changed` with every later set, until the loop ends.
  void Start(std::function<void(Tokens)> changed);

 private:
  TokenGuard(boost::asio::io_context& io, const std::string& path)
      : path_(path), watch_(path), timer_(io), hangup_(io, SIGHUP) {}
  void AwaitChange();
  void AwaitSignal();
  void Read();
  /// Writes into the audit which access tokens came, went and changed since `before`.
  void AuditChange(const auth::TokenSet& before) const;
  void WarnIfNone() const;

  const std::string path_;
  auth::TokenWatch watch_;
  boost::asio::steady_timer timer_;
  boost::asio::signal_set hangup_;
  Tokens tokens_;
  std::function<void(Tokens)> changed_;
};

}  // namespace tocsin
