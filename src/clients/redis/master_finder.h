// MasterFinder: asks the sentinels which server is the master, one after the other, beginning with the one that
// answered last. The first answer counts; the connection then checks the server's ROLE.
//
// It never relies on an event alone: a search ends within the timeouts of its connections, and after a failed search
// the caller searches again after a back-off. A sentinel's announcement (+switch-master) only makes it faster; whenever
// one could have been missed, the finder asks a sentinel.
//
// Owned by a MasterClient, on its thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "clients/redis/inquiry.h"
#include "clients/redis/subscription.h"

namespace tocsin::redis {

class MasterFinder {
 public:
  using Found = std::move_only_function<void(const Result<Endpoint>& master)>;

  /// `announced`: a sentinel names this master, which may be the one in use.
  MasterFinder(Context& context, std::move_only_function<void(const Endpoint&)> announced);

  /// `found` runs once, never within the call, unless the finder is closed before. Searches that overlap are one.
  void Find(Found found);
  /// The master that was found did not work: the next search begins with another sentinel.
  void Doubt() { ++first_; }
  /// Listens for announcements from now on.
  void Watch();
  void Close();

  void AddHealth(std::vector<ServerHealth>& all) const;

 private:
  Login SentinelLogin() const;
  /// All sentinels, beginning with `first_`.
  std::vector<Endpoint> Sentinels() const;
  Status Take(const Endpoint& sentinel, const Reply& reply);
  void End(const Status& status);
  void Announced();

  Context& context_;
  std::move_only_function<void(const Endpoint&)> announced_;
  size_t first_ = 0;
  Endpoint master_;
  std::unique_ptr<Inquiry> inquiry_;
  std::vector<Found> waiting_;
  size_t listened_ = 0;  // sentinels tried for the announcements
  Subscription announcements_;
  bool closed_ = false;
};

}  // namespace tocsin::redis
