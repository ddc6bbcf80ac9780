// Protocol: how one kind of server is spoken to. It makes requests of many jobs and skims their answers; connections,
// pipelining, consumers and the account of every job are the same for all (lane.h, engine.h). One object serves all
// connections of a run, on its one thread.
//
// To add a server: a file with its Protocol, a Make function in drivers.h, and a row in drivers.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "load/options.h"
#include "shared/net.h"

namespace tocsin::bench {

/// Jobs first .. first + count - 1, all due at one moment.
struct Jobs {
  uint32_t first = 0;
  uint32_t count = 0;
  int64_t due_ms = 0;
};

/// What settles a delivery, as text.
struct Token {
  static constexpr size_t kMost = 47;

  explicit Token(std::string_view text) : size_(static_cast<uint8_t>(text.size())) {
    if (text.size() > kMost) Die("a token of {} bytes: {}", text.size(), text);
    text.copy(text_, text.size());
  }
  std::string_view text() const { return {text_, size_}; }

 private:
  uint8_t size_;
  char text_[kMost];
};

enum class Call : uint8_t { kSubmit, kReserve, kAck };

/// A request that is under way, and how far its answer is read.
struct Request {
  Call call = Call::kSubmit;
  uint32_t jobs = 0;   // submitted or acknowledged by it
  uint32_t parts = 1;  // answers to come, if the server sees several commands
  Instant since{};     // when it was sent, or should have been
  uint32_t items = 0;  // elements to come of the answer under way
  bool open = false;   // the head of that answer is read
  uint32_t done = 0;   // jobs stored, delivered or settled, as far as it is read
};

/// Takes what a reserve delivers. Both views are valid during the call.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void Delivered(std::string_view token, std::string_view payload) = 0;
};

/// What a driver does best with, as measured on 2 cores; the command line may say otherwise.
struct Tuning {
  size_t batch = 100;
  size_t connections = 4;
  size_t window = 4;
  size_t consumers = 2;
  size_t reserve = 100;
  double submit_per_s = 50'000;   // about, or less: how far ahead drain sets its due time
  int64_t rounding_ms = 0;        // a due time may be that much later than what was asked for
  bool polls = false;             // no reserve that waits: ask again after a moment
  bool settles_in_place = false;  // a delivery is settled on the connection that reserved it
  bool pushes = false;            // the server delivers by itself: nobody reserves, and Confirmed tells how far it is
  std::string_view address = {};  // without --address
  std::string_view note = {};     // for who reads the figures
};

class Protocol {
 public:
  virtual ~Protocol() = default;

  virtual const Tuning& tuning() const = 0;
  /// Before the load: what the server has to know.
  virtual void Prepare(const Endpoint&) {}

  /// Of a server that pushes: how many jobs its receiver has confirmed.
  virtual size_t Confirmed(const Endpoint&) { return 0; }

  // Each appends a request to `out`; what is returned has `parts` set.
  virtual Request Submit(std::string& out, const Jobs& jobs) = 0;
  virtual Request Reserve(std::string& out, size_t most) = 0;
  virtual Request Ack(std::string& out, const Token* tokens, size_t count) = 0;

  /// Takes from the front of `in` what has come of the answer to `request`. True when it is whole.
  virtual bool Take(std::string_view& in, Request& request, Receiver& receiver) = 0;
};

}  // namespace tocsin::bench
