#include "load/probe_server.h"

#include <cstring>
#include <deque>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shared/times.h"

namespace tocsin::bench {
namespace {

using probe::Head;
using probe::TokenNumber;

constexpr size_t kReadBytes = 256 << 10;
constexpr size_t kChunkPlaces = 8192;

int Listen(Endpoint& endpoint) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, 128) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Die("cannot listen: {}", std::strerror(errno));
  }
  endpoint = {.host = "127.0.0.1", .port = ntohs(address.sin_port)};
  return fd;
}

}  // namespace

class ProbeServer::Listener final : public Poller::Client {
 public:
  explicit Listener(ProbeServer& server) : server_(server) {}
  void OnReady() override { server_.Accept(); }

 private:
  ProbeServer& server_;
};

class ProbeServer::Wake final : public Poller::Client {
 public:
  explicit Wake(ProbeServer& server) : server_(server) {}
  void OnReady() override {
    uint64_t count = 0;
    if (read(server_.wake_fd_, &count, sizeof(count)) > 0) server_.Synced();
  }

 private:
  ProbeServer& server_;
};

/// A connection: answers to submits and acks leave in order, each when the log is synced up to its record. A reserve is
/// answered at once, so a client does not mix it with them. One that waits holds up what is behind it; so does a full
/// log.
class ProbeServer::Session final : public Poller::Client {
 public:
  Session(ProbeServer& server, int fd) : server_(server), fd_(fd), in_(2 * kReadBytes) {}
  ~Session() override { close(fd_); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  uint32_t waits_for() const { return waits_for_; }

  void OnReady() override {
    if (in_.size() - end_ < kReadBytes) {
      std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
      if (in_.size() - end_ < kReadBytes) in_.resize(2 * in_.size());
    }
    const ssize_t got = recv(fd_, in_.data() + end_, in_.size() - end_, 0);
    if (got <= 0) return Close(got);
    end_ += static_cast<size_t>(got);
    Work();
  }

  void Work() {
    Flush();
    while (waits_for_ == 0 && end_ - begin_ >= sizeof(Head)) {
      const auto head = probe::ReadRaw<Head>(in_.data() + begin_);
      if (end_ - begin_ < sizeof(head) + head.bytes) break;
      if (!Handle(head, {in_.data() + begin_ + sizeof(head), head.bytes})) break;
      begin_ += sizeof(head) + head.bytes;
    }
    server_.log_.Commit();
  }

  std::string& Answer(const Head& head) {
    waits_for_ = 0;
    probe::AppendRaw(out_, head);
    return out_;
  }
  void Flush() {
    for (; !pending_.empty() && pending_.front().at <= server_.log_.synced(); pending_.pop_front()) {
      probe::AppendRaw(out_, pending_.front().head);
    }
    while (sent_ < out_.size()) {
      const ssize_t sent = send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EAGAIN && !std::exchange(blocked_, true)) server_.poller_.WantWrite(fd_, *this, true);
        return;
      }
      sent_ += static_cast<size_t>(sent);
    }
    out_.clear();
    sent_ = 0;
    if (std::exchange(blocked_, false)) server_.poller_.WantWrite(fd_, *this, false);
  }

 private:
  struct Pending {
    uint64_t at;  // in the log
    Head head;
  };

  bool Handle(const Head& head, std::string_view body) {
    if (head.kind == probe::kReserve) {
      if (!server_.Deliver(*this, head.count)) waits_for_ = head.count;
      return true;
    }
    if (head.kind == probe::kSubmit ? !server_.Submit(head, body) : !server_.Ack(head, body)) return false;
    pending_.push_back({.at = server_.log_.appended(), .head = {.kind = head.kind, .count = head.count}});
    return true;
  }

  void Close(ssize_t got) {
    if (got < 0 && errno == EAGAIN) return Work();
    waits_for_ = 0;
    close(std::exchange(fd_, -1));
  }

  ProbeServer& server_;
  int fd_;
  std::vector<char> in_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::string out_;
  size_t sent_ = 0;
  bool blocked_ = false;
  std::deque<Pending> pending_;
  uint32_t waits_for_ = 0;  // jobs of a reserve that found none
};

