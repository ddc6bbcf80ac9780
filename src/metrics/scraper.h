// Scraper: renders the registry on a thread of its own, because ten thousand topics make tens of megabytes of text and
// the shards' threads have due jobs to serve. Further work on the text, such as compression, runs there too. Owned by
// the composition root; destroyed before the loops that it answers on.
//
// Thread-safe. At most kWaitingMax scrapes wait, because their texts are large and Prometheus asks only every few
// seconds.
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
  /// Drops the scrapes that still wait.
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  using Take = std::move_only_function<void(std::string text)>;
  using Done = std::move_only_function<void(Status)>;

  /// `take` runs on the scraper's thread, then `done` on `loop`. If too many wait, only `done` runs, with kOverloaded.
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
