// Factory: makes the sinks of a node that deliver to Kafka, and owns the producers that they share. There is one
// producer for each time-out in use, because a producer has one time-out for all its messages; most nodes have one.
// Time-outs are rounded up to a few steps, so the number of producers is bounded, whatever topics ask for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/owners.h"
#include "spi/sink.h"

namespace tocsin::kafka {

class Producer;

/// How this node reaches Kafka. The password is kept in memory only, and nothing here writes it anywhere.
struct Options {
  std::string brokers;    // host:port,host:port,...: some of them; they name the others
  bool tls = false;       // and each broker's certificate has to be its host's
  std::string ca_file;    // with TLS; empty: the system's
  std::string cert_file;  // this node's own, if Kafka asks for one; with key_file
  std::string key_file;
  std::string sasl_mechanism;  // PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; empty: no login
  std::string username;        // with a mechanism
  std::string password;
  std::string compression = "none";  // or lz4
  uint64_t message_size = 1 << 20;   // bytes; of a message, and of a batch of several
  Owners owners;                     // of Kafka's topics
};

class Factory final : public SinkFactory {
 public:
  /// An error if the options cannot be used, for example because a file of certificates is missing. Kafka is not
  /// asked. `clock` outlives it.
  static Result<std::unique_ptr<Factory>> Make(Options options, const Clock& clock);
  ~Factory() override;

  Status Check(const Topic& topic) const override;
  Result<std::unique_ptr<Sink>> Open(const Topic& topic, Loop& loop) override;

 private:
  Factory(Options options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}
  Result<std::shared_ptr<Producer>> ProducerFor(Millis timeout);
  void RetireIdle();

  const Options options_;
  const Clock& clock_;

  std::mutex mutex_;  // guards the rest
  std::map<Millis, std::shared_ptr<Producer>> producers_;
  std::vector<std::shared_ptr<Producer>> retired_;  // they end by themselves
};

}  // namespace tocsin::kafka
