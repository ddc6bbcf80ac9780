#include <charconv>
#include <memory>

#include "workloads.h"

namespace tocsin::bench {
namespace {

constexpr int64_t kLeastDelayMs = 1'000;
constexpr int64_t kMostDelayMs = 5'000;
constexpr auto kDrainTime = std::chrono::seconds(20);  // after the last submit

/// The integer behind `name` in `text`, or -1.
int64_t IntegerAfter(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  int64_t value = -1;
  if (at != std::string_view::npos) std::from_chars(text.data() + at + name.size(), text.data() + text.size(), value);
  return value;
}

/// Takes due jobs, acknowledges them, and takes the next, on one connection.
class Consumer {
 public:
  Consumer(Poller& poller, const Endpoint& endpoint) : connection_(poller, endpoint) {}

  void Reserve() {
    ++requests;
    connection_.Send(kReserve, on_reserved_);
  }

  Times lateness;
  size_t delivered = 0;
  size_t acked = 0;
  size_t early = 0;
  size_t requests = 0;

 private:
  static inline const std::string kReserve =
      MakeRequest("POST", "/v1/topics/bench/reserve", R"({"max":500,"wait_ms":1000})");

  void Reserved(const Answer& answer) {
    const int64_t now_ns = WallNanos();
    if (answer.status != 200) Die("a reserve was refused: {} {}", answer.status, answer.body.substr(0, 200));
    std::string tokens;
    const size_t before = delivered;
    constexpr std::string_view kToken = "\"token\":\"";
    std::string_view rest = answer.body;
    for (size_t at = rest.find(kToken); at != std::string_view::npos; at = rest.find(kToken)) {
      rest.remove_prefix(at + kToken.size());
      tokens += tokens.empty() ? "\"" : ",\"";
      tokens.append(rest.substr(0, rest.find('"') + 1));
      const int64_t late_ns = now_ns - IntegerAfter(rest, "\"due_ms\":") * 1'000'000;
      if (late_ns < 0) ++early;
      lateness.Add(Nanos(late_ns));
      ++delivered;
    }
    if (delivered == before) return Reserve();
    ack_ = MakeRequest("POST", "/v1/topics/bench/ack", fmt::format(R"({{"tokens":[{}]}})", tokens));
    ++requests;
    connection_.Send(ack_, on_acked_);
  }
  void Acked(const Answer& answer) {
    acked += CountOf(answer.body, R"("outcome":"ok")");
    Reserve();
  }

  Connection connection_;
  std::string ack_;
  const Connection::Handler on_reserved_ = [this](Connection&, const Answer& answer) { Reserved(answer); };
  const Connection::Handler on_acked_ = [this](Connection&, const Answer& answer) { Acked(answer); };
};

class SteadyLoad {
 public:
  explicit SteadyLoad(const Subject& subject)
      : options_(subject.options),
        requests_(options_, options_.batch, kLeastDelayMs, kMostDelayMs),
        rate_(options_.Or(&Options::rate, 20'000)) {
    for (size_t i = 0; i < options_.Or(&Options::connections, 8); ++i) {
      producers_.push_back(std::make_unique<Connection>(poller_, subject.endpoint));
    }
    for (size_t i = 0; i < options_.consumers; ++i) {
      consumers_.push_back(std::make_unique<Consumer>(poller_, subject.endpoint));
      consumers_.back()->Reserve();
    }
  }

  void Run() {
    const auto step = Nanos(1'000'000'000 * options_.batch / rate_);
    const auto batches = static_cast<size_t>(options_.SecondsOr(20) * static_cast<double>(rate_)) / options_.batch;
    Instant due = SteadyClock::now();
    for (size_t i = 0; i < batches; ++i, due += step) {
      while (SteadyClock::now() < due) poller_.Turn(due);
      SubmitAt(due);
    }
    const Instant end = SteadyClock::now() + kDrainTime;
    while (acked() < batches * options_.batch) {
      if (SteadyClock::now() > end) Die("{} jobs submitted, {} acknowledged", batches * options_.batch, acked());
      poller_.Turn(end);
    }
  }

  Figures Result() {
    Times lateness;
    size_t early = 0;
    for (const auto& consumer : consumers_) {
      lateness.Append(consumer->lateness);
      early += consumer->early;
    }
    Figures figures = {{"rate asked for", static_cast<double>(rate_), "jobs/s"},
                       {"jobs delivered", static_cast<double>(lateness.size()), ""},
                       {"jobs received early", static_cast<double>(early), "", "0"}};
    AppendTo(figures, lateness, "lateness", "<= 10 ms");
    AppendTo(figures, submits_, "submit, from its time");
    return figures;
  }

  size_t requests() const {
    size_t sum = submits_.size();
    for (const auto& consumer : consumers_) sum += consumer->requests;
    return sum;
  }

 private:
  size_t acked() const {
    size_t sum = 0;
    for (const auto& consumer : consumers_) sum += consumer->acked;
    return sum;
  }
  /// On a connection that is free; waits for one if all are busy, and that wait counts.
  void SubmitAt(Instant due) {
    auto free = producers_.end();
    while ((free = std::ranges::find_if(producers_, [](const auto& each) { return !each->busy(); })) ==
           producers_.end()) {
      poller_.Turn(SteadyClock::now() + std::chrono::seconds(1));
    }
    lags_[free->get()] = SteadyClock::now() - due;
    (*free)->Send(requests_.Next(), on_submitted_);
  }

  const Options& options_;
  SubmitRequests requests_;
  const size_t rate_;
  Poller poller_;
  std::vector<std::unique_ptr<Connection>> producers_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::map<Connection*, Nanos> lags_;  // how much later than its time a request was sent
  Times submits_;
  const Connection::Handler on_submitted_ = [this](Connection& connection, const Answer& answer) {
    CheckSubmitted(answer, options_.batch);
    submits_.Add(answer.took + lags_[&connection]);
  };
};

/// The server's own histogram of lateness, if it tells.
void AppendServerView(Figures& figures, const Endpoint& endpoint) {
  const auto [status, body] = Ask(endpoint, MakeRequest("GET", "/v1/stats"));
  const size_t at = body.find("\"lateness_ms\"");
  if (status != 200 || at == std::string::npos) return;
  const std::string_view part = std::string_view(body).substr(at);
  for (const auto& [key, name] : {std::pair{"p50", "p50"}, {"p99", "p99"}, {"p999", "p99.9"}, {"max", "max"}}) {
    const size_t value = part.find(fmt::format("\"{}\":", key));
    if (value == std::string_view::npos) continue;
    figures.push_back({fmt::format("lateness at the server {}", name),
                       std::strtod(part.data() + part.find(':', value) + 1, nullptr), "ms"});
  }
}

}  // namespace

Figures Steady(const Subject& subject) {
  SteadyLoad load(subject);
  const CpuMeter meter(subject);
  load.Run();
  Figures figures = load.Result();
  meter.AppendTo(figures, load.requests());
  AppendServerView(figures, subject.endpoint);
  return figures;
}

}  // namespace tocsin::bench
