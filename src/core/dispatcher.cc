#include "core/dispatcher.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "base/result.h"
#include "core/node.h"
#include "core/shard.h"
#include "core/validate.h"
#include "spi/delivery_headers.h"

namespace tocsin {
namespace {

using std::chrono::seconds;

constexpr size_t kClaimMax = 1000;
constexpr size_t kSettlingMax = 1000;
constexpr size_t kSettleMax = 10'000;
constexpr size_t kLateMax = 10'000;
constexpr size_t kProbesMax = 8;
constexpr auto kProbeGrace = std::chrono::seconds(1);  // beyond the sink's own timeout
constexpr Millis kExtendEvery{1'000};
constexpr Millis kSettleAgainAfter{200};
constexpr seconds kClaimAgainAfter{1};
constexpr seconds kOpenAgainAfter{5};
constexpr seconds kStopWithin{2};
constexpr size_t kTryMax = 100;   // jobs of one try of a receiver that cannot be reached
constexpr Millis kPauseMin{200};  // between two tries
constexpr Millis kPauseSoon{1'000};
constexpr Millis kPauseMax{5'000};    // if nothing was heard for kQuiet
constexpr Millis kUnsentRest{1'000};  // of a job that did not get through
constexpr seconds kQuiet{60};
constexpr uint64_t kRejectionsLogged = 5;  // in a row: the receiver fails, and not only one job
constexpr seconds kPrompt{1};              // a receiver that answers within this has more room

/// The jobs are destroyed before their room is given back.
struct Held {
  std::shared_ptr<JobRoom> room;
  const JobBatch jobs;
};

/// Errors that pass: the same settlement may work later.
bool Passes(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kOverloaded || error.code == Code::kStorageFull;
}
bool Passes(SettleOutcome outcome) {
  return outcome == SettleOutcome::kOverloaded || outcome == SettleOutcome::kUnavailable;
}

size_t BytesOf(const JobBatch& batch) {
  size_t bytes = 0;
  for (const JobView& job : batch.jobs) {
    bytes += job.own_id.size() + job.key.size() + job.payload.size();
    for (const HeaderView& header : job.headers) bytes += header.name.size() + header.value.size();
  }
  return bytes;
}

/// The longest prefix of whole characters that a store takes.
std::string_view Shortened(std::string_view reason) {
  if (reason.size() <= kReasonBytesMax) return reason;
  size_t end = kReasonBytesMax;
  while (end > 0 && (static_cast<unsigned char>(reason[end]) & 0xC0) == 0x80) --end;
  return reason.substr(0, end);
}

}  // namespace

Dispatcher::Figures::Figures(metrics::Registry& registry, const Topic& topic) {
  const metrics::Labels labels{{"topic", topic.name}, {"sink", topic.delivery.sink}};
  const auto outcome = [&](std::string name) {
    metrics::Labels with = labels;
    with.push_back({"outcome", std::move(name)});
    return registry.GetCounter("tocsin_push_outcomes_total",
                               "Jobs that a sink answered for: confirmed, to retry, refused for good, or stale because "
                               "their lease had ended.",
                               with);
  };
  in_flight =
      registry.GetGauge("tocsin_push_in_flight", "Jobs that were claimed for a sink and are not settled yet.", labels);
  broken = registry.GetGauge("tocsin_push_broken", "1 while the sink cannot be opened; the log says why.", labels);
  failures = registry.GetGauge("tocsin_push_failures_in_a_row",
                               "Jobs that the sink did not confirm since it last confirmed one.", labels);
  unreachable = registry.GetGauge("tocsin_push_unreachable",
                                  "1 while jobs wait for a receiver that cannot be reached; the log says why.", labels);
  outcomes = {outcome("confirmed"), outcome("retry"), outcome("refused")};
  stale = outcome("stale");
  seconds = registry.GetHistogram("tocsin_push_seconds", "From handing a job to a sink to the sink's answer.", labels);
  lateness =
      registry.GetHistogram("tocsin_push_lateness_seconds",
                            "From when the attempt that was confirmed was due to the receiver's confirmation.", labels);
}

void Dispatcher::Want(std::optional<Topic> topic) {
  wanted_ = std::move(topic);
  open_at_ = IoTime::min();
  if (wanted_) {
    lease_ = wanted_->lease;
  } else {
    renew_ = true;  // also if it is wanted again before the next turn: that is another topic
  }
}

void Dispatcher::Stop() {
  give_up_at_ = node_.clock.IoNow() + kStopWithin;
  wanted_.reset();
  Schedule();
}

void Dispatcher::Schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  home_.RunSoon([this] { Turn(); });
}

void Dispatcher::Tick() {
  wake_ = IoTime::max();
  Schedule();
}

void Dispatcher::Turn() {
  const IoTime now = node_.clock.IoNow();
  if (closed_) DropSink();
  ExpireProbes(now);
  SettleAnswers(now);
  Extend(now);
  scheduled_ = false;  // the rest of this turn sees what was answered so far
  if (Delivers() && (!wanted_ || renew_ || wanted_->delivery != delivery_)) Close();
  if (sink_ == nullptr && wanted_) Open(now);
  if (Delivers() || broken_ || !wanted_) {
    for (Done<Probed>& probe : std::exchange(early_probes_, {})) Probe(std::move(probe));
  }
  if (Delivers()) Claim(now);
  if (figures_) figures_->in_flight->Set(static_cast<double>(held_));
  if (figures_) figures_->failures->Set(static_cast<double>(failures_));
  if (!Ended()) return WakeBy(NextWake(now));
  if (figures_) figures_->broken->Set(0);
  if (figures_) figures_->failures->Set(0);
  if (figures_) figures_->unreachable->Set(0);
  if (give_up_at_ == IoTime::max()) LogWell(now);  // the topic is pushed no more; at a stop nothing has changed
  home_.MoveWake(*this, std::exchange(wake_, IoTime::max()), IoTime::max());
  home_.Ended(topic_);  // last: destroys this
}

bool Dispatcher::Ended() const {
  return !wanted_ && sink_ == nullptr && reserve_ == 0 && batches_.empty() && failed_.empty() && settling_ == 0 &&
         !scheduled_;
}

IoTime Dispatcher::NextWake(IoTime now) const {
  IoTime next = IoTime::max();
  if (!probings_.empty()) next = std::min(next, probings_.begin()->second.until);
  if (!failed_.empty()) next = std::min(next, retry_at_);
  if (!batches_.empty()) next = std::min(next, extend_at_);
  if (sink_ == nullptr && wanted_) next = std::min(next, open_at_);
  if (Delivers() && reserve_ == 0 && claim_at_ > now) next = std::min(next, claim_at_);
  return next;
}

void Dispatcher::WakeBy(IoTime at) {
  if (at >= wake_) return;
  home_.MoveWake(*this, std::exchange(wake_, at), at);
}

void Dispatcher::Open(IoTime now) {
  if (now < open_at_) return;
  if (figures_) figures_->broken->Set(0);
  if (figures_) figures_->unreachable->Set(0);
  if (figures_) figures_->in_flight->Set(0);  // the next sink's figure shows what is left of this one
  if (figures_) figures_->failures->Set(0);
  failures_ = rejections_ = 0;
  LogWell(now);
  figures_.emplace(node_.metrics, *wanted_);
  Result<std::unique_ptr<Sink>> sink = Fail(Code::kInvalidArgument, "this server has no sinks");
  if (node_.sinks != nullptr) sink = node_.sinks->Open(*wanted_, home_.loop());
  figures_->broken->Set(sink ? 0 : 1);
  if (!sink) {
    if (!broken_ || broken_->message != sink.error().message) {
      LogWarn("topic {}: the sink {} cannot be opened, trying every {} s: {}", topic_, wanted_->delivery.sink,
              kOpenAgainAfter.count(), sink.error().message);
    }
    const Moment wall = node_.clock.Now();
    if (!broken_) broken_at_ = wall.steady;
    broken_ = std::move(sink).error();
    last_error_ = Shortened(broken_->message);
    last_error_at_ = wall.utc;
    open_at_ = now + kOpenAgainAfter;
    return;
  }
  if (broken_) LogInfo("topic {}: the sink {} is open now", topic_, wanted_->delivery.sink);
  broken_.reset();
  renew_ = false;
  sink_ = std::move(*sink);
  delivery_ = wanted_->delivery;
  in_flight_max_ = static_cast<size_t>(delivery_.Number("in_flight"));
  rate_ = RateLimit(delivery_.Number("rate"), now);
  claim_at_ = IoTime::min();
  outage_max_ = Millis(delivery_.Number("outage_ms"));
  silent_since_ = IoTime::max();
  unsent_since_ = IoTime::max();
  away_ = false;
  pause_ = Millis(0);
}

void Dispatcher::Close() {
  closing_ = true;
  if (reserve_ != 0) home_.CancelReserve(reserve_);
  sink_->Close([this] {
    closed_ = true;
    Schedule();
  });
}

void Dispatcher::DropSink() {
  TOCSIN_CHECK(out_ == 0 && probes_ == 0);
  sink_.reset();
  closing_ = false;
  closed_ = false;
}

size_t Dispatcher::Room() const {
  // The receiver has answered for these and need not wait for the disk. While the store is away they keep their room.
  const size_t settling = store_away_ ? 0 : std::min(kSettlingMax, held_ - out_ - failed_.size());
  return in_flight_max_ - std::min(in_flight_max_, held_ - settling);
}

void Dispatcher::Claim(IoTime now) {
  const size_t room = Room();
  if (reserve_ != 0 || now < claim_at_ || room == 0 || held_bytes_ >= kBytesMax) return;
  const bool paused = pause_ > Millis(0);
  if (paused && out_ > 0) return;
  const size_t allowed = rate_.Room(now);
  if (allowed == 0) {
    claim_at_ = rate_.NextAt();
    return;
  }
  reserve_ = home_.NextReserve();
  if (node_.push_memory != nullptr) room_ = std::make_shared<PushRoom>(*node_.push_memory, share_);
  home_.Reserve({.number = reserve_,
                 .topic = topic_,
                 .max = std::min({paused ? kTryMax : kClaimMax, room, allowed}),
                 .lease = Millis(0),
                 .holder = delivery_.sink,
                 .waits = true,
                 .deadline = IoTime::max(),
                 .own = true,
                 .room = room_,
                 .done = [this](Result<JobBatch> result) { OnReserved(std::move(result)); }});
}

void Dispatcher::OnReserved(Result<JobBatch> result) {
  reserve_ = 0;
  std::shared_ptr<JobRoom> room = std::exchange(room_, nullptr);
  Schedule();
  if (result && !result->jobs.empty()) return Hand(std::move(*result), std::move(room));
  if (closing_) return;  // cancelled by Close
  claim_at_ = node_.clock.IoNow() + kClaimAgainAfter;
}

void Dispatcher::Hand(JobBatch jobs, std::shared_ptr<JobRoom> room) {
  TOCSIN_CHECK(Delivers());
  const size_t count = jobs.jobs.size();
  const IoTime now = node_.clock.IoNow();
  rate_.Take(count);
  if (batches_.empty()) extend_at_ = now + std::min(kExtendEvery, lease_ / 4);
  const uint64_t number = ++last_batch_;
  Batch& batch = batches_[number];
  batch.bytes = BytesOf(jobs);
  // A sink may need the jobs for longer than it takes to answer: librdkafka keeps what a closed sink has sent. They
  // keep their room for as long.
  const auto held = std::make_shared<Held>(std::move(room), std::move(jobs));
  batch.jobs = std::shared_ptr<const JobBatch>(held, &held->jobs);
  batch.states.resize(count, JobState::kOut);
  batch.open = count;
  batch.handed = now;
  batch.lease_end = node_.clock.Now().steady + lease_;
  out_ += count;
  held_ += count;
  held_bytes_ += batch.bytes;
  sink_->Deliver(batch.jobs,
                 [this, number](size_t index, Delivered delivered) { OnAnswer(number, index, std::move(delivered)); });
}

void Dispatcher::OnAnswer(uint64_t number, size_t index, Delivered delivered) {
  const auto at = batches_.find(number);
  TOCSIN_CHECK(at != batches_.end() && index < at->second.states.size());
  Batch& batch = at->second;
  TOCSIN_CHECK(batch.states[index] != JobState::kAnswered);
  batch.states[index] = JobState::kAnswered;
  --out_;
  const IoTime now = node_.clock.IoNow();
  figures_->seconds->Record(now - batch.handed);
  share_->prompt.store(now - batch.handed <= kPrompt, std::memory_order_relaxed);
  if (delivered.outcome == DeliverOutcome::kConfirmed) {
    failures_ = rejections_ = 0;
    LogWell(now);
  } else if (!closing_) {  // a sink that closes gives back what it has
    const Moment wall = node_.clock.Now();
    ++failures_;
    failed_at_ = wall.steady;
    last_error_ = Shortened(delivered.reason);
    last_error_at_ = wall.utc;
    if (!delivered.unsent && ++rejections_ >= kRejectionsLogged) LogFailing(delivered, now);
  }
  const Time due = batch.jobs->jobs[index].due;
  if (delivered.outcome == DeliverOutcome::kConfirmed && due != kNever) {
    figures_->lateness->Record(node_.clock.Now().utc - due);
  }
  if (!delivered.unsent) {
    OnHeard(now);
  } else if (!closing_) {
    OnUnsent(number, delivered, now);
  }
  answers_.push_back({number, batch.jobs->jobs[index].token, std::move(delivered)});
  Schedule();
}

void Dispatcher::Describe(DeliveryReport& report) const {
  report.in_flight = out_;
  report.failures = failures_;
  report.last_error = last_error_;
  report.last_error_at = last_error_at_;
  if (broken_) {
    report.state = DeliveryState::kBroken;
  } else if (away_) {
    report.state = DeliveryState::kUnreachable;
  } else if (Delivers() && report.state != DeliveryState::kPaused) {
    report.state = failures_ > 0 ? DeliveryState::kFailing : DeliveryState::kDelivering;
  }
}

void Dispatcher::OnHeard(IoTime now) {
  heard_at_ = now;
  heard_after_ = last_batch_;
  silent_since_ = IoTime::max();
  if (!std::exchange(away_, false)) return;
  figures_->unreachable->Set(0);
  pause_ = Millis(0);
  claim_at_ = IoTime::min();
}

void Dispatcher::OnUnsent(uint64_t number, Delivered& delivered, IoTime now) {
  const bool over = heard_at_ > unsent_at_ && now - unsent_at_ > kQuiet;
  if (unsent_since_ == IoTime::max() || over) unsent_since_ = now;
  unsent_at_ = now;
  if (silent_since_ == IoTime::max()) silent_since_ = now;
  if (now - silent_since_ >= outage_max_) {
    delivered.unsent = false;  // the wait is over: a failed attempt like any other
    pause_ = Millis(0);
    return;
  }
  // The rest puts it behind the others that are ready, so the next try is with those.
  const bool others = delivered.delay || heard_after_ >= number;
  delivered.delay = delivered.delay.value_or(kUnsentRest);
  if (others) return;
  if (!std::exchange(away_, true)) {
    // Once, also if some get through now and then.
    if (std::exchange(warned_of_, unsent_since_) != unsent_since_) LogFailing(delivered, now);
    figures_->unreachable->Set(1);
  } else if (number <= paused_after_) {
    return;  // handed over before the pause
  }
  pause_ = std::clamp(pause_ * 2, kPauseMin, now - heard_at_ < kQuiet ? kPauseSoon : kPauseMax);
  paused_after_ = last_batch_;
  claim_at_ = now + pause_;
}

void Dispatcher::LogFailing(const Delivered& delivered, IoTime now) {
  if (failing_.on()) return;
  const std::string to = PlaceOf(delivery_);
  const std::string_view error = delivered.quotes ? std::string_view("it says why in its own words") : delivered.reason;
  const LogField fields[] = {{"topic", topic_}, {"sink", delivery_.sink}, {"to", to}, {"error", Shortened(error)}};
  failing_.Begin(now, fields);
}

void Dispatcher::LogWell(IoTime now) {
  if (!failing_.on()) return;
  const std::string to = PlaceOf(delivery_);
  const LogField fields[] = {{"topic", topic_}, {"sink", delivery_.sink}, {"to", to}};
  failing_.End(now, fields);
}

void Dispatcher::SettleAnswers(IoTime now) {
  std::vector<Answered> answers = std::exchange(answers_, {});
  if (!failed_.empty() && now >= retry_at_) {
    std::ranges::move(std::exchange(failed_, {}), std::back_inserter(answers));
  }
  for (size_t from = 0; from < answers.size(); from += kSettleMax) {
    const auto begin = answers.begin() + static_cast<ptrdiff_t>(from);
    const auto count = static_cast<ptrdiff_t>(std::min(kSettleMax, answers.size() - from));
    SettleSome({std::make_move_iterator(begin), std::make_move_iterator(begin + count)});
  }
}

void Dispatcher::SettleSome(std::vector<Answered> some) {
  auto answers = std::make_shared<std::vector<Answered>>(std::move(some));
  SettleRequest request{.topic = topic_, .settlements = {}, .bytes = answers};
  request.settlements.reserve(answers->size());
  for (const Answered& answered : *answers) request.settlements.push_back(SettlementOf(answered));
  ++settling_;
  home_.Settle(std::move(request), [this, answers](const Result<std::vector<SettleOutcome>>& result) {
    --settling_;
    OnSettled(*answers, result);
    Schedule();
  });
}

Settlement Dispatcher::SettlementOf(const Answered& answered) const {
  Settlement settlement{.token = answered.token};
  const Delivered& delivered = answered.delivered;
  switch (delivered.outcome) {
    case DeliverOutcome::kConfirmed:
      return settlement;
    case DeliverOutcome::kRetry:
      settlement.kind = delivered.unsent ? SettleKind::kRelease : SettleKind::kNack;
      if (delivered.delay) {
        const Millis delay = std::clamp(*delivered.delay, Millis(0), kDelayMax - node_.clock.Granularity());
        settlement.delay = node_.clock.RoundUp(delay);
      }
      if (delivered.unsent) return settlement;
      break;
    case DeliverOutcome::kRefused:
      settlement.kind = SettleKind::kBury;
      break;
  }
  settlement.reason = Shortened(delivered.reason);
  return settlement;
}

void Dispatcher::OnSettled(std::vector<Answered>& answers, const Result<std::vector<SettleOutcome>>& result) {
  if (!result && !Passes(result.error()) && result.error().code != Code::kTopicNotFound) {
    LogWarn("topic {}: {} pushed jobs cannot be settled: {}", topic_, answers.size(), result.error().message);
  }
  store_away_ = false;
  for (size_t i = 0; i < answers.size(); ++i) {
    Answered& answered = answers[i];
    const bool passes = result ? Passes((*result)[i]) : Passes(result.error());
    store_away_ = store_away_ || passes;
    if (passes && MayTryAgain(answered)) {
      TryAgain(std::move(answered));
      continue;
    }
    if (passes || (result && (*result)[i] == SettleOutcome::kStale)) {
      figures_->stale->Add();
    } else if (result) {
      figures_->outcomes.at(static_cast<size_t>(answered.delivered.outcome))->Add();
    }
    Finish(answered);
  }
}

bool Dispatcher::MayTryAgain(const Answered& answered) const {
  if (node_.clock.IoNow() >= give_up_at_) return false;
  return answered.batch == 0 || late_ < kLateMax || node_.clock.Now().steady < batches_.at(answered.batch).lease_end;
}

void Dispatcher::TryAgain(Answered answered) {
  // A store that takes no writes (a Redis with MISCONF) rolls back no leases either, so an answer may count long after
  // its lease should have ended. The job's bytes and its room are not needed for that.
  if (answered.batch != 0 && node_.clock.Now().steady >= batches_.at(answered.batch).lease_end) {
    Finish(answered);
    answered.batch = 0;
    ++late_;
  }
  if (failed_.empty()) retry_at_ = node_.clock.IoNow() + kSettleAgainAfter;
  failed_.push_back(std::move(answered));
}

void Dispatcher::Finish(const Answered& answered) {
  if (answered.batch == 0) {
    --late_;
    return;
  }
  const auto at = batches_.find(answered.batch);
  --held_;
  if (--at->second.open > 0) return;
  held_bytes_ -= at->second.bytes;
  batches_.erase(at);
}

void Dispatcher::Extend(IoTime now) {
  if (batches_.empty() || now < extend_at_) return;
  extend_at_ = now + std::min(kExtendEvery, lease_ / 4);
  const Time soon = node_.clock.Now().steady + lease_ * 2 / 3;
  std::vector<Extension> some;
  std::vector<std::vector<Extension>> calls;
  for (const auto& [number, batch] : batches_) {
    if (batch.lease_end > soon) continue;
    for (size_t i = 0; i < batch.states.size(); ++i) {
      if (batch.states[i] == JobState::kOut) some.push_back({number, i, batch.lease_end});
    }
    if (some.size() >= kSettleMax - kClaimMax) calls.push_back(std::exchange(some, {}));
  }
  if (!some.empty()) calls.push_back(std::move(some));
  for (std::vector<Extension>& call : calls) ExtendSome(std::move(call));
}

void Dispatcher::ExtendSome(std::vector<Extension> some) {
  SettleRequest request{.topic = topic_, .settlements = {}, .bytes = nullptr};
  for (const Extension& each : some) {
    request.settlements.push_back(
        {.token = batches_.at(each.batch).jobs->jobs[each.index].token, .kind = SettleKind::kExtend, .lease = lease_});
  }
  ++settling_;
  const Time end = node_.clock.Now().steady + lease_;
  home_.Settle(std::move(request),
               [this, end, some = std::move(some)](const Result<std::vector<SettleOutcome>>& result) {
                 --settling_;
                 OnExtended(some, end, result);
                 Schedule();
               });
}

void Dispatcher::OnExtended(const std::vector<Extension>& extensions, Time end,
                            const Result<std::vector<SettleOutcome>>& result) {
  if (!result) return;  // Extend tries again soon
  const auto each = [&](SettleOutcome outcome, const auto& work) {
    for (size_t i = 0; i < extensions.size(); ++i) {
      const auto batch = batches_.find(extensions[i].batch);
      if ((*result)[i] == outcome && batch != batches_.end()) work(batch->second, extensions[i]);
    }
  };
  each(SettleOutcome::kOk, [end](Batch& batch, const Extension&) { batch.lease_end = end; });
  for (const SettleOutcome unsure : {SettleOutcome::kOverloaded, SettleOutcome::kUnavailable}) {
    each(unsure, [](Batch& batch, const Extension& job) { batch.lease_end = job.before; });
  }
  each(SettleOutcome::kStale, [](Batch& batch, const Extension& job) {
    JobState& state = batch.states[job.index];
    if (state == JobState::kOut) state = JobState::kLost;
  });
}

Error Dispatcher::NoSink(const std::string& topic) {
  return Error{Code::kConflict, fmt::format("topic {} has no sink: consumers reserve its jobs", topic), {}};
}

void Dispatcher::Probe(Done<Probed> done) {
  const bool stopped = give_up_at_ != IoTime::max();
  if (!wanted_ && !stopped) return done(std::unexpected(NoSink(topic_)));
  // A probe right after a change of the delivery is about the new sink.
  if (!Delivers() && wanted_ && !broken_ && early_probes_.size() < kProbesMax) {
    early_probes_.push_back(std::move(done));
    return Schedule();
  }
  if (!Delivers()) {
    const std::string why = broken_ ? broken_->message : "it is being opened or closed";
    return done(Fail(Code::kUnavailable, "the sink of topic {} is not open: {}", topic_, why));
  }
  if (probes_ >= kProbesMax) {
    return done(Fail(Code::kOverloaded, "{} probes of topic {} are under way: no more are allowed", probes_, topic_));
  }
  auto batch = std::make_shared<JobBatch>();
  JobView& job = batch->jobs.emplace_back();
  job.own_id = "probe";
  job.state = State::kLeased;
  job.due = node_.clock.Now().utc;
  job.attempt = 1;
  job.max_attempts = 1;
  job.headers = {{delivery_header::kProbe, "true"}};
  job.payload = R"({"probe":true})";
  ++probes_;
  const uint64_t number = ++last_probe_;
  const IoTime from = node_.clock.IoNow();
  probings_.emplace(number,
                    Probing{std::move(done), from, from + Millis(delivery_.Number("timeout_ms")) + kProbeGrace});
  sink_->Deliver(std::move(batch), [this, number](size_t, Delivered delivered) {
    --probes_;
    if (!delivered.unsent) OnHeard(node_.clock.IoNow());
    Schedule();
    EndProbe(number, std::move(delivered));
  });
  Schedule();
}

void Dispatcher::EndProbe(uint64_t number, Delivered delivered) {
  const auto ended = probings_.extract(number);
  if (ended.empty()) return;  // its time was over: it has been answered
  const auto took = std::chrono::ceil<Millis>(node_.clock.IoNow() - ended.mapped().from);
  ended.mapped().done(Probed{std::move(delivered), took});
}

void Dispatcher::ExpireProbes(IoTime now) {
  while (!probings_.empty() && probings_.begin()->second.until <= now) {
    EndProbe(probings_.begin()->first,
             {.outcome = DeliverOutcome::kRetry, .reason = "the sink is still waiting for the receiver; see the log"});
  }
}

}  // namespace tocsin
