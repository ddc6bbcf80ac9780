#include <memory>

#include "workloads.h"

namespace tocsin::bench {
namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr size_t kMadeBeforehand = 64;

/// Every connection sends its next request when the one before is answered.
class ClosedLoad {
 public:
  ClosedLoad(const Subject& subject, size_t batch, size_t connections)
      : batch_(batch), requests_(subject.options, batch, kHourMs, 24 * kHourMs) {
    for (size_t i = 0; i < connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(poller_, subject.endpoint));
    }
  }

  /// Until `jobs` are answered or `seconds` have passed; the time that it took.
  double Run(size_t jobs, double seconds) {
    left_ = jobs / batch_;
    const Instant began = SteadyClock::now();
    end_ = began + std::chrono::duration_cast<Nanos>(std::chrono::duration<double>(seconds));
    for (const auto& connection : connections_) SendTo(*connection);
    while (under_way_ > 0) poller_.Turn(SteadyClock::now() + std::chrono::seconds(1));
    return std::chrono::duration<double>(SteadyClock::now() - began).count();
  }

  Times times;

 private:
  void SendTo(Connection& connection) {
    if (left_ == 0 || SteadyClock::now() >= end_) return;
    --left_;
    ++under_way_;
    connection.Send(requests_.Next(), handler_);
  }
  void Answered(Connection& connection, const Answer& answer) {
    times.Add(answer.took);
    --under_way_;
    CheckSubmitted(answer, batch_);
    SendTo(connection);
  }

  const size_t batch_;
  SubmitRequests requests_;
  Poller poller_;
  std::vector<std::unique_ptr<Connection>> connections_;
  const Connection::Handler handler_ = [this](Connection& connection, const Answer& answer) {
    Answered(connection, answer);
  };
  size_t left_ = 0;
  size_t under_way_ = 0;
  Instant end_;
};

Figures RunClosed(const Subject& subject, size_t batch, size_t connections, size_t jobs, const Figure& rate) {
  ClosedLoad load(subject, batch, connections);
  load.Run(batch * connections, 10);  // makes the topic, and wakes everything up
  load.times = {};
  const CpuMeter meter(subject);
  const double took = load.Run(jobs, subject.options.SecondsOr(60));
  const double requests = static_cast<double>(load.times.size());
  Figures figures = {rate};
  figures.front().value = requests * static_cast<double>(batch) / took;
  AppendTo(figures, load.times, "request");
  meter.AppendTo(figures, load.times.size());
  return figures;
}

}  // namespace

CpuMeter::CpuMeter(const Subject& subject) : process_(subject.process) {
  if (process_ != nullptr) server_ = process_->CpuSeconds();
}

void CpuMeter::AppendTo(Figures& figures, size_t calls) const {
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - began_).count();
  if (process_ != nullptr) {
    const double used = process_->CpuSeconds() - server_;
    figures.push_back({"CPU of the server", used / seconds, "cores"});
    figures.push_back({"CPU of the server for a request", used * 1e6 / static_cast<double>(calls), "us"});
  }
  figures.push_back({"CPU of the load generator", (OwnCpuSeconds() - own_) / seconds, "cores"});
}

SubmitRequests::SubmitRequests(const Options& options, size_t batch, int64_t least_ms, int64_t most_ms) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> delay(least_ms, most_ms);
  std::uniform_int_distribution<int> letter('a', 'z');
  for (size_t i = 0; i < kMadeBeforehand; ++i) {
    std::vector<std::string> jobs;
    for (size_t job = 0; job < batch; ++job) {
      std::string payload(options.payload, ' ');
      for (char& c : payload) c = static_cast<char>(letter(random));
      jobs.push_back(fmt::format(R"({{"payload":"{}","delay_ms":{}}})", payload, delay(random)));
    }
    const std::string body = batch == 1 ? jobs.front() : fmt::format(R"({{"jobs":[{}]}})", fmt::join(jobs, ","));
    requests_.push_back(MakeRequest("POST", "/v1/topics/bench/jobs", body));
  }
}

std::string_view SubmitRequests::Next() { return requests_[next_++ % requests_.size()]; }

size_t CountOf(std::string_view text, std::string_view what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

void CheckSubmitted(const Answer& answer, size_t jobs) {
  if (answer.status != 201 || CountOf(answer.body, R"("accepted")") != jobs) {
    Die("a submit was refused: {} {}", answer.status, answer.body.substr(0, 200));
  }
}

Figures SubmitBatches(const Subject& subject) {
  const Options& options = subject.options;
  return RunClosed(subject, options.batch, options.Or(&Options::connections, 8), options.Or(&Options::jobs, 1'000'000),
                   {.name = "jobs", .unit = "1/s", .target = ">= 100,000"});
}

Figures SubmitSingles(const Subject& subject) {
  const Options& options = subject.options;
  return RunClosed(subject, 1, options.Or(&Options::connections, 50), options.Or(&Options::jobs, 200'000),
                   {.name = "requests", .unit = "1/s", .target = ">= 20,000"});
}

}  // namespace tocsin::bench
