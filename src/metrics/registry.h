// Registry: every figure that the server shows, by name and labels, and their Prometheus text. Owned by the composition
// root, which outlives all users.
//
// Thread-safe. Get*, DropSeries and rendering take a lock and are for set-up and scrapes; hot paths keep what Get*
// returned and record into it without a lock (metrics/cells.h).
//
// Invariants: one object for each name and labels, until the series is dropped. A family holds at most `series_max`
// series; further ones share a series whose label values are all "other". Tables of collectors are as large as what
// they tell of.
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

/// Figures of many things of one kind: a family for each column, with a series for each row.
struct Table {
  struct Column {
    Kind kind;  // kCounter or kGauge
    std::string_view name;
    std::string_view help;
  };
  std::string_view label;
  std::vector<Column> columns = {};
  std::vector<std::string> rows = {};  // values of the label, in their order
  std::vector<double> values = {};     // row by row
};

/// Where a collector puts its figures at the moment of a scrape. The texts of a Table outlive the registry.
class Samples {
 public:
  virtual ~Samples() = default;
  /// A name is in one table at most, and then in no other sample.
  virtual void Add(Table table) = 0;
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

  /// Removes every series whose first label is this one (of a dropped topic). Whoever holds one may still record into
  /// it.
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

  /// The text exposition format, version 0.0.4, piece by piece; families by name, series by labels, those of collectors
  /// in their order. Runs the collectors once, and reads everything else when its piece is made. All renderings that
  /// are under way share what the collectors said last, so one that takes long costs no memory. Holds no lock for long.
  /// Must not outlive the registry.
  class Rendering {
   public:
    explicit Rendering(Registry& registry);
    /// One that was not rendered to its end leaves what the collectors said to the next, because freeing it takes long
    /// if there are many topics. It takes no lock either, because collectors may be running.
    ~Rendering();
    Rendering(const Rendering&) = delete;
    Rendering& operator=(const Rendering&) = delete;

    /// Appends some 256 KiB, or the rest. False at the end. Slow with thousands of series (base/worker.h).
    bool Next(std::string& out);

   private:
    enum class Part : uint8_t { kHead, kCollected, kOwn };

    bool Step(std::string& out);
    void End();
    bool BeginFamily(std::string& out);
    void AppendCollected(std::string& out);
    void AppendOwn(std::string& out);

    Registry& registry_;
    Part part_ = Part::kHead;  // the next step, of the family
    std::string family_;       // or, with kHead, of the one after it
    bool fresh_ = true;        // the part has not begun; otherwise it goes on
    std::string after_;        // behind this row or these labels
    bool ended_ = false;
  };

  /// All of it. Slow with thousands of series.
  std::string RenderPrometheus();

 private:
  struct Series;
  struct Family;
  struct Collected;
  class TextSamples;
  template <class T>
  std::shared_ptr<T> Get(Kind kind, std::string_view name, std::string_view help, const Labels& labels);

  const size_t series_max_;

  std::mutex mutex_;  // guards families_; taken after collect_mutex_ by whoever takes both
  std::map<std::string, Family, std::less<>> families_;

  std::atomic<size_t> renderings_ = 0;  // under way; raised, and acted upon, under collect_mutex_

  std::mutex collect_mutex_;  // guards the rest, and is held while collectors run
  std::map<uint64_t, Collector> collectors_;
  uint64_t next_collector_ = 1;
  std::map<std::string, Collected, std::less<>> collected_;     // by family; empty if there are none
  std::vector<std::unique_ptr<const Table>> collected_tables_;  // that these refer to
};

}  // namespace tocsin::metrics
