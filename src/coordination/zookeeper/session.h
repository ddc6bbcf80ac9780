// Session: one session with ZooKeeper, by its C library. The library has two threads of its own; what they call only
// posts to the loop. After a session has expired, its owner drops it and opens another.
//
// Owned by the coordinator, by the only shared_ptr: answers and events of a session that it has dropped are dropped
// too. Threads: everything on the loop's. Answers and events run there as well, never within a call. The worker opens
// and closes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <pthread.h>

#include "base/loop.h"
#include "base/time.h"

namespace tocsin::zookeeper {

/// The thread on which the library's calls block: opening a session resolves names, closing one waits for the threads
/// of the library. Tasks run one after the other; those that wait when it is destroyed run first. Run is thread-safe.
class Worker {
 public:
  Worker() {
    Run([] { pthread_setname_np(pthread_self(), "tocsin-zk"); });
  }
  ~Worker() { pool_.join(); }

  void Run(Task task) { boost::asio::post(pool_, std::move(task)); }

 private:
  boost::asio::thread_pool pool_{1};
};

enum class Event : uint8_t {
  kConnected,     // at first, and again after kDisconnected: then the session has lived on, and its nodes with it
  kDisconnected,  // the library looks for a server by itself
  kExpired,       // the session is over, and so are its nodes
  kRefused,       // the session cannot be opened, or the credentials are not taken
  kChildren,      // what Children read last has changed
};

enum class Outcome : uint8_t {
  kOk,
  kNoNode,  // also if the parent of a new node is missing
  kExists,
  kLost,    // the connection or the session; it may have been done
  kFailed,  // refused
};

struct Answer {
  Outcome outcome = Outcome::kFailed;
  std::string why = {};                 // for people, if it is not kOk
  std::string data = {};                // of Get
  std::vector<std::string> names = {};  // of Children
  bool ours = false;                    // of Look: the node ends with this session
};

struct SessionOptions {
  std::string hosts;
  Millis timeout{};
  std::string credentials;  // "user:password"; empty: none
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using OnEvent = std::move_only_function<void(Event, std::string why)>;
  using OnAnswer = std::move_only_function<void(Answer)>;

  /// `loop` and `worker` outlive it.
  static std::shared_ptr<Session> Open(Loop& loop, Worker& worker, SessionOptions options, OnEvent on_event);
  ~Session();  // closes it, on the worker

  /// What the servers granted; since kConnected.
  Millis timeout() const { return timeout_; }

  /// Each for a session that has been connected.
  void Create(const std::string& path, std::string_view data, bool ephemeral, OnAnswer answer);
  void Delete(const std::string& path, OnAnswer answer);
  void Look(const std::string& path, OnAnswer answer);
  void Get(const std::string& path, OnAnswer answer);
  void Children(const std::string& path, OnAnswer answer);
  /// What is read after its answer is no older than this call.
  void Sync(const std::string& path, OnAnswer answer);

  /// Ends the session and its nodes if a server can be reached; `closed` runs on the loop. The last call.
  void Close(Task closed);

 private:
  struct Request;
  struct Native;

  Session(Loop& loop, Worker& worker, SessionOptions options, OnEvent on_event);
  void Begin();
  void Opened();
  /// Called by the library. An event before Opened waits for it.
  void Arrive(Event event, std::string why, Millis timeout);
  Request* Ask(OnAnswer answer);
  /// `code` is what the library returned for the request. Answers a request that it did not take.
  void Asked(Request* request, int code);

  Loop& loop_;
  Worker& worker_;
  const SessionOptions options_;
  OnEvent on_event_;
  std::shared_ptr<Native> native_;
  bool opened_ = false;
  std::optional<Event> early_;  // the last one before Opened
  Millis timeout_{};
};

}  // namespace tocsin::zookeeper
