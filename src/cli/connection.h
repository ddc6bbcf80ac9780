// One TCP connection to a server, as both clients use it: made when it is needed, and driven by a loop of its own that
// runs only during a call. Owned by a client and used by its thread, except for Abort.
//
// Invariant: every operation that Await begins ends by the time limit that was set last, or by an Abort.
#pragma once

#include <atomic>
#include <optional>

#include <boost/asio/io_context.hpp>
#include <boost/beast/core/tcp_stream.hpp>

#include "base/result.h"
#include "base/time.h"
#include "cli/endpoint.h"

namespace tocsin::cli {

/// What went wrong, and whether the server may have taken the request.
struct Problem {
  boost::system::error_code code;
  bool sent = false;
};

struct Connection {
  boost::asio::io_context io{1};
  std::optional<boost::beast::tcp_stream> stream;  // while connected
  std::atomic<bool> aborted = false;

  /// Runs the loop until the operation that `start` begins has ended.
  template <class Start>
  boost::system::error_code Await(Start start) {
    // An Abort between two operations finds nothing to cancel.
    if (aborted) return boost::asio::error::operation_aborted;
    std::optional<boost::system::error_code> result;
    start([&](boost::system::error_code code, auto&&...) { result = code; });
    io.restart();
    while (!result) io.run_one();
    return *result;
  }

  boost::system::error_code Connect(const Endpoint& endpoint, Millis limit);

  /// Drops a connection that the server closed while nobody listened: nothing was sent then, so that it is safe to
  /// begin anew whatever is asked.
  void DropIfStale();

  /// From any thread: the operation under way, and all later ones, fail.
  void Abort();
};

/// `limit` is that of the call.
std::unexpected<Error> Explain(const Endpoint& endpoint, const Problem& problem, Millis limit);

}  // namespace tocsin::cli
