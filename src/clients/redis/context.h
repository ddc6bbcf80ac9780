// Context: what all parts of one client share. Owned by the client, which outlives them; on its thread.
#pragma once

#include <random>
#include <unordered_map>

#include <boost/asio/ssl/context.hpp>

#include "clients/redis/alarm.h"
#include "clients/redis/client.h"

namespace tocsin::redis {

/// What a client records. All clients of a process share the series.
class Figures {
 public:
  explicit Figures(metrics::Registry& registry);

  /// From the sending of a script to its answer.
  void RecordScript(const Script& script, std::chrono::nanoseconds took);

  std::shared_ptr<metrics::Histogram> round_trips;
  // Commands, by how they ended.
  std::shared_ptr<metrics::Counter> answered;
  std::shared_ptr<metrics::Counter> refused;
  std::shared_ptr<metrics::Counter> failed;
  std::shared_ptr<metrics::Counter> reconnects;
  std::shared_ptr<metrics::Counter> moved;
  std::shared_ptr<metrics::Counter> asked;

 private:
  metrics::Registry& registry_;
  std::unordered_map<std::string, std::shared_ptr<metrics::Histogram>> scripts_;  // by name
};

struct Context {
  Context(boost::asio::io_context& loop, Options settings, std::unique_ptr<boost::asio::ssl::context> tls_context,
          metrics::Registry& registry)
      : io(loop), options(std::move(settings)), tls(std::move(tls_context)), figures(registry) {}

  boost::asio::io_context& io;
  const Options options;
  const std::unique_ptr<boost::asio::ssl::context> tls;  // null without TLS
  Figures figures;
  std::minstd_rand random{std::random_device()()};
};

/// One command, from Call to its answer. Exactly one place owns it at a time: the connection that sent it, the link
/// where it waits for a connection, or the list of retries.
struct Request {
  Command command;
  Client::Answer answer;
  TimePoint deadline;
  std::optional<Endpoint> pinned;  // CallEach: only this server
  std::string trouble;             // what a server said that made us try again
  int tries = 0;                   // with a back-off
  int redirects = 0;               // since the last back-off
  bool whole_script = false;       // the server said that it does not know the script
  bool asking = false;             // the server takes it only after ASKING
};

using RequestPtr = std::unique_ptr<Request>;
using Requests = std::vector<RequestPtr>;

}  // namespace tocsin::redis
