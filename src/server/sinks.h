// NodeSinks: makes the sinks of a node by the name of their kind. It owns one factory for each kind that is configured;
// the table in sinks.cc is the only place that names concrete sinks.
//
// Made by the main thread before the loops run, and destroyed by it after the service: no sink is left then.
// Thread-safe in between. No receiver is connected to before a topic needs it.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "auth/token_set.h"
#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "model/owners.h"
#include "net/asio_loop.h"
#include "spi/sink.h"

namespace tocsin {

/// What to say at the start: what no admin of a prefix may push with, because push.owners is empty. Empty: nothing.
std::string ClosedToPrefixes(const Config& config, const auth::TokenSet& tokens);

class NodeSinks final : public SinkFactory {
 public:
  /// kInvalidArgument names the option that cannot be used. Sinks are opened on `loops`; those and `clock` outlive it.
  /// `webhook_connections`: that may be open at once.
  static Result<std::unique_ptr<NodeSinks>> Make(const Config& config, const Clock& clock,
                                                 std::vector<net::AsioLoop*> loops, size_t webhook_connections);

  Status Check(const Topic& topic) const override;
  Status CheckGiven(const Topic& topic) const override { return owners_.CheckGiven(topic); }
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) override;

 private:
  Result<SinkFactory*> Find(const Topic& topic) const;

  Owners owners_;
  std::map<std::string_view, std::unique_ptr<SinkFactory>> factories_;
};

}  // namespace tocsin
