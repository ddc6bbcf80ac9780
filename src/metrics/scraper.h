// Scraper: renders the registry on a thread of its own, because a hundred thousand topics make a hundred megabytes of
// text, and the shards' threads have due jobs to serve. Further work on the text, such as compression, runs there too.
// Owned by the composition root; destroyed before the loops that it answers on.
//
// A scrape is read piece by piece: whoever sends the text asks for the next piece when the last one is sent.
//
// Thread-safe. At most kWaitingMax scrapes wait for their beginning, which takes long if there are many topics, and
// Prometheus asks only every few seconds.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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
  /// Drops the pieces that still wait.
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  using Take = std::move_only_function<void(std::string piece, bool last)>;
  using Done = std::move_only_function<void(Status)>;

 private:
  struct State;
  struct Shared;

 public:
  /// One scrape. It may outlive the scraper.
  class Scrape {
   public:
    Scrape(std::shared_ptr<Shared> shared, Registry& registry);
    /// Ends it.
    ~Scrape();
    Scrape(const Scrape&) = delete;
    Scrape& operator=(const Scrape&) = delete;

    /// `take` runs on the scraper's thread, then `done` on `loop`. If too many wait for their beginning, only `done`
    /// runs, with kOverloaded. Not before the last piece is done, nor after the end.
    void Next(Loop& loop, Take take, Done done);

   private:
    const std::shared_ptr<Shared> shared_;
    std::shared_ptr<State> state_;
  };

  std::unique_ptr<Scrape> Begin();

 private:
  void Run();

  Registry& registry_;
  const std::shared_ptr<Shared> shared_;
  std::jthread thread_;
};

}  // namespace tocsin::metrics
