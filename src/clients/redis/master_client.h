// MasterClient: the client of one server, or of the master that the sentinels name. One lane; it follows the master.
//
// Order: commands are carried out in the order of their calls, unless one has to be tried again (LOADING, READONLY,
// MASTERDOWN): those behind it go first then.
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
  void Route(RequestPtr request) override { lane_.Send(std::move(request)); }
  void CloseLanes(Requests& sent, Requests& unsent) override;
  void Where(Lane& lane) override;
  void WhereToListen(Link& subscription) override;
  void LaneUp(Lane& lane) override;
  void LaneDown(Lane& /*lane*/) override {}
  void LaneHangs(Lane& /*lane*/) override {}
  void Redirected(Lane& lane, RequestPtr request, Reply reply) override;
  void Demoted(Lane& lane) override;
  void Locate(Link& link);

  Lane lane_;
  std::unique_ptr<MasterFinder> finder_;  // null for a single server
};

}  // namespace tocsin::redis
