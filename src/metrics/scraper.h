// Scraper: renders the registry on a thread of its own, because ten thousand topics make tens of megabytes of text and
// a shard's thread has due jobs to serve. What else is to be done with a text, packing it above all, is done there too.
// Owned by the composition root; destroyed before the loops that it answers on.
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

  using Take = std::move_only_function<void(std::string text)>;
  using Done = std::move_only_function<void(Status)>;

  /// `take` runs on the scraper's thread, then `done` on `loop`; `done` alone, with kOverloaded, where too many wait.
  void Scrape(Loop& loop, Take take, Done done);

 private:
  struct Waiting {
    Loop& loop;
    Take take;
    Done done;
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
