// A receiver of webhooks that reads a request, counts its jobs and answers 200; and the load that finds its limit: a
// fixed number of keep-alive connections, each with one request under way.
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "push/push.h"

namespace tocsin::bench {
namespace {

constexpr size_t kConnections = 64;
constexpr size_t kReadBytes = 64 << 10;
constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// The number of a header in lower case, or `otherwise`.
size_t NumberOf(std::string_view head, std::string_view name, size_t otherwise) {
  const size_t at = head.find(name);
  if (at == std::string_view::npos) return otherwise;
  size_t value = otherwise;
  std::from_chars(head.data() + at + name.size(), head.data() + head.size(), value);
  return value;
}

/// One message of HTTP at the front: its head and all its bytes; nothing if it is not whole.
struct Whole {
  std::string_view head;
  size_t bytes = 0;
};
Whole FindWhole(std::string_view in) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const size_t end = in.find(kEnd);
  if (end == std::string_view::npos) return {};
  const std::string_view head = in.substr(0, end + 2);
  const size_t bytes = end + kEnd.size() + NumberOf(head, "\r\ncontent-length: ", 0);
  return in.size() < bytes ? Whole{} : Whole{.head = head, .bytes = bytes};
}

/// A message goes out whole: it is small, and the other side waits for it.
void SendAll(int fd, std::string_view bytes) {
  if (send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
    Die("cannot send: {}", std::strerror(errno));
  }
}

class Peer final : public Poller::Client {
 public:
  Peer(int fd, size_t& jobs) : fd_(fd), jobs_(jobs) {}

  void OnReady() override {
    std::array<char, kReadBytes> chunk;
    const ssize_t bytes = recv(fd_, chunk.data(), chunk.size(), 0);
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes <= 0) return End();
    in_.append(chunk.data(), static_cast<size_t>(bytes));
    for (Whole whole = FindWhole(in_); whole.bytes > 0; whole = FindWhole(in_)) {
      Answer(whole.head);
      in_.erase(0, whole.bytes);
    }
  }

 private:
  void Answer(std::string_view head) {
    if (head.starts_with("GET ")) {
      const std::string count = std::to_string(jobs_);
      return SendAll(fd_, fmt::format("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", count.size(), count));
    }
    jobs_ += NumberOf(head, "\r\ntocsin-batch: ", 1);
    SendAll(fd_, kAnswer);
  }
  void End() {
    close(fd_);
    delete this;
  }

  const int fd_;
  size_t& jobs_;
  std::string in_;
};

class Listener final : public Poller::Client {
 public:
  explicit Listener(Poller& poller) : poller_(poller), fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    const bool open = bind(fd_, raw, size) == 0 && listen(fd_, SOMAXCONN) == 0 && getsockname(fd_, raw, &size) == 0;
    if (!open) Die("cannot listen: {}", std::strerror(errno));
    port_ = ntohs(address.sin_port);
    poller_.Add(fd_, *this);
  }
  uint16_t port() const { return port_; }

  void OnReady() override {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    poller_.Add(fd, *new Peer(fd, jobs_));  // it ends with its connection
  }

 private:
  Poller& poller_;
  const int fd_;
  uint16_t port_ = 0;
  size_t jobs_ = 0;
};

class Sender final : public Poller::Client {
 public:
  Sender(Poller& poller, const Endpoint& endpoint, std::string_view request, size_t& to_send, size_t& confirmed)
      : fd_(Connect(endpoint)), request_(request), to_send_(to_send), confirmed_(confirmed) {
    poller.Add(fd_, *this);
    Send();
  }
  ~Sender() override { close(fd_); }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void OnReady() override {
    std::array<char, 4096> chunk;
    const ssize_t bytes = recv(fd_, chunk.data(), chunk.size(), 0);
    if (bytes < 0 && errno == EAGAIN) return;
    if (bytes <= 0) Die("the receiver closed a connection");
    in_.append(chunk.data(), static_cast<size_t>(bytes));
    if (FindWhole(in_).bytes == 0) return;
    if (!in_.starts_with("HTTP/1.1 200 ")) Die("the receiver answered {}", in_);
    in_.clear();
    ++confirmed_;
    Send();
  }

 private:
  void Send() {
    if (to_send_ == 0) return;
    --to_send_;
    SendAll(fd_, request_);
  }

  const int fd_;
  const std::string_view request_;
  size_t& to_send_;
  size_t& confirmed_;
  std::string in_;
};

/// What the receiver has counted.
size_t Count(const Endpoint& endpoint) {
  const int fd = Connect(endpoint);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  SendAll(fd, "GET / HTTP/1.1\r\n\r\n");
  std::array<char, 4096> chunk;
  const ssize_t bytes = recv(fd, chunk.data(), chunk.size(), 0);
  close(fd);
  if (bytes <= 0) Die("the receiver does not tell its count");
  const std::string_view answer(chunk.data(), static_cast<size_t>(bytes));
  return NumberOf(answer, "\r\n\r\n", 0);
}

/// As long as the server's own.
std::string MakeRequest(const Endpoint& endpoint, std::string_view payload) {
  return fmt::format(
      "POST / HTTP/1.1\r\nhost: {}:{}\r\nuser-agent: push_bench/1\r\ncontent-type: application/octet-stream\r\n"
      "content-length: {}\r\nwebhook-id: bench/123456789012345\r\nwebhook-timestamp: 1700000000\r\n"
      "tocsin-topic: bench\r\ntocsin-job-id: 123456789012345\r\ntocsin-attempt: 1\r\n"
      "tocsin-due-ms: 1700000000000\r\ntocsin-token: {}\r\n\r\n{}",
      endpoint.host, endpoint.port, payload.size(), TokenText(SampleJob(payload).token), payload);
}

}  // namespace

void Receive(const PushOptions& options) {
  Poller poller;
  const Listener listener(poller);
  std::printf("127.0.0.1:%u\n", listener.port());
  std::fflush(stdout);
  const Instant end = SteadyClock::now() + std::chrono::seconds(options.time_limit_s);
  while (SteadyClock::now() < end) poller.Turn(end);
}

Json LoadWebhook(const PushOptions& options) {
  const Endpoint endpoint = Endpoint::Parse(options.address);
  const std::string request = MakeRequest(endpoint, std::string(options.payload, 'x'));
  Poller poller;
  size_t to_send = options.jobs;
  size_t confirmed = 0;
  PushMeter meter(options);
  std::vector<std::unique_ptr<Sender>> senders;
  for (size_t i = 0; i < (options.in_flight > 0 ? options.in_flight : kConnections); ++i) {
    senders.push_back(std::make_unique<Sender>(poller, endpoint, request, to_send, confirmed));
  }
  while (confirmed < options.jobs) {
    poller.Turn(SteadyClock::now() + std::chrono::milliseconds(100));
    meter.Check(confirmed);
  }
  Json result = meter.Result();
  return result.Count("at_receiver", Count(endpoint));
}

}  // namespace tocsin::bench
