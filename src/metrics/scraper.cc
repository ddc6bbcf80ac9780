#include "metrics/scraper.h"

#include <pthread.h>

namespace tocsin::metrics {

/// Of one scrape: used by the scraper's thread, and by its owner once that has ended.
struct Scraper::State {
  Registry& registry;
  bool begun = false;  // its first piece was asked for
  std::optional<Registry::Rendering> rendering = {};
};

struct Scraper::Shared {
  struct Waiting {
    std::shared_ptr<State> scrape;
    Loop* loop = nullptr;
    Take take = {};  // none: the scrape has ended
    Done done = {};
  };
  std::mutex mutex;  // guards the rest
  std::deque<Waiting> waiting;
  size_t beginning = 0;  // of these
  bool ended = false;
  std::condition_variable changed;
};

Scraper::Scrape::Scrape(std::shared_ptr<Shared> shared, Registry& registry)
    : shared_(std::move(shared)), state_(std::make_shared<State>(registry)) {}

Scraper::Scrape::~Scrape() {
  const std::lock_guard lock(shared_->mutex);
  if (!state_->begun || shared_->ended) return;
  // What it holds is freed on the scraper's thread.
  shared_->waiting.push_back({.scrape = std::move(state_)});
  shared_->changed.notify_all();
}

void Scraper::Scrape::Next(Loop& loop, Take take, Done done) {
  {
    const std::lock_guard lock(shared_->mutex);
    if (state_->begun || shared_->beginning < kWaitingMax) {
      if (!std::exchange(state_->begun, true)) ++shared_->beginning;
      shared_->waiting.push_back({state_, &loop, std::move(take), std::move(done)});
      shared_->changed.notify_all();
      return;
    }
  }
  loop.Post([done = std::move(done)]() mutable {
    done(Fail(Code::kOverloaded, "{} scrapes wait for their metrics already", kWaitingMax));
  });
}

Scraper::Scraper(Registry& registry)
    : registry_(registry), shared_(std::make_shared<Shared>()), thread_([this] { Run(); }) {}

Scraper::~Scraper() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ended = true;
  }
  shared_->changed.notify_all();
  thread_.join();
}

std::unique_ptr<Scraper::Scrape> Scraper::Begin() { return std::make_unique<Scrape>(shared_, registry_); }

void Scraper::Run() {
  pthread_setname_np(pthread_self(), "tocsin-metrics");
  std::unique_lock lock(shared_->mutex);
  while (true) {
    shared_->changed.wait(lock, [this] { return shared_->ended || !shared_->waiting.empty(); });
    if (shared_->ended) break;
    Shared::Waiting next = std::move(shared_->waiting.front());
    shared_->waiting.pop_front();
    const bool begins = next.take && !next.scrape->rendering;
    if (begins) --shared_->beginning;
    lock.unlock();
    if (begins) next.scrape->rendering.emplace(next.scrape->registry);
    if (next.take) {
      std::string piece;
      const bool more = next.scrape->rendering->Next(piece);
      next.take(std::move(piece), !more);
      next.loop->Post([done = std::move(next.done)]() mutable { done({}); });
    }
    next = {};
    lock.lock();
  }
  // What waits is dropped without the lock: it may own scrapes, which take it.
  const std::deque<Shared::Waiting> dropped = std::exchange(shared_->waiting, {});
  lock.unlock();
}

}  // namespace tocsin::metrics
