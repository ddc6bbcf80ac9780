// Lane: one connection with many requests under way. Requests are gathered until Flush; answers are skimmed in their
// order, in the buffer that they were received in. One thread.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "load/protocol.h"
#include "shared/channel.h"

namespace tocsin::bench {

class Lane final : public Poller::Client {
 public:
  class Owner : public Receiver {
   public:
    /// The answer to `request` is whole.
    virtual void Answered(Lane& lane, const Request& request) = 0;
  };

  /// `ca`: as of a Channel.
  Lane(Poller& poller, const Endpoint& endpoint, const std::string& ca, Protocol& protocol, Owner& owner);
  ~Lane() override = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  size_t under_way() const { return requests_.size(); }
  /// When the bytes that are being taken came, by the wall clock.
  int64_t received_ns() const { return received_ns_; }

  void Submit(const Jobs& jobs, Instant since);
  void Reserve(size_t most);
  void Ack(const Token* tokens, size_t count);
  void Flush();
  void OnReady() override;

 private:
  void Push(Request request, Instant since);
  bool Read();
  void TakeAnswers();

  Poller& poller_;
  Protocol& protocol_;
  Owner& owner_;
  Channel channel_;
  bool blocked_ = false;
  std::string out_;
  size_t sent_ = 0;
  std::vector<char> in_;
  size_t begin_ = 0;  // of what is received and not taken
  size_t end_ = 0;
  int64_t received_ns_ = 0;
  std::deque<Request> requests_;
};

}  // namespace tocsin::bench
