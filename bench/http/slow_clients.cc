#include <deque>
#include <memory>

#include "slow_crowd.h"
#include "workloads.h"

namespace tocsin::bench {
namespace {

constexpr int64_t kHourMs = 3'600'000;
// Twice a second a thousand of them would send as many packets as the load itself, and not be slow together.
constexpr auto kSlowInterval = std::chrono::milliseconds(2000);
constexpr auto kSettle = std::chrono::seconds(1);  // after the crowd has come or gone, before times count
constexpr int kPairs = 5;                          // the machine's speed drifts: the two states take turns

/// Requests at fixed times, whether the ones before are answered or not; a time is counted from when the request should
/// have been sent, so that a stall shows in all that it delays.
class OpenLoad {
 public:
  OpenLoad(const Subject& subject, size_t rate, size_t connections)
      : requests_(subject.options, 1, kHourMs, 24 * kHourMs), step_(Nanos(1'000'000'000 / rate)) {
    for (size_t i = 0; i < connections; ++i) {
      lanes_.push_back({.connection = std::make_unique<Connection>(poller_, subject.endpoint), .due = {}});
    }
  }

  Times Run(Nanos length) {
    times_ = {};
    Instant due = SteadyClock::now();
    const Instant end = due + length;
    while (due < end || busy_ > 0 || !waiting_.empty()) {
      for (; due < end && due <= SteadyClock::now(); due += step_) waiting_.push_back(due);
      SendWaiting();
      poller_.Turn(due < end ? due : SteadyClock::now() + std::chrono::seconds(1));
    }
    return std::move(times_);
  }

 private:
  struct Lane {
    std::unique_ptr<Connection> connection;
    Instant due;
  };

  void SendWaiting() {
    for (size_t tried = 0; tried < lanes_.size() && !waiting_.empty(); ++tried) {
      Lane& lane = lanes_[next_++ % lanes_.size()];
      if (lane.connection->busy()) continue;
      lane.due = waiting_.front();
      waiting_.pop_front();
      ++busy_;
      lane.connection->Send(requests_.Next(), handler_);
    }
  }
  void Answered(const Connection& connection, const Answer& answer) {
    --busy_;
    CheckSubmitted(answer, 1);
    const auto lane = std::ranges::find(lanes_, &connection, [](const Lane& each) { return each.connection.get(); });
    times_.Add(SteadyClock::now() - lane->due);
    SendWaiting();
  }

  SubmitRequests requests_;
  const Nanos step_;
  Poller poller_;
  std::vector<Lane> lanes_;
  size_t next_ = 0;
  size_t busy_ = 0;
  std::deque<Instant> waiting_;
  Times times_;
  const Connection::Handler handler_ = [this](Connection& connection, const Answer& answer) {
    Answered(connection, answer);
  };
};

/// The p99 of each phase of one state, and all times of it.
struct State {
  std::vector<double> p50;
  std::vector<double> p99;
  Times all;

  void Measure(OpenLoad& load, Nanos length) {
    load.Run(kSettle);
    Times times = load.Run(length);
    p50.push_back(times.Ms(0.5));
    p99.push_back(times.Ms(0.99));
    all.Append(times);
  }
};

}  // namespace

Figures SlowClients(const Subject& subject) {
  const Options& options = subject.options;
  const auto length = std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(options.SecondsOr(3)));
  SlowCrowd::Prepare(subject.endpoint);
  OpenLoad load(subject, options.Or(&Options::rate, 2'000), options.Or(&Options::connections, 20));
  State alone;
  State crowded;
  size_t reopened = 0;
  const CpuMeter meter(subject);
  for (int i = 0; i < kPairs; ++i) {
    alone.Measure(load, length);
    const SlowCrowd crowd(subject.endpoint, options.slow, kSlowInterval);
    crowded.Measure(load, length);
    reopened += crowd.reopened();
  }
  const double before = Median(alone.p99);
  const double after = Median(crowded.p99);
  Figures figures = {{"p50 without slow clients", Median(alone.p50), "ms"},
                     {"p50 with slow clients", Median(crowded.p50), "ms"},
                     {"p99 without slow clients", before, "ms"},
                     {"p99 with slow clients", after, "ms"},
                     {"p99 with / without", after / before, "", "<= 1.20"},
                     {"max without slow clients", alone.all.Ms(1), "ms"},
                     {"max with slow clients", crowded.all.Ms(1), "ms"},
                     {"slow connections", static_cast<double>(options.slow), ""},
                     {"of them closed by the server", static_cast<double>(reopened), ""}};
  meter.AppendTo(figures, alone.all.size() + crowded.all.size());
  return figures;
}

}  // namespace tocsin::bench
