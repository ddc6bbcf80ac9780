// World: a whole server but for its listener, on one thread: real sessions on the ends of socket pairs, the real
// service, an in-memory store and a virtual clock. To make one takes longer than most inputs, so that one serves many:
// between them all connections are closed and all topics dropped.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "auth/token_set.h"
#include "core/service.h"
#include "frontend/http/handlers.h"
#include "frontend/http/server.h"
#include "http_answers.h"
#include "metrics/registry.h"
#include "metrics/scraper.h"
#include "net/asio_loop.h"
#include "net/budget.h"
#include "spi/contract/memory_store.h"

namespace tocsin::http {

// Of the tokens that a guarded world knows: one may do everything, one submits and one consumes where topics begin with
// t.
inline constexpr std::string_view kSecret = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
inline constexpr std::string_view kTokenIds[] = {"aaaaaaaa", "bbbbbbbb", "cccccccc"};

class World {
 public:
  /// A client's end of a connection.
  class Client {
   public:
    ~Client();
    /// Everything that the server has sent so far; whether it may send more.
    void Read();
    void Write(std::string_view bytes);
    void HalfClose() const;
    void Close();

    Answers answers;
    bool ended = false;  // by the server
    bool closed = false;

   private:
    friend class World;
    int fd_ = -1;
  };

  World();
  /// Stops as the server does: what is under way is answered.
  ~World();

  /// Callers need tokens from now on, or need none.
  void Guard(bool on);
  Client& Connect();
  /// Everything that can be done now, but for metrics, which a thread of their own renders.
  void Run();
  /// Waits for something to do, and does it.
  void Wait();
  /// Long polls that still wait answer empty: their callers are allowed nothing any more.
  void EndWaiting();
  /// Without connections and topics, as at first.
  void Clear();

 private:
  void DrainMailbox();

  VirtualClock clock_;
  metrics::Registry metrics_;
  net::AsioLoop loop_;
  MemoryStore store_;
  Service service_;
  const Router& router_;
  net::Budget budget_;
  metrics::Scraper scraper_;
  Server server_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace tocsin::http
