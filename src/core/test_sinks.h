// TestSinks: sinks that do what a test says. Jobs that are handed over stay with the sink until the test, or its
// script, answers for them.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "spi/sink.h"

namespace tocsin {

class TestSinks final : public SinkFactory {
 public:
  struct Job {
    std::string topic;
    std::string id;
    uint32_t attempt = 0;
    std::string payload;
    std::vector<std::pair<std::string, std::string>> headers;
    size_t sink = 0;  // the first that was opened is 1
    std::shared_ptr<const JobBatch> batch;
    size_t index = 0;
    std::shared_ptr<Sink::Answer> answer;
    bool answered = false;
  };

  Status Check(const Topic&) const override { return check ? std::unexpected(*check) : Status(); }
  Status CheckGiven(const Topic&) const override { return given ? Status() : Fail(Code::kForbidden, "not given"); }
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop&) override {
    ++opens;
    if (refuse_open) return std::unexpected(*refuse_open);
    ++open;
    return std::make_unique<TestSink>(*this, topic.name, ++made);
  }

  void Answer(Job& job, Delivered delivered) {
    job.answered = true;
    if (!keep_batches) job.batch = nullptr;
    --under_way;
    (*job.answer)(job.index, std::move(delivered));
  }
  void AnswerAll(const Delivered& delivered) {
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (!jobs[i].answered) Answer(jobs[i], delivered);
    }
  }
  /// Lets the sinks that are being closed go on.
  void FinishClosing() {
    for (Task& task : std::exchange(closing, {})) task();
  }
  size_t CountOf(std::string_view topic) const {
    return static_cast<size_t>(std::ranges::count(jobs, topic, &Job::topic));
  }

  std::optional<Error> check;
  bool given = true;  // what any topic names
  std::optional<Error> refuse_open;
  std::function<std::optional<Delivered>(const Job&)> script;  // what is answered at once
  bool hold_close = false;                                     // sinks close when FinishClosing is called
  bool keep_batches = false;                                   // also those that were answered
  bool closes_unsent = false;                                  // what a sink has when it closes was never sent

  std::deque<Job> jobs;  // all that were ever handed over
  size_t opens = 0;      // calls
  size_t made = 0;
  size_t open = 0;
  size_t under_way = 0;
  size_t under_way_max = 0;
  std::vector<Task> closing;

 private:
  class TestSink final : public Sink {
   public:
    TestSink(TestSinks& all, std::string topic, size_t number) : all_(all), topic_(std::move(topic)), number_(number) {}

    void Deliver(std::shared_ptr<const JobBatch> batch, Sink::Answer answer) override {
      auto shared = std::make_shared<Sink::Answer>(std::move(answer));
      all_.under_way += batch->jobs.size();
      all_.under_way_max = std::max(all_.under_way_max, all_.under_way);
      for (size_t i = 0; i < batch->jobs.size(); ++i) {
        const JobView& view = batch->jobs[i];
        Job& job = all_.jobs.emplace_back(Job{.topic = topic_,
                                              .id = view.Id(),
                                              .attempt = view.attempt,
                                              .payload = std::string(view.payload),
                                              .headers = {},
                                              .sink = number_,
                                              .batch = batch,
                                              .index = i,
                                              .answer = shared});
        for (const HeaderView& header : view.headers) job.headers.emplace_back(header.name, header.value);
        if (!all_.script) continue;
        if (std::optional<Delivered> delivered = all_.script(job)) all_.Answer(job, std::move(*delivered));
      }
    }

    void Close(Task done) override {
      Task finish = [this, done = std::move(done)]() mutable {
        for (Job& job : all_.jobs) {
          if (job.sink != number_ || job.answered) continue;
          all_.Answer(job, {DeliverOutcome::kRetry, {}, "the sink closed", all_.closes_unsent});
        }
        --all_.open;
        done();
      };
      if (!all_.hold_close) return finish();
      all_.closing.push_back(std::move(finish));
    }

   private:
    TestSinks& all_;
    const std::string topic_;
    const size_t number_;
  };
};

}  // namespace tocsin
