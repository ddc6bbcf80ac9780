#include "resp_world.h"

#include "base/result.h"

namespace tocsin::resp {
namespace {

constexpr size_t kShards = 2;
constexpr size_t kBudget = 4 << 20;

}  // namespace

World::World() : budget_(kBudget, metrics_) {
  std::vector<Service::ShardParts> shards;
  for (size_t i = 0; i < kShards; ++i) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>(clock_, i > 0));
    shards.push_back({&part.loop, &part.store});
  }
  service_ = std::make_unique<Service>(std::move(shards), clock_, metrics_, fuzz::SmallLimits());
  const Context context{*service_,
                        clock_,
                        &clock_,
                        metrics_,
                        {"fuzz", kShards, clock_.IoNow(), std::make_shared<const std::atomic<size_t>>(0)}};
  for (const auto& part : parts_) {
    part->server = std::make_unique<Server>(context, budget_, part->loop, Options{.frame_bytes_max = kFrameMax});
  }
  service_->Start();
  Run();
}

World::~World() {
  bool stopped = false;
  size_t drained = 0;
  parts_[0]->loop.Post([&] { service_->Stop(parts_[0]->loop, [&] { stopped = true; }); });
  for (const auto& part : parts_) {
    part->loop.Post([&] { part->server->Drain([&] { ++drained; }); });
  }
  Run();
  TOCSIN_CHECK(stopped && drained == kShards);
  for (const auto& part : parts_) part->server.reset();
}

void World::Admit(const std::shared_ptr<const auth::TokenSet>& tokens) {
  for (const auto& part : parts_) {
    part->loop.Post([&part, tokens] { part->server->Admit(tokens); });
  }
  Run();
}

void World::Guard(bool on) { Admit(on ? fuzz::MakeTokens() : nullptr); }

void World::EndWaiting() { Admit(std::make_shared<const auth::TokenSet>(std::vector<auth::TokenRecord>())); }

void World::Expire() {
  for (const auto& part : parts_) {
    part->loop.Post([&part] { part->server->Expire(); });
  }
}

fuzz::Client& World::Connect() {
  Server& server = *parts_[clients_.size() % kShards]->server;
  return *clients_.emplace_back(std::make_unique<fuzz::Client>(server));
}

void World::Run() {
  for (int quiet = 0; quiet < 2;) {
    for (const auto& client : clients_) client->Read();
    size_t ran = 0;
    for (const auto& part : parts_) ran += part->loop.io().poll();
    quiet = ran > 0 ? 0 : quiet + 1;
  }
}

void World::Clear() {
  clients_.clear();
  Run();
  net::AsioLoop& loop = parts_[0]->loop;
  loop.Post([&] {
    for (const TopicFigures& each : parts_[0]->store.Topics()) {
      service_->DropTopic(loop, each.topic.name, [](const Status& dropped) { TOCSIN_CHECK(dropped); });
    }
  });
  Run();
  for (const auto& part : parts_) {
    TOCSIN_CHECK(part->store.Topics().empty());
    TOCSIN_CHECK(part->server->exceptions() == 0);
  }
  TOCSIN_CHECK(budget_.bytes() == 0);
}

}  // namespace tocsin::resp
