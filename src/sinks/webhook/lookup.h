// NameLookup: turns the names of receivers into addresses on threads of its own, because getaddrinfo blocks, for many
// seconds if a name server is down: a slow name delays no other name and no loop. Callers that ask for a name that is
// being looked up share the answer.
//
// One for a node; thread-safe. The loops that it answers on outlive it.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
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
  using Done = std::move_only_function<void(const Result<Addresses>&)>;

  explicit NameLookup(Find find) : find_(std::move(find)) {}
  /// Waits for the lookups under way; no `done` runs after it.
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// `done` runs on `loop`, later.
  void Ask(const std::string& name, Loop& loop, Done done);

  static Result<Addresses> FindBySystem(const std::string& name);

 private:
  struct Asker {
    Loop* loop;
    Done done;
  };

  void Work();

  const Find find_;
  std::mutex mutex_;  // protects all below
  std::condition_variable wake_;
  std::map<std::string, std::vector<Asker>> askers_;  // of the names that wait or are being looked up
  std::deque<std::string> waiting_;
  size_t idle_ = 0;  // threads
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tocsin::webhook
