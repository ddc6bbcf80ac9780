// Registry: every figure that the server shows, by name and labels, and their Prometheus text. Owned by the composition
// root, which outlives all users.
//
// Thread-safe. Get*, DropSeries and rendering take a lock and are for set-up and scrapes; hot paths keep what Get*
// returned and record into it without a lock (metrics/cells.h).
//
// Invariants: one object for each name and labels, until the series is dropped. A family holds at most `series_max`
// series; further ones share a series whose label values are all "other".
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/cells.h"
#include "metrics/histogram.h"

namespace tocsin::metrics {

struct Label {
  std::string name;
  std::string value;
};
using Labels = std::vector<Label>;

enum class Kind : uint8_t { kCounter, kGauge, kHistogram };

/// Where a collector puts its figures at the moment of a scrape.
class Samples {
 public:
  virtual ~Samples() = default;
  /// `kind` is kCounter or kGauge. Every sample of a name has the same kind and help, and labels of its own.
  virtual void Add(Kind kind, std::string_view name, std::string_view help, const Labels& labels, double value) = 0;
};

/// Runs on the scraping thread; must not call the registry.
using Collector = std::move_only_function<void(Samples&)>;

class Registry {
 public:
  explicit Registry(size_t series_max = 10'000);
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Counters' names end in _total, histograms' in _seconds.
  std::shared_ptr<Counter> GetCounter(std::string_view name, std::string_view help, const Labels& labels = {});
  std::shared_ptr<Gauge> GetGauge(std::string_view name, std::string_view help, const Labels& labels = {});
  std::shared_ptr<Histogram> GetHistogram(std::string_view name, std::string_view help, const Labels& labels = {});

  /// Removes every series with this label (of a dropped topic). Whoever holds one may still record into it.
  void DropSeries(std::string_view label, std::string_view value);

  /// Calls `collector` at each scrape until the registration is destroyed, which waits for a scrape under way. The
  /// registration must not outlive the registry.
  class Registration {
   public:
    Registration() = default;
    Registration(Registry* registry, uint64_t number) : registry_(registry), number_(number) {}
    Registration(Registration&& other) noexcept
        : registry_(std::exchange(other.registry_, nullptr)), number_(other.number_) {}
    Registration& operator=(Registration&& other) noexcept;
    ~Registration();

   private:
    Registry* registry_ = nullptr;
    uint64_t number_ = 0;
  };
  [[nodiscard]] Registration AddCollector(Collector collector);

  /// The text exposition format, version 0.0.4; families by name, series by labels, those of collectors in their order.
  /// Slow with thousands of series (base/worker.h), but holds no lock for long.
  std::string RenderPrometheus();

 private:
  struct Series;
  struct Family;
  /// A copy of a family, so that rendering needs no lock.
  struct FamilyView {
    std::string name;
    Kind kind;
    std::string help;
    std::vector<std::shared_ptr<const Series>> series = {};
  };
  std::vector<FamilyView> Look();
  template <class T>
  std::shared_ptr<T> Get(Kind kind, std::string_view name, std::string_view help, const Labels& labels);

  const size_t series_max_;
  std::atomic<size_t> last_bytes_ = 0;  // of the last rendering, with some room to grow

  std::mutex mutex_;  // guards families_; taken after collect_mutex_ by whoever takes both
  std::map<std::string, Family, std::less<>> families_;

  std::mutex collect_mutex_;  // guards the rest, and is held while collectors run
  std::map<uint64_t, Collector> collectors_;
  uint64_t next_collector_ = 1;
};

}  // namespace tocsin::metrics
