// MasterClient: the client of one server, or of the master that the sentinels name. One link; it follows the master.
//
// Order: commands run in the order of their calls. One that is tried again (LOADING, READONLY, MASTERDOWN) runs after
// later ones.
#pragma once

#include "clients/redis/base_client.h"
#include "clients/redis/inquiry.h"

namespace tocsin::redis {

/// Asks the sentinels which server is the master, one after the other, beginning with the one that answered last. The
/// first answer counts; the connection then checks the server's ROLE.
///
/// It never relies on an event alone: a search ends within the timeouts of its connections, and after a failed search
/// the caller searches again after a back-off. A sentinel's announcement (+switch-master) only makes it faster;
/// whenever one could have been missed, the finder asks a sentinel.
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

class MasterClient final : public BaseClient {
 public:
  explicit MasterClient(std::unique_ptr<Context> context);
  ~MasterClient() override;

  void Start() override;
  void CallEach(const Command& command, std::move_only_function<void(Result<Each>)> answer) override;
  std::vector<ServerHealth> Health() const override;

 private:
  void Route(RequestPtr request) override { link_.Send(std::move(request)); }
  void CloseLinks(Requests& sent, Requests& unsent) override;
  void Where(CommandLink& link) override;
  void WhereToListen(Link& subscription) override;
  void LinkUp(CommandLink& link) override;
  void LinkDown(CommandLink& /*link*/) override {}
  void LinkHangs(CommandLink& /*link*/) override {}
  void Redirected(CommandLink& link, RequestPtr request, Reply reply) override;
  void Demoted(CommandLink& link) override;
  void Locate(Link& link);

  CommandLink link_;
  std::unique_ptr<MasterFinder> finder_;  // null for a single server
};

}  // namespace tocsin::redis
