// SinkSite: a webhook sink on a loop that the test's own thread runs, and the jobs that it is given.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/asio_loop.h"
#include "sim/shifted_clock.h"
#include "sinks/webhook/factory.h"

namespace tocsin::webhook {

inline Topic WebhookTopic(const std::string& url, std::map<std::string, std::string> settings = {}) {
  Topic topic = DefaultTopic("orders");
  topic.delivery.sink = "webhook";
  topic.delivery.settings.insert(settings.begin(), settings.end());
  topic.delivery.settings["url"] = url;
  return topic;
}

inline JobView Job(std::string_view own_id = "order-7", std::string_view payload = "pay now") {
  JobView job;
  job.uid = 0x1234;
  job.own_id = own_id;
  job.attempt = 1;
  job.due = FromMs(1'700'000'000'000);
  job.token = {.slot = 3, .handle = 77, .fence = 99};
  job.payload = payload;
  return job;
}

class SinkSite {
 public:
  explicit SinkSite(Options options = LoopbackAllowed()) {
    options.loops = {&loop_};
    auto made = Factory::Make(std::move(options));
    EXPECT_TRUE(made) << made.error().message;
    factory_ = *std::move(made);
  }
  ~SinkSite() {
    for (auto& sink : sinks_) {
      bool closed = false;
      sink->Close([&closed] { closed = true; });
      Until([&] { return closed; });
      sink.reset();
    }
  }

  static Options LoopbackAllowed() {
    Options options;
    options.allow = "127.0.0.0/8";
    options.version = "9.9";
    options.find_secret = [](std::string_view name) -> Result<std::string> {
      if (name == "orders") return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
      return Fail(Code::kInvalidArgument, "there is no secret \"{}\"", name);
    };
    return options;
  }

  Sink& Open(const Topic& topic) {
    EXPECT_TRUE(Validate(topic)) << Validate(topic).error().message;
    auto sink = factory_->Open(topic, loop_);
    EXPECT_TRUE(sink) << sink.error().message;
    return *sinks_.emplace_back(*std::move(sink));
  }

  /// The views of the jobs stay valid for the test. Outcomes come into outcomes(), in the order of all calls.
  void Deliver(Sink& sink, std::vector<JobView> jobs) {
    auto batch = std::make_shared<JobBatch>();
    batch->jobs = std::move(jobs);
    const size_t first = outcomes_.size();
    outcomes_.resize(first + batch->jobs.size());
    sink.Deliver(std::move(batch), [this, first](size_t index, Delivered delivered) {
      ASSERT_FALSE(outcomes_[first + index].has_value());
      outcomes_[first + index] = std::move(delivered);
      ++answered_;
    });
  }
  /// One job, until it is answered.
  Delivered Send(Sink& sink, const JobView& job = Job()) {
    Deliver(sink, {job});
    UntilAnswered();
    return outcomes_.back().value_or(Delivered{.outcome = DeliverOutcome::kRefused, .delay = {}, .reason = "none"});
  }
  void UntilAnswered() {
    Until([this] { return answered_ == outcomes_.size(); });
  }

  /// Runs the loop until it holds; the test fails if it never does.
  template <class F>
  void Until(F holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds()) {
      ASSERT_LT(std::chrono::steady_clock::now(), end);
      loop_.io().run_one_for(Millis(5));
    }
  }

  Factory& factory() { return *factory_; }
  net::AsioLoop& loop() { return loop_; }
  ShiftedClock& clock() { return clock_; }
  const std::deque<std::optional<Delivered>>& outcomes() const { return outcomes_; }
  size_t answered() const { return answered_; }

 private:
  ShiftedClock clock_;
  net::AsioLoop loop_{clock_};
  std::unique_ptr<Factory> factory_;
  std::vector<std::unique_ptr<Sink>> sinks_;
  std::deque<std::optional<Delivered>> outcomes_;
  size_t answered_ = 0;
};

}  // namespace tocsin::webhook
