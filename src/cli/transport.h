// How a call of the API reaches the server: over HTTP, or over RESP. Both take and answer the same: a call is named as
// HTTP names it (docs/http.md), and its body and its answer are JSON. Owned by main, or by a thread of a worker; used
// by one thread, except for Abort.
//
// Invariants: a call ends within its time limit. One that may have reached the server is never sent again, unless it
// only reads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "base/time.h"
#include "cli/endpoint.h"

namespace tocsin::cli {

class Transport {
 public:
  Transport() = default;
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// What the server answers. An error of the server is an Error with the message "CODE: message (field)". Other
  /// errors: kIo where it cannot be reached or breaks off, kTimedOut, kShuttingDown after an Abort.
  virtual Result<boost::json::object> Call(std::string_view method, std::string_view target,
                                           const boost::json::object* body, Millis limit) = 0;

  /// From any thread: the call under way, and all later ones, fail.
  virtual void Abort() = 0;

  /// One more connection to the same server with the same token, for another thread.
  virtual std::unique_ptr<Transport> Another() const = 0;

  virtual const Endpoint& endpoint() const = 0;
};

/// By the door that the endpoint names. Connects with the first call. An empty token is none.
std::unique_ptr<Transport> MakeTransport(Endpoint endpoint, std::string token);

}  // namespace tocsin::cli
