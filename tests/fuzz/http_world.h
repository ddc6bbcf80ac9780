// World: a whole server without its listener, on one thread: real sessions on the ends of socket pairs, the real
// service, an in-memory store and a virtual clock. Making one takes longer than most inputs, so one serves many:
// between them all connections are closed and all topics dropped.
#pragma once

#include <memory>
#include <vector>

#include "core/service.h"
#include "frontend/http/router.h"
#include "frontend/http/server.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "net/budget.h"
#include "spi/contract/memory_store.h"
#include "world.h"

namespace tocsin::http {

class World {
 public:
  World();
  /// Stops as the server does: what is under way is answered.
  ~World();

  /// Callers need tokens from now on, or need none.
  void Guard(bool on);
  fuzz::Client& Connect();
  /// Does everything that can be done now, except metrics, which have a thread of their own.
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
  Worker scraper_{"scraper"};
  Server server_;
  std::vector<std::unique_ptr<fuzz::Client>> clients_;
};

}  // namespace tocsin::http
