// MasterClient: the client of one server, or of the master that the sentinels name. One link; it follows the master.
//
// Order: commands run in the order of their calls. One that is tried again (LOADING, READONLY, MASTERDOWN) runs after
// later ones.
#pragma once

#include "clients/redis/base_client.h"
#include "clients/redis/master_finder.h"

namespace tocsin::redis {

class MasterClient final : public BaseClient {
 public:
  explicit MasterClient(std::unique_ptr<Context> context);
  ~MasterClient() override;

  void Start() override;
  void CallEach(const Command& command,
                std::move_only_function<void(Result<std::vector<std::pair<Endpoint, Reply>>>)> answer) override;
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
