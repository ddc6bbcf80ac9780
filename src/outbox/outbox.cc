#include "outbox/outbox.h"

#include <algorithm>
#include <utility>

#include <pthread.h>

#include "base/log.h"

namespace tocsin::outbox {
namespace {

constexpr Millis kIdle{20};      // between two looks at an empty table
constexpr Millis kStandby{100};  // between two questions whether it is this node's turn
constexpr Millis kMeasureEvery{10'000};
constexpr Millis kMeasureSoon{1'000};  // after an answer that took too long
constexpr int kRestsPerLook = 4;       // after a look that takes long: it skips many rows, or many that were removed
constexpr size_t kPassPages = 32;      // of one look, so that the topics that it has to remember are bounded
constexpr Millis kBackoffMin{100};
constexpr Millis kBackoffMax{5'000};

std::shared_ptr<metrics::Counter> RowsCounter(metrics::Registry& metrics, std::string outcome) {
  return metrics.GetCounter("tocsin_outbox_rows_total",
                            "Rows of the outbox that were picked up, by what became of them.",
                            {{"outcome", std::move(outcome)}});
}

/// Whether a server that starts with this error would never work.
bool IsForPeople(Code code) {
  return code == Code::kForbidden || code == Code::kUnsupportedFormat || code == Code::kInvalidArgument;
}

}  // namespace

Outbox::Outbox(Parts parts)
    : parts_(std::move(parts)),
      handover_(parts_.service, parts_.loops, parts_.rules),
      reconnect_(kBackoffMin, kBackoffMax),
      retry_(kBackoffMin, kBackoffMax),
      connected_shown_(parts_.metrics.GetGauge("tocsin_outbox_connected", "1 if the outbox can be read.")),
      active_shown_(parts_.metrics.GetGauge("tocsin_outbox_active", "1 if this node picks up the rows of the outbox.")),
      ahead_shown_(parts_.metrics.GetGauge("tocsin_outbox_clock_ahead_seconds",
                                           "By how much the node's clock is ahead of that of MySQL.")),
      accepted_(RowsCounter(parts_.metrics, "accepted")),
      duplicates_(RowsCounter(parts_.metrics, "duplicate")),
      cancelled_(RowsCounter(parts_.metrics, "cancelled")),
      cancelled_late_(RowsCounter(parts_.metrics, "cancelled_late")),
      refused_(RowsCounter(parts_.metrics, "refused")),
      wait_(parts_.metrics.GetHistogram("tocsin_outbox_wait_seconds",
                                        "From the INSERT of a row until its job was stored.")) {}

Outbox::~Outbox() {
  if (thread_.joinable()) thread_.join();
}

Status Outbox::Check() {
  Status connected = Connect();
  if (connected || !IsForPeople(connected.error().code)) return {};  // Run logs that it is away
  return connected;
}

void Outbox::Start() {
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), "tocsin-mysql");
}

void Outbox::Stop(Task done) {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  stopped_ = std::move(done);
  changed_.notify_one();
}

std::string Outbox::Outage() const {
  const std::lock_guard lock(mutex_);
  return outage_;
}

void Outbox::SetOutage(std::string why) {
  connected_shown_->Set(why.empty() ? 1 : 0);
  const std::lock_guard lock(mutex_);
  outage_ = std::move(why);
}

bool Outbox::Wait(Millis time) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, time, [this] { return stopping_; });
  return !stopping_;
}

void Outbox::Run() {
  Millis pause{0};
  while (Wait(pause)) {
    const Result<Millis> step = Step();
    pause = step ? *step : Recover(step.error());
    active_shown_->Set(has_turn_ ? 1 : 0);
  }
  table_.reset();  // its turn ends with the session
  Task stopped;
  {
    const std::lock_guard lock(mutex_);
    stopped = std::move(stopped_);
  }
  stopped();
}

Millis Outbox::Recover(const Error& error) {
  const LogField fields[] = {{"error", error.message}};
  away_.Begin(parts_.clock.IoNow(), fields);
  SetOutage(error.message);
  // Another transaction was in the way: the session is as good as before.
  const bool stays = table_ != nullptr && !table_->lost() && error.code == Code::kUnavailable;
  pass_ = {};
  if (!stays) {
    table_.reset();
    has_turn_ = false;
  }
  return reconnect_.Next();
}

Status Outbox::Connect() {
  TOCSIN_ASSIGN(table_, Table::Open(parts_.mysql));
  parts_.rules.identity = table_->identity();
  measure_at_ = {};
  if (!std::exchange(connected_once_, true)) LogInfo("{}: connected to the outbox", parts_.mysql.Where());
  return {};
}

Status Outbox::MeasureClocks() {
  if (parts_.clock.IoNow() < measure_at_) return {};
  TOCSIN_ASSIGN(const ClockSample sample, table_->CompareClocks(parts_.clock));
  const bool sharp = skew_.Take(sample);
  const IoTime now = parts_.clock.IoNow();
  measure_at_ = now + (sharp ? kMeasureEvery : kMeasureSoon);
  if (parts_.rules.from_pick_up) return {};  // nothing is compared
  ahead_shown_->Set(std::chrono::duration<double>(skew_.measured()).count());
  if (skew_.correction() == Millis(0)) {
    skewed_.End(now);
  } else {
    const LogField fields[] = {{"ahead_ms", int64_t{skew_.measured().count()}}};
    skewed_.Begin(now, fields);
  }
  return {};
}

