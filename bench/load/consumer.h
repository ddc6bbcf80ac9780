// Consumer: takes due jobs and acknowledges them, for ever. Where the protocol allows, it acknowledges on a connection
// of its own, so that the next reserve does not wait for the disk; one by one it has one request under way.
#pragma once

#include <optional>
#include <vector>

#include "load/lane.h"
#include "load/ledger.h"

namespace tocsin::bench {

class Consumer final : public Lane::Owner {
 public:
  struct Settings {
    size_t reserve = 1;
    bool single = false;
    Nanos poll{};  // 0: reserves wait
  };

  Consumer(Poller& poller, const Endpoint& endpoint, const std::string& ca, Protocol& protocol, Ledger& ledger,
           const Settings& settings);

  void Start() { Reserve(); }
  /// When it wants to ask again; Instant::max() if it waits for the server.
  Instant asks_at() const { return asks_at_; }
  void AskAgain();

  void Delivered(std::string_view token, std::string_view payload) override;
  void Answered(Lane& lane, const Request& request) override;

 private:
  bool in_place() const { return !settling_; }
  void Reserved(uint32_t jobs);
  void Reserve();
  void Settle();

  Ledger& ledger_;
  const Settings settings_;
  Lane lane_;
  std::optional<Lane> settling_;
  bool reserving_ = false;
  std::vector<Token> tokens_;
  Instant asks_at_ = Instant::max();
};

}  // namespace tocsin::bench
