// A synchronous HTTP/1.1 client over one kept connection. Owned by an Api; used by one thread, except for Abort.
//
// Invariants: connecting, and the exchange after it, each end within the time limit of the call. A request that may
// have reached the server is never sent again, unless it is a GET. The client notices that the server closed an idle
// connection before it sends anything on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace boost::asio::ssl {
class context;  // NOLINT(readability-identifier-naming): Boost has named it
}

namespace tocsin::cli {

/// How to speak TLS: --ca, --cert, --cert-key and --insecure.
struct TlsFlags {
  std::string ca;    // a file; empty: the system's authorities
  std::string cert;  // with key; empty: none
  std::string key;
  bool insecure = false;
};

/// http://HOST[:PORT] or https://HOST[:PORT]
struct Endpoint {
  std::string host;  // without the brackets of IPv6
  uint16_t port = 80;
  std::string url;                                      // as it was written, without a slash at its end
  std::shared_ptr<boost::asio::ssl::context> tls = {};  // null: clear text. Threads may share it
};
/// Loads the files of `flags`. An error names the flag.
Result<Endpoint> ParseEndpoint(std::string_view url, const TlsFlags& flags = {});

struct HttpAnswer {
  unsigned status = 0;
  std::string body;
};

class HttpClient {
 public:
  /// Sends `access_token` as a bearer token, unless it is empty. Connects with the first call.
  HttpClient(Endpoint endpoint, std::string access_token);
  ~HttpClient();

  /// `target` is path and query. An empty body is none; any other is JSON. Errors: kIo if the server cannot be reached
  /// or breaks off, kTimedOut, kShuttingDown after an Abort.
  Result<HttpAnswer> Call(std::string_view method, std::string_view target, std::string_view body, Millis limit);

  /// From any thread: the call under way, and all later ones, fail.
  void Abort();

  const Endpoint& endpoint() const { return endpoint_; }
  const std::string& access_token() const { return access_token_; }

 private:
  class Connection;

  const Endpoint endpoint_;
  const std::string access_token_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace tocsin::cli