Result<Millis> Outbox::Step() {
  if (table_ == nullptr) TOCSIN_TRY(Connect());
  TOCSIN_TRY(SettleAgain());
  TOCSIN_TRY(MeasureClocks());
  if (!has_turn_) {
    TOCSIN_ASSIGN(has_turn_, table_->TakeTurn());
  }
  if (!has_turn_) {
    NoteWell();
    return kStandby;
  }
  const IoTime began = parts_.clock.IoNow();
  auto page = Read();
  if (!page && page.error().code == Code::kOverloaded) {
    NoteOverload("outbox");
    return StepAside();
  }
  if (!page) return std::unexpected(std::move(page).error());
  if (*page == nullptr) return StepAside();
  const Millis took = std::chrono::duration_cast<Millis>(parts_.clock.IoNow() - began);
  TOCSIN_ASSIGN(const Millis wait, PickUp(*page));
  NoteWell();
  if (wait > Millis(0) || (*page)->full) return wait;
  return std::max(kIdle, took * kRestsPerLook);
}

Result<std::shared_ptr<Page>> Outbox::Read() {
  if (pass_.pages == 0) {
    pass_.began = parts_.clock.IoNow();
    pass_.skipped = Skipped(pass_.began);
    handover_.Begin();
  }
  TOCSIN_ASSIGN(auto page, table_->Read(pass_.skipped, parts_.rules.limits.payload_bytes, parts_.budget, pass_.after));
  if (pass_.pages == 0) return page;
  // A row that was committed late is before those that were passed, and a row of this page may have to come after it.
  TOCSIN_ASSIGN(const size_t left, table_->Count(pass_.skipped, pass_.after));
  return left == pass_.left ? std::move(page) : nullptr;
}

void Outbox::NoteWell() {
  away_.End(parts_.clock.IoNow());
  reconnect_.Reset();
  SetOutage({});
}

std::vector<std::string> Outbox::Skipped(IoTime now) const {
  std::vector<std::string> skipped;
  for (const auto& [topic, full] : full_) {
    if (full.until > now) skipped.push_back(topic);
  }
  return skipped;
}

Result<Millis> Outbox::PickUp(const std::shared_ptr<Page>& page) {
  unsettled_ = handover_.Run(page, skew_.correction(), [this] {
    has_turn_ = table_->HasTurn().value_or(false);
    return has_turn_;
  });
  Count(*unsettled_);
  const bool all_skipped = NoteFull(*unsettled_);
  const size_t done = unsettled_->removed.size() + unsettled_->refused.size();
  TOCSIN_TRY(table_->Settle(unsettled_->removed, unsettled_->refused, Table::Try::kFirst));
  const std::optional<Error> trouble = std::exchange(unsettled_, std::nullopt)->trouble;
  const IoTime now = parts_.clock.IoNow();
  if (!trouble && all_skipped && pass_.pages == 0) {
    retry_.Reset();
    if (full_.empty()) waits_.End(now);
    return Millis(0);
  }
  const std::string why = trouble ? trouble->message : "too many topics are full";
  const LogField fields[] = {{"error", why}};
  waits_.Begin(now, fields);
  const bool goes_on = !trouble && has_turn_ && page->full && !page->entries.empty();
  if (!goes_on || ++pass_.pages == kPassPages) return StepAside();
  pass_.after = page->entries.back().row.id;
  pass_.left += page->entries.size() - done;
  return Millis(0);
}

Status Outbox::SettleAgain() {
  if (!unsettled_) return {};
  TOCSIN_TRY(table_->Settle(unsettled_->removed, unsettled_->refused, Table::Try::kAgain));
  unsettled_.reset();
  return {};
}

Result<Millis> Outbox::StepAside() {
  TOCSIN_TRY(table_->GiveTurn());
  has_turn_ = false;
  pass_ = {};
  return retry_.Next();
}

bool Outbox::NoteFull(const HandedOver& done) {
  const IoTime now = parts_.clock.IoNow();
  bool all = true;
  for (const auto& [topic, why] : done.full_topics) {
    const LogField fields[] = {{"error", why}, {"topic", topic}};
    waits_.Begin(now, fields);
    if (full_.size() == kSkippedMax && !full_.contains(topic)) {
      all = false;
      continue;
    }
    Full& full = full_.try_emplace(topic, Full{.backoff = Backoff(kBackoffMin, kBackoffMax)}).first->second;
    full.until = now + full.backoff.Next();
  }
  // Not skipped in this look, and not full: it takes jobs again, if there are any.
  std::erase_if(full_, [this](const auto& each) { return each.second.until <= pass_.began; });
  return all;
}

void Outbox::Count(const HandedOver& done) {
  accepted_->Add(done.accepted.size());
  duplicates_->Add(done.duplicates);
  cancelled_->Add(done.cancelled);
  cancelled_late_->Add(done.cancelled_late);
  refused_->Add(done.refused.size());
  const Time now = parts_.clock.Now().utc - skew_.measured();
  for (const Time created : done.accepted) wait_->Record(std::max(now - created, Millis(0)));
  for (const Refusal& refusal : done.refused) LogRefused(refusal);
}

void Outbox::LogRefused(const Refusal& refusal) {
  const auto left_out = refusals_logged_.Take(std::chrono::steady_clock::now());
  if (!left_out) return;
  const LogField fields[] = {{"id", refusal.row.id}, {"error", refusal.why}, {"others", *left_out}};
  LogEvent(LogLevel::kWarn, "outbox_refused", fields);
}

}  // namespace tocsin::outbox
