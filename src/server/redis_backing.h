// RedisBacking: stores on a Redis that many nodes share. Each shard has a client of its own on its own loop, and so has
// the coordinator on the main loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clients/redis/client.h"
#include "server/backing.h"
#include "server/ownership.h"
#include "storage/redis/store.h"

namespace tocsin {

class RedisBacking final : public Backing {
 public:
  explicit RedisBacking(BackingParts parts) : parts_(std::move(parts)) {}
  ~RedisBacking() override;

  Status Open(const std::function<bool()>& go_on) override;
  Store& store(uint32_t shard) override { return *shards_[shard].store; }
  SharedStore* shared_store(uint32_t shard) override { return shards_[shard].store.get(); }
  std::shared_ptr<Cluster> cluster() override { return ownership_; }
  std::string Describe() const override;
  void Start() override { ownership_->Start(); }
  void Leave(Task done) override { ownership_->Leave(std::move(done)); }
  Status Close() override;

 private:
  struct Part {
    std::unique_ptr<redis::Client> client;
    std::unique_ptr<redis::RedisStore> store;
    bool open = false;
    bool asked = false;
    std::optional<Error> error;  // of the last try to open
  };

  Status MakeStores(redis::Options options);
  Status OpenStores(const std::function<bool()>& go_on);
  void AskToOpen();
  Status CheckServers();
  Result<std::unique_ptr<Coordinator>> MakeCoordinator(redis::Options options);
  /// What keeps the stores from opening.
  std::string Trouble() const;
  /// Runs the shards' loops on this thread for a moment, or until `done`: their own threads do not run yet.
  template <class Until>
  void Drive(Millis most, Until done);

  const BackingParts parts_;
  std::vector<Part> shards_;
  std::shared_ptr<Ownership> ownership_;
  bool closed_ = false;
};

}  // namespace tocsin
