#include "resp_world.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "auth/token_set.h"
#include "base/check.h"

namespace tocsin::resp {
namespace {

constexpr size_t kShards = 2;
constexpr size_t kBudget = 4 << 20;

std::shared_ptr<const auth::TokenSet> MakeTokens() {
  std::vector<auth::TokenRecord> records;
  for (const std::string_view id : kTokenIds) {
    auth::TokenRecord& record = records.emplace_back();
    record.id = id;
    record.digest = auth::DigestOf(kSecret);
    record.grant.name = id;
    record.grant.prefix = id == kTokenIds[0] ? "" : "t";
    record.grant.scopes.Add(id == kTokenIds[0]   ? auth::Scope::kAdmin
                            : id == kTokenIds[1] ? auth::Scope::kSubmit
                                                 : auth::Scope::kConsume);
  }
  return std::make_shared<const auth::TokenSet>(std::move(records));
}

Limits SmallLimits() {
  Limits limits;
  limits.payload_bytes = 1 << 10;
  limits.batch = kBatch;
  limits.topics = 10;
  return limits;
}

}  // namespace

World::Client::~Client() { Close(); }

void World::Client::Close() {
  if (!std::exchange(closed, true)) close(fd_);
}

void World::Client::HalfClose() {
  if (!closed) shutdown(fd_, SHUT_WR);
  half_closed = true;
}

void World::Client::Write(std::string_view bytes) {
  if (closed || half_closed) return;
  // The server may have closed, and may not read after a refusal: what does not go is not sent.
  const ssize_t went = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (went > 0) sent += bytes.substr(0, static_cast<size_t>(went));
}

void World::Client::Read() {
  char chunk[64 << 10];
  while (!closed && !ended && !deaf) {
    const ssize_t bytes = recv(fd_, chunk, sizeof(chunk), 0);
    if (bytes > 0) {
      got.append(chunk, static_cast<size_t>(bytes));
    } else if (bytes == 0 || errno != EAGAIN) {
      ended = true;
    } else {
      return;
    }
  }
}

World::World() : budget_(kBudget, metrics_) {
  std::vector<Service::ShardParts> shards;
  for (size_t i = 0; i < kShards; ++i) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>(clock_, i > 0));
    shards.push_back({&part.loop, &part.store});
  }
  service_ = std::make_unique<Service>(std::move(shards), clock_, metrics_, SmallLimits());
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

void World::Guard(bool on) { Admit(on ? MakeTokens() : nullptr); }

void World::EndWaiting() { Admit(std::make_shared<const auth::TokenSet>(std::vector<auth::TokenRecord>())); }

void World::Expire() {
  for (const auto& part : parts_) {
    part->loop.Post([&part] { part->server->Expire(); });
  }
}

World::Client& World::Connect() {
  int ends[2];
  TOCSIN_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  Part& part = *parts_[clients_.size() % kShards];
  Client& client = *clients_.emplace_back(std::make_unique<Client>());
  client.fd_ = ends[0];
  part.loop.Post([&part, fd = ends[1]] {
    net::Socket socket(part.loop.io());
    socket.assign(boost::asio::ip::tcp::v4(), fd);
    part.server->Accept(std::move(socket), nullptr);
  });
  return client;
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
  for (const auto& part : parts_) TOCSIN_CHECK(part->store.Topics().empty());
  TOCSIN_CHECK(budget_.bytes() == 0);
}

}  // namespace tocsin::resp
