// Engine: the connections of one run, spread over its servers in turn, with their Ledger. Workloads (workloads.h) say
// what is submitted and when. One thread.
#pragma once

#include <memory>
#include <vector>

#include "load/consumer.h"

namespace tocsin::bench {

class Engine final : public Lane::Owner {
 public:
  /// `window`: requests under way on each connection, if neither the command line nor the mode says otherwise.
  Engine(const Options& options, Protocol& protocol, const std::vector<Endpoint>& endpoints, size_t jobs,
         size_t window);

  /// False if every connection has all the requests under way that it may have.
  bool Submit(const Jobs& jobs, Instant since);
  /// Where the server pushes it has no consumers: then the server is asked, once all is stored.
  void StartConsumers();
  /// Does what there is to do, at most until `until`. Dies at the time limit.
  void Turn(Instant until);

  Ledger ledger;
  const size_t batch;

  void Delivered(std::string_view, std::string_view) override {}
  void Answered(Lane& lane, const Request& request) override;

 private:
  Instant AskConfirmed(Instant now);
  void ShowProgress(Instant now);

  Poller poller_;
  const Instant began_ = SteadyClock::now();
  const Instant deadline_;
  Instant shown_ = began_;
  const size_t window_;
  size_t under_way_ = 0;
  size_t next_ = 0;
  std::vector<std::unique_ptr<Lane>> producers_;
  std::vector<std::unique_ptr<Consumer>> consumers_;
  Protocol& protocol_;
  const Endpoint first_;
  const size_t jobs_;
  Instant asks_at_ = Instant::max();  // of a server that pushes
};

/// The figures of `options` or, where it is 0, of the tuning; one by one it is 1, or the 50 connections.
size_t BatchOf(const Options& options, const Tuning& tuning);
size_t ConnectionsOf(const Options& options, const Tuning& tuning);

}  // namespace tocsin::bench
