#include "metrics/scraper.h"

#include <pthread.h>

namespace tocsin::metrics {

Scraper::Scraper(Registry& registry) : registry_(registry), thread_([this] { Run(); }) {}

Scraper::~Scraper() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Scraper::Scrape(Loop& loop, Take take, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < kWaitingMax) {
      waiting_.emplace_back(loop, std::move(take), std::move(done));
      changed_.notify_all();
      return;
    }
  }
  loop.Post([done = std::move(done)]() mutable {
    done(Fail(Code::kOverloaded, "{} scrapes wait for their metrics already", kWaitingMax));
  });
}

void Scraper::Run() {
  pthread_setname_np(pthread_self(), "tocsin-metrics");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (ended_) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    next.take(registry_.RenderPrometheus());
    next.loop.Post([done = std::move(next.done)]() mutable { done({}); });
    lock.lock();
  }
}

}  // namespace tocsin::metrics
