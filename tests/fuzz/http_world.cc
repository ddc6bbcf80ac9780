#include "http_world.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace tocsin::http {
namespace {

constexpr size_t kBodyMax = 64 << 10;
constexpr size_t kBudget = 1 << 20;

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

const Router& SharedRouter() {
  static const Router router = MakeRouter(true);
  return router;
}

Limits SmallLimits() {
  Limits limits;
  limits.payload_bytes = 1 << 10;
  limits.batch = 20;
  limits.topics = 10;
  return limits;
}

}  // namespace

World::Client::~Client() { Close(); }

void World::Client::Close() {
  if (!std::exchange(closed, true)) close(fd_);
}

void World::Client::HalfClose() const {
  if (!closed) shutdown(fd_, SHUT_WR);
}

void World::Client::Write(std::string_view bytes) {
  if (closed) return;
  // The server may have closed, and may not read after a refusal: what does not go is not sent.
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  static_cast<void>(sent);
}

void World::Client::Read() {
  char chunk[16 << 10];
  while (!closed && !ended) {
    const ssize_t got = recv(fd_, chunk, sizeof(chunk), 0);
    if (got > 0) {
      answers.Take({chunk, static_cast<size_t>(got)});
    } else if (got == 0 || errno != EAGAIN) {
      ended = true;
    } else {
      return;
    }
  }
}

World::World()
    : loop_(clock_),
      service_({{.loop = &loop_, .store = &store_}}, clock_, metrics_, SmallLimits()),
      router_(SharedRouter()),
      budget_(kBudget, metrics_),
      scraper_(metrics_),
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
  loop_.Post([this, on] { server_.Admit(on ? MakeTokens() : nullptr); });
}

World::Client& World::Connect() {
  int ends[2];
  TOCSIN_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  Client& client = *clients_.emplace_back(std::make_unique<Client>());
  client.fd_ = ends[0];
  loop_.Post([this, fd = ends[1]] {
    net::Socket socket(loop_.io());
    socket.assign(boost::asio::ip::tcp::v4(), fd);
    server_.Accept(std::move(socket), nullptr);
  });
  return client;
}

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
  while (budget_.bytes() > 0) Wait();  // as above
}

}  // namespace tocsin::http
