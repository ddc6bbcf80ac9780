// World: a whole RESP server without its listener, on one thread: real sessions on the ends of socket pairs, the real
// service over two shards with in-memory stores, and a virtual clock. One serves many inputs: between them all
// connections are closed and all topics dropped.
#pragma once

#include <memory>
#include <vector>

#include "core/service.h"
#include "frontend/resp/server.h"
#include "metrics/registry.h"
#include "net/asio_loop.h"
#include "net/budget.h"
#include "spi/contract/memory_store.h"
#include "world.h"

namespace tocsin::resp {

inline constexpr size_t kFrameMax = 16 << 10;

class World {
 public:
  World();
  /// Stops as the server does: what is under way is answered.
  ~World();

  /// Callers need tokens from now on, or need none.
  void Guard(bool on);
  fuzz::Client& Connect();
  /// Everything that can be done now.
  void Run();
  /// Every second the server looks for what is late.
  void Expire();
  /// Reserves that still wait answer empty: their callers are allowed nothing any more.
  void EndWaiting();
  /// Without connections and topics, as at first.
  void Clear();

 private:
  /// A shard with its front end.
  struct Part {
    explicit Part(const Clock& clock, bool late) : loop(clock), store(late ? &loop : nullptr) {}
    net::AsioLoop loop;
    MemoryStore store;
    std::unique_ptr<Server> server;
  };

  void Admit(const std::shared_ptr<const auth::TokenSet>& tokens);

  VirtualClock clock_;
  metrics::Registry metrics_;
  net::Budget budget_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<fuzz::Client>> clients_;
};

}  // namespace tocsin::resp