ProbeServer::ProbeServer(const std::string& folder, size_t payload)
    : payload_(payload),
      listener_fd_(Listen(endpoint_)),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      log_(folder, wake_fd_),
      listener_(std::make_unique<Listener>(*this)),
      wake_(std::make_unique<Wake>(*this)) {
  poller_.Add(listener_fd_, *listener_);
  poller_.Add(wake_fd_, *wake_);
  thread_ = std::thread([this] { Serve(); });
}

ProbeServer::~ProbeServer() {
  stopping_ = true;
  const uint64_t one = 1;
  if (write(wake_fd_, &one, sizeof(one)) < 0) Die("eventfd: {}", std::strerror(errno));
  thread_.join();
  close(listener_fd_);
}

void ProbeServer::Serve() {
  prctl(PR_SET_NAME, "probe");
  prctl(PR_SET_TIMERSLACK, 1);
  while (!stopping_) {
    const int64_t wait_ns = due_.empty() ? 1'000'000'000 : due_.begin()->first * 1'000'000 - WallNanos();
    const bool somebody_waits = std::ranges::any_of(sessions_, [](const auto& each) { return each->waits_for() > 0; });
    poller_.Turn(SteadyClock::now() + Nanos(somebody_waits ? wait_ns : 1'000'000'000));
    DeliverToWaiting();
  }
}

void ProbeServer::Accept() {
  const int fd = accept4(listener_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sessions_.push_back(std::make_unique<Session>(*this, fd));
  poller_.Add(fd, *sessions_.back());
}

void ProbeServer::Synced() {
  log_.Commit();
  for (const auto& session : sessions_) session->Work();
}

uint32_t ProbeServer::Keep(std::string_view payload) {
  uint32_t place = places_;
  if (free_.empty()) {
    if (places_ % kChunkPlaces == 0) chunks_.push_back(std::make_unique<char[]>(kChunkPlaces * payload_));
    ++places_;
  } else {
    place = free_.back();
    free_.pop_back();
  }
  payload.copy(&chunks_[place / kChunkPlaces][place % kChunkPlaces * payload_], payload_);
  return place;
}

bool ProbeServer::Submit(const Head& head, std::string_view payloads) {
  if (!log_.HasRoom(head.count, payload_ + sizeof(head.due_ms) + sizeof(uint64_t))) return false;
  std::vector<uint32_t>& places = due_[head.due_ms];
  for (; !payloads.empty(); payloads.remove_prefix(payload_)) {
    const std::string_view payload = payloads.substr(0, payload_);
    const uint64_t number = places_;
    log_.Append({{reinterpret_cast<const char*>(&number), sizeof(number)},
                 {reinterpret_cast<const char*>(&head.due_ms), sizeof(head.due_ms)},
                 payload});
    places.push_back(Keep(payload));
  }
  return true;
}

bool ProbeServer::Ack(const Head& head, std::string_view tokens) {
  if (!log_.HasRoom(head.count, sizeof(TokenNumber) + sizeof(uint32_t))) return false;
  for (; !tokens.empty(); tokens.remove_prefix(sizeof(TokenNumber))) {
    log_.Append(
        {{reinterpret_cast<const char*>(&head.kind), sizeof(head.kind)}, tokens.substr(0, sizeof(TokenNumber))});
    free_.push_back(static_cast<uint32_t>(probe::ReadRaw<TokenNumber>(tokens.data())));
  }
  return true;
}

bool ProbeServer::Deliver(Session& session, uint32_t most) {
  if (due_.empty() || due_.begin()->first > WallNanos() / 1'000'000) return false;
  std::vector<uint32_t>& places = due_.begin()->second;
  const auto count = static_cast<uint32_t>(std::min<size_t>(most, places.size()));
  std::string& out = session.Answer({.kind = probe::kReserve,
                                     .count = count,
                                     .payload = static_cast<uint32_t>(payload_),
                                     .bytes = static_cast<uint32_t>(count * (sizeof(TokenNumber) + payload_))});
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t place = places.back();
    places.pop_back();
    probe::AppendRaw(out, TokenNumber{place});
    out.append(&chunks_[place / kChunkPlaces][place % kChunkPlaces * payload_], payload_);
  }
  if (places.empty()) due_.erase(due_.begin());
  session.Flush();
  return true;
}

void ProbeServer::DeliverToWaiting() {
  for (const auto& session : sessions_) {
    if (session->waits_for() == 0) continue;
    if (!Deliver(*session, session->waits_for())) return;
    session->Work();
  }
}

}  // namespace tocsin::bench
