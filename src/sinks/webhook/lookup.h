// NameLookup: turns the names of receivers into addresses on threads of its own, because getaddrinfo blocks, for many
// seconds if a name server is down. Callers that ask for a name that is being looked up share the answer.
//
// Names that hang must not keep others waiting, so:
//  - An answer is used again for a short time. Past that it is given once more while the name is looked up again: names
//    in use never wait.
//  - A name that failed rests before it is looked up again, longer each time; meanwhile askers get the error at once.
//  - There are many threads, because one that waits for a name server costs little. Names that failed, or took longer
//    than the deadline, have few of them; those that were found at some time have others than those that never were:
//    when a name server is back, its names do not wait for names that hang. Some threads are for names that were found
//    before, which go first, and some are kept from those.
//  - Of new names, the newest and the oldest go in turn.
//  - A look-up that takes long gives its place to another one, on another thread, as long as there are not too many.
//
// One for a node; thread-safe. The loops that it answers on outlive it. Askers keep the deadline themselves.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/ip/address.hpp>

#include "base/loop.h"
#include "base/result.h"

namespace tocsin::webhook {

using Addresses = std::vector<boost::asio::ip::address>;

class NameLookup {
 public:
  /// Blocks. Runs on several threads at once.
  using Find = std::function<Result<Addresses>(const std::string& name)>;
  /// Runs the task on a new thread. Throws std::system_error if the system has no room for one.
  using Start = std::function<void(std::function<void()> task)>;
  using Done = std::move_only_function<void(const Result<Addresses>&)>;

  struct Times {
    Millis fresh{10'000};    // how long an answer is used without a further look-up
    Millis usable{60'000};   // how long it is used while another look-up is under way
    Millis deadline{3'000};  // of a look-up
    Millis patience{500};    // a look-up that takes longer does not hold up others that wait
    Millis rest_min{1'000};  // after a failure, doubled after each further one; and before an answer is doubted
    Millis rest_max{30'000};
  };

  static constexpr size_t kThreadsMax = 128;

  NameLookup(Find find, Times times, Start start = OnThread);
  /// No `done` runs after it. Does not wait for look-ups that hang: their threads end later, and touch nothing else.
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// `done` runs on `loop`, later.
  void Ask(const std::string& name, Loop& loop, Done done);
  /// No connection could be made to its addresses: the next Ask waits for a look-up, unless the last one was just now.
  void Doubt(const std::string& name);

  const Times& times() const { return times_; }

  static Result<Addresses> FindBySystem(const std::string& name);
  static void OnThread(std::function<void()> task);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Found = std::shared_ptr<const Result<Addresses>>;

  /// How well the last look-up of a name went. In the order of their turns.
  enum class Rank : uint8_t {
    kFound,
    kLost,  // it failed, or took longer than the deadline, and was found at some time
    kNew,
    kSlow,  // as kLost, and it was never found
  };
  static constexpr size_t kRanks = 4;

  struct Asker {
    Loop* loop;
    Done done;
  };
  struct Name {
    void Keep(Found found, bool late, const Times& times, TimePoint now);

    std::vector<Asker> askers;  // they wait for the look-up
    bool busy = false;          // a look-up waits or is under way
    Rank rank = Rank::kNew;
    Found addresses;  // of the last one that did not fail; null: none, or in doubt
    TimePoint found_at{};
    Found error;  // of the last one, if it failed
    Millis rest{0};
    TimePoint rest_until{};
    TimePoint asked_at{};
  };
  struct Running {
    size_t rank;
    TimePoint since;
    bool counts = true;  // for its rank; otherwise it is stuck
  };
  /// Shared with the threads, which may outlive the object.
  struct State {
    State(Find how, const Times& some_times) : find(std::move(how)), times(some_times) {}

    void Work();
    /// Until there is something to look up, or the end.
    void AwaitTurn(std::unique_lock<std::mutex>& lock);
    /// Whose turn it is; kRanks: nobody's.
    size_t NextRank();
    std::string TakeWaiting(size_t rank);
    void FreeStuck(TimePoint now);
    void ForgetOld(TimePoint now);

    const Find find;
    const Times times;
    std::mutex mutex;  // protects all below
    std::condition_variable wake;
    std::condition_variable ended;  // a thread
    std::map<std::string, Name> names;
    size_t forget_at = 0;  // how many names there are when it next forgets some
    std::array<std::deque<std::string>, kRanks> waiting;
    bool newest_next = true;                       // of the new names
    std::array<size_t, kRanks> active{};           // look-ups of each rank that count
    std::deque<std::shared_ptr<Running>> running;  // those that may get stuck, oldest first
    size_t stuck = 0;
    size_t idle = 0;  // threads
    size_t threads = 0;
    bool stopping = false;
  };

  static void Tell(Asker asker, Found found);
  void Begin(const std::string& name, Name& entry);
  /// One more. The error says why there is none.
  Status AddThread();

  const Times times_;
  const Start start_;
  const std::shared_ptr<State> state_;
};

}  // namespace tocsin::webhook
