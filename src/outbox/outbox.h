// Outbox: picks up the rows of tocsin_outbox, which applications write inside their own transactions, and makes them
// jobs: an inbound door whose clients speak SQL. docs/mysql.md says what a row means.
//
// Owned by the composition root; outlived by the service, the loops and the budget. Its thread (`tocsin-mysql`) does
// all that blocks. Check, Start and Stop are the main thread's; Outage is thread-safe.
//
// Of all nodes, one picks rows up at a time (outbox/table.h). While the store takes no jobs, it lets the others try.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/episode.h"
#include "base/line_limit.h"
#include "base/loop.h"
#include "base/result.h"
#include "clients/mysql/options.h"
#include "core/service.h"
#include "metrics/registry.h"
#include "net/budget.h"
#include "outbox/handover.h"
#include "outbox/skew.h"
#include "outbox/table.h"

namespace tocsin::outbox {

class Outbox {
 public:
  struct Parts {
    mysql::Options mysql;
    Rules rules;  // without the identity of the table
    Service& service;
    std::vector<Loop*> loops;  // of the shards
    const Clock& clock;
    net::Budget& budget;
    metrics::Registry& metrics;
  };
  explicit Outbox(Parts parts);
  /// After Stop has answered, if it was started.
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /// Before Start: connects once. An error if MySQL can be reached but the outbox cannot be used. It is none that MySQL
  /// is away: that passes.
  Status Check();
  void Start();
  /// `done` runs on the mysql thread when the page that is under way is over.
  void Stop(Task done);

  /// Why rows cannot be picked up at the moment, as far as that is due to MySQL; empty if they can.
  std::string Outage() const;

 private:
  struct Full {
    IoTime until{};
    Backoff backoff;
  };

  /// One look at the table, page by page. A page is followed by another one if it has rows of full topics that cannot
  /// all be skipped; otherwise the next look begins at the first row again.
  struct Pass {
    IoTime began{};
    std::vector<std::string> skipped;
    size_t pages = 0;   // before this one
    int64_t after = 0;  // the last row of the page before
    size_t left = 0;    // rows up to there that stay as they are
  };

  void Run();
  /// One look at the table; how long to wait before the next.
  Result<Millis> Step();
  Status Connect();
  Status MeasureClocks();
  /// Topics that are not to be picked up now.
  std::vector<std::string> Skipped(IoTime now) const;
  /// The next page of the look; null if the look has to end, because rows have come up that should have been before it.
  Result<std::shared_ptr<Page>> Read();
  /// How long to wait until the store takes jobs; 0 if it does.
  Result<Millis> PickUp(const std::shared_ptr<Page>& page);
  /// Removes rows that were handed over, if that has failed before.
  Status SettleAgain();
  /// Whether all topics that are full can be skipped from now on.
  bool NoteFull(const HandedOver& done);
  /// Another node may have room, or reach the store: it has the turn for as long as this answers.
  Result<Millis> StepAside();
  /// MySQL does what it should.
  void NoteWell();
  void Count(const HandedOver& done);
  void LogRefused(const Refusal& refusal);
  /// How long to wait after this error.
  Millis Recover(const Error& error);
  void SetOutage(std::string why);
  bool Wait(Millis time);

  Parts parts_;
  Handover handover_;
  std::unique_ptr<Table> table_;  // null while MySQL is away
  Backoff reconnect_;
  Backoff retry_;  // while the store takes no jobs
  bool connected_once_ = false;
  bool has_turn_ = false;
  std::optional<HandedOver> unsettled_;  // its rows are still in the table; nothing is read before they are settled
  Skew skew_;
  IoTime measure_at_{};
  Pass pass_;
  TextMap<Full> full_;  // by topic; kSkippedMax at most
  LineLimit refusals_logged_{1};

  Episode away_{"mysql_away"};
  Episode waits_{"outbox_waits"};
  Episode skewed_{"mysql_clock_skew"};

  std::shared_ptr<metrics::Gauge> connected_shown_;
  std::shared_ptr<metrics::Gauge> active_shown_;
  std::shared_ptr<metrics::Gauge> ahead_shown_;
  std::shared_ptr<metrics::Counter> accepted_, duplicates_, cancelled_, cancelled_late_, refused_;
  std::shared_ptr<metrics::Histogram> wait_;

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool stopping_ = false;
  std::string outage_;
  Task stopped_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace tocsin::outbox
