#include "http_world.h"

#include "base/result.h"

namespace tocsin::http {
namespace {

constexpr size_t kBodyMax = 64 << 10;
constexpr size_t kBudget = 1 << 20;

const Router& SharedRouter() {
  static const Router router = MakeRouter(true);
  return router;
}

}  // namespace

World::World()
    : loop_(clock_),
      service_({{.loop = &loop_, .store = &store_}}, clock_, metrics_, fuzz::SmallLimits()),
      router_(SharedRouter()),
      budget_(kBudget, metrics_),
      server_({service_, clock_, &clock_, metrics_, scraper_, {"fuzz", 1, clock_.IoNow()}}, router_, budget_, loop_,
              {.body_bytes_max = kBodyMax}) {
  service_.Start();
  Run();
}

World::~World() {
  bool service_stopped = false;
  bool server_drained = false;
  loop_.Post([&] {
    service_.Stop(loop_, [&] { service_stopped = true; });
    server_.Drain([&] { server_drained = true; });
  });
  Run();
  while (!service_stopped || !server_drained) Wait();  // for metrics that a client left without
}

void World::Guard(bool on) {
  loop_.Post([this, on] { server_.Admit(on ? fuzz::MakeTokens() : nullptr); });
}

fuzz::Client& World::Connect() { return *clients_.emplace_back(std::make_unique<fuzz::Client>(server_)); }

void World::Run() {
  for (int quiet = 0; quiet < 2;) {
    for (const auto& client : clients_) client->Read();
    DrainMailbox();
    quiet = loop_.io().poll() > 0 ? 0 : quiet + 1;
  }
}

void World::DrainMailbox() {
  // The thread that renders metrics may have put an answer into the mailbox and not have woken the loop yet: what is
  // posted meanwhile waits for that wake-up, which a mere poll would not.
  bool drained = false;
  loop_.Post([&] { drained = true; });
  while (!drained) loop_.io().run_one();
}

void World::Wait() {
  loop_.io().run_one();
  Run();
}

void World::EndWaiting() {
  loop_.Post([this] { server_.Admit(std::make_shared<const auth::TokenSet>(std::vector<auth::TokenRecord>())); });
  Run();
}

void World::Clear() {
  clients_.clear();
  Run();
  loop_.Post([this] {
    for (const TopicFigures& each : store_.Topics()) {
      service_.DropTopic(loop_, each.topic.name, [](const Status& dropped) { TOCSIN_CHECK(dropped); });
    }
  });
  Run();
  TOCSIN_CHECK(store_.Topics().empty());
  TOCSIN_CHECK(server_.exceptions() == 0);
  while (budget_.bytes() > 0) Wait();  // as above
}

}  // namespace tocsin::http
