// The client side of HTTP, as cheap as it gets: requests are bytes made beforehand, and of an answer only the status
// and the length are read. One thread with one Poller; a Connection has one request under way at most.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "shared/net.h"

namespace tocsin::bench {

/// Of http://127.0.0.1:7420
Endpoint ParseUrl(std::string_view url);

/// A request as it goes over the wire.
std::string MakeRequest(std::string_view method, std::string_view path, std::string_view body = {});

struct Answer {
  int status = 0;
  std::string_view body;  // until the handler returns
  Nanos took{};           // since Send
};

class Connection final : public Poller::Client {
 public:
  using Handler = std::function<void(Connection&, const Answer&)>;

  Connection(Poller& poller, const Endpoint& endpoint);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool busy() const { return busy_; }
  /// `request` lives until the answer. `handler` may send the next request.
  void Send(std::string_view request, const Handler& handler);
  void OnReady() override;

 private:
  void Write();
  bool Read();
  void TakeAnswer();

  Poller& poller_;
  const int fd_;
  bool busy_ = false;
  bool blocked_ = false;
  std::string_view out_;
  std::string in_;
  size_t answer_bytes_ = 0;  // head and body of the answer under way; 0 until its head is here
  size_t head_bytes_ = 0;
  const Handler* handler_ = nullptr;
  Instant sent_at_;
};

/// One request and its answer, on a connection of its own: for questions beside the load.
std::pair<int, std::string> Ask(const Endpoint& endpoint, std::string_view request);

}  // namespace tocsin::bench
