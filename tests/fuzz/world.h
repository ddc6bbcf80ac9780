// What the worlds of both doors' fuzz targets share: clients on the ends of socket pairs, access tokens, small limits.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "auth/token_set.h"
#include "core/service.h"
#include "net/connection.h"

namespace tocsin::fuzz {

// The access tokens of a guarded world: the first may do everything, the second submits and the third consumes, both in
// topics that begin with t.
inline constexpr std::string_view kSecret = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
inline constexpr std::string_view kTokenIds[] = {"aaaaaaaa", "bbbbbbbb", "cccccccc"};
inline constexpr size_t kBatch = 20;

std::shared_ptr<const auth::TokenSet> MakeTokens();
Limits SmallLimits();

/// A client's end of a connection.
class Client {
 public:
  /// Connects to the door, which accepts when its loop runs.
  explicit Client(net::Door& door);
  ~Client() { Close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Takes everything that the server has sent, unless it is deaf.
  void Read();
  void Write(std::string_view bytes);
  void HalfClose();
  void Close();

  std::string sent;
  std::string got;
  bool deaf = false;  // it does not read
  bool half_closed = false;
  bool ended = false;  // by the server
  bool closed = false;

 private:
  int fd_ = -1;
};

}  // namespace tocsin::fuzz
