#include "slow_crowd.h"

#include <sys/socket.h>
#include <unistd.h>

namespace tocsin::bench {
namespace {

constexpr size_t kLongAnswer = 256 << 10;  // more than the kernel takes at once for a client that does not read
constexpr int kSmallBuffer = 4096;
constexpr std::string_view kHeaderBegin = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
constexpr std::string_view kBodyBegin =
    "POST /v1/topics/slow/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{\"payload\":\"";

}  // namespace

void SlowCrowd::Prepare(const Endpoint& endpoint) {
  const std::string body =
      fmt::format(R"({{"id":"long","delay_ms":86400000,"payload":"{}"}})", std::string(kLongAnswer, 'x'));
  const auto [stored, text] = Ask(endpoint, MakeRequest("POST", "/v1/topics/slow/jobs", body));
  if (stored != 201) Die("the long job was refused: {} {}", stored, text);
  const auto [found, job] = Ask(endpoint, MakeRequest("GET", "/v1/topics/slow/jobs/long"));
  if (found != 200 || job.size() < kLongAnswer) Die("the long job cannot be read: {} {}", found, job.substr(0, 200));
}

SlowCrowd::SlowCrowd(const Endpoint& endpoint, size_t count, Nanos interval) : endpoint_(endpoint), clients_(count) {
  for (size_t i = 0; i < count; ++i) {
    clients_[i].kind = static_cast<Kind>(i % 3);
    Open(clients_[i]);
  }
  thread_ = std::jthread([this, interval] { Run(interval); });
}

SlowCrowd::~SlowCrowd() {
  thread_.request_stop();
  thread_.join();
  for (const Client& client : clients_) close(client.fd);
}

void SlowCrowd::Open(Client& client) const {
  if (client.fd >= 0) close(client.fd);
  client.fd = Connect(endpoint_, client.kind == Kind::kReader ? kSmallBuffer : 0);
  const std::string begin = client.kind == Kind::kHeader ? std::string(kHeaderBegin)
                            : client.kind == Kind::kBody ? std::string(kBodyBegin)
                                                         : MakeRequest("GET", "/v1/topics/slow/jobs/long");
  if (send(client.fd, begin.data(), begin.size(), MSG_NOSIGNAL) < 0) Die("a slow client cannot begin");
}

bool SlowCrowd::Trickle(const Client& client) {
  char byte = 'a';
  if (client.kind == Kind::kReader) return recv(client.fd, &byte, 1, 0) > 0 || errno == EAGAIN;
  return send(client.fd, &byte, 1, MSG_NOSIGNAL) > 0 || errno == EAGAIN;
}

void SlowCrowd::Run(Nanos interval) {
  const Nanos step = interval / static_cast<Nanos::rep>(clients_.size());
  Instant next = SteadyClock::now();
  for (size_t i = 0; !thread_.get_stop_token().stop_requested(); ++i) {
    Client& client = clients_[i % clients_.size()];
    errno = 0;
    if (!Trickle(client)) {
      Open(client);
      reopened_.fetch_add(1, std::memory_order_relaxed);
    }
    next += step;
    std::this_thread::sleep_until(next);
  }
}

}  // namespace tocsin::bench
