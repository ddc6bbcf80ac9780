// A synchronous RESP3 client over one kept connection, which begins with HELLO 3. Owned by a transport; used by one
// thread, except for Abort.
//
// Invariants: connecting, with its greeting, and the exchange after it each end within the time limit of the call.
// Commands that may have reached the server are never sent again, unless they only read. Replies are read while
// commands are being written, so that neither side waits for the other in vain.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/endpoint.h"
#include "cli/resp_reader.h"

namespace tocsin::cli {

/// Commands that leave in one write.
struct RespRequest {
  std::string bytes;
  size_t count = 0;

  void Add(std::span<const std::string> words);
};

/// A reply of an error, "WORD message", as "code: message": the code is that of the one table with this word.
Error ErrorOfReply(std::string_view text);

class RespClient {
 public:
  /// An empty token is none. Connects with the first call.
  RespClient(Endpoint endpoint, std::string token);
  ~RespClient();

  /// A reply for each command, in their order, errors among them. Where the server says an error and closes instead of
  /// answering all, that error is the result. `reads`: the commands change nothing. Other errors: kIo where the server
  /// cannot be reached or breaks off, kTimedOut, kShuttingDown after an Abort, kInternal where it is no Tocsin server.
  Result<std::vector<RespValue>> Call(const RespRequest& request, bool reads, Millis limit);

  /// From any thread: the call under way, and all later ones, fail.
  void Abort();

  const Endpoint& endpoint() const { return endpoint_; }
  const std::string& token() const { return token_; }

 private:
  struct Wire;

  const Endpoint endpoint_;
  const std::string token_;
  std::unique_ptr<Wire> wire_;
};

}  // namespace tocsin::cli
