// Scraper: renders the registry on a thread of its own, because ten thousand topics make tens of megabytes of text and
// a shard's thread has due jobs to serve. Owned by the composition root; destroyed before the loops that it answers on.
//
// Thread-safe. At most kWaitingMax scrapes wait: their texts are large, and one scraper asks every few seconds.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/loop.h"
#include "base/result.h"
#include "metrics/registry.h"

namespace tocsin::metrics {

class Scraper {
 public:
  static constexpr size_t kWaitingMax = 4;

  explicit Scraper(Registry& registry);
  /// What still waits is dropped.
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  /// `done` runs on `loop`, with the text or kOverloaded.
  void Scrape(Loop& loop, std::move_only_function<void(Result<std::string>)> done);

 private:
  struct Waiting {
    Loop& loop;
    std::move_only_function<void(Result<std::string>)> done;
  };
  void Run();

  Registry& registry_;
  std::mutex mutex_;  // guards the next two
  std::deque<Waiting> waiting_;
  bool ended_ = false;
  std::condition_variable changed_;
  std::jthread thread_;
};

}  // namespace tocsin::metrics
