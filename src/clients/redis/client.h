// Client: one thread's connections to a Redis, be it a single server, one behind Sentinel, or a Cluster. Pipelined:
// what is called within one turn of the loop leaves in one write for each server, and answers come in the order of the
// calls for each server.
//
// Threads: everything on the thread that runs `io`; answers and notices run there too, never within the call. They may
// call the client and Close it, but not destroy it.
//
// What a caller may rely on:
//  - `answer` runs exactly once. An Error means that the server was not reached in time (kUnavailable): the outcome is
//    unknown where the command had been sent, and nothing happened where the message says "not sent".
//  - An error that Redis itself answers is a Reply of Kind::kError, except those that the client lives through: MOVED,
//    ASK, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY, MASTERDOWN, NOSCRIPT: nothing was done then, and the command is
//    sent again, to the right server, until its deadline.
//  - A command that was not sent yet waits for a connection until its deadline, command_timeout after the call. A
//    command that was sent is never sent again after a lost connection.
//  - With Options::wait_replicas, a script that writes (Script::replicated) is answered when so many replicas have
//    received it. If they have not in time, the answer is an error that begins with kUnreplicated: the server has done
//    it, and a failover may undo it.
//  - Redis runs commands of one hash slot in the order of their calls as long as nothing fails. A command that must be
//    sent again, as above, may run after commands that were called later.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/time.h"
#include "clients/redis/command.h"
#include "clients/redis/reply.h"
#include "metrics/registry.h"
#include "net/stream.h"

namespace tocsin::redis {

constexpr std::string_view kUnreplicated = "UNREPLICATED";

enum class Mode : uint8_t { kSingle, kSentinel, kCluster };

struct Endpoint {
  std::string host;
  uint16_t port = 6379;
  /// host:port, with the brackets of IPv6.
  std::string Text() const;
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

struct Options {
  Mode mode = Mode::kSingle;
  std::vector<Endpoint> endpoints;  // of the server, of the sentinels, or of some nodes of the Cluster
  std::string master;               // kSentinel: the name of the master
  std::string username;             // empty: AUTH with the password alone
  std::string password;             // empty: no AUTH
  std::string sentinel_username;
  std::string sentinel_password;
  net::Tls tls;
  Millis connect_timeout{2'000};
  Millis command_timeout{5'000};
  Millis beat_min{0};      // between two pings of a subscription, if half of command_timeout is less
  Millis backoff_min{20};  // between two attempts to connect; doubled each time, with jitter
  Millis backoff_max{1'000};
  int wait_replicas = 0;                 // how many must have a write before it is answered
  size_t pending_bytes_max = 256 << 20;  // of commands that wait or are under way: more answer kOverloaded
};

/// What is known of one server.
struct ServerHealth {
  Endpoint endpoint;
  bool connected = false;
  std::string role;       // master, replica, sentinel; empty where it is not known
  std::string state;      // connected, connecting, not in use, or why not
  size_t hash_slots = 0;  // kCluster: how many it serves
  Millis last_round_trip{0};
};

class Client {
 public:
  using Answer = std::move_only_function<void(Result<Reply>)>;
  using Each = std::vector<std::pair<Endpoint, Reply>>;
  using Message = std::move_only_function<void(std::string_view channel, std::string_view message)>;

  /// Begins to connect; never fails for a server that is not there yet. kInvalidArgument for options or TLS files that
  /// cannot be used. `io` and `metrics` outlive the client.
  static Result<std::unique_ptr<Client>> Make(boost::asio::io_context& io, Options options, metrics::Registry& metrics);

  virtual ~Client() = default;
  /// Everything under way is answered with an Error (kShuttingDown); nothing runs after it returns. A later call is
  /// answered with the same.
  virtual void Close() = 0;

  virtual void Call(Command command, Answer answer) = 0;
  /// Once on each master that is known: for checks of settings. An Error where any of them does not answer.
  virtual void CallEach(const Command& command, std::move_only_function<void(Result<Each>)> answer) = 0;

  /// Messages of a channel, on a connection of its own that is made again when it is lost. What is published meanwhile
  /// is lost: `OnUp` says when to look for oneself. Once for a channel, until it is unsubscribed.
  virtual void Subscribe(std::string channel, Message message) = 0;
  /// As Subscribe, and in a Cluster the channel is sharded: SPUBLISH reaches those who listen at the server of its hash
  /// slot, and no other server hears of it. If that server cannot do so, which is one before Redis 7, it is a plain
  /// channel: PUBLISH reaches it then.
  virtual void SubscribeShard(std::string channel, Message message) = 0;
  /// Whether SubscribeShard does that; otherwise it is the same as Subscribe.
  virtual bool HasShards() const = 0;
  /// Not from the channel's own handler. No message of the channel is heard after it.
  virtual void Unsubscribe(std::string_view channel) = 0;
  /// Runs whenever a server can be reached (again), a failover was followed, slots moved, or the subscription is back:
  /// what was known of the data may be old.
  virtual void OnUp(std::move_only_function<void()> up) = 0;

  virtual std::vector<ServerHealth> Health() const = 0;
};

}  // namespace tocsin::redis
