#include "clients/redis/master_client.h"

namespace tocsin::redis {

MasterClient::MasterClient(std::unique_ptr<Context> given)
    : BaseClient(std::move(given)), lane_(context(), context().options.mode == Mode::kSentinel, *this) {
  if (context().options.mode != Mode::kSentinel) return;
  finder_ = std::make_unique<MasterFinder>(context(), [this](const Endpoint& master) {
    if (master != lane_.endpoint()) lane_.Renew();
  });
}

MasterClient::~MasterClient() { Close(); }

void MasterClient::Start() {
  lane_.Open();
  if (finder_ != nullptr) finder_->Watch();
}

void MasterClient::CloseLanes(Requests& sent, Requests& unsent) {
  lane_.Close(sent, unsent);
  if (finder_ != nullptr) finder_->Close();
}

void MasterClient::Where(Lane& lane) { Locate(lane); }

void MasterClient::WhereToListen(Link& subscription) { Locate(subscription); }

void MasterClient::Locate(Link& link) {
  if (finder_ == nullptr) return link.ConnectTo(context().options.endpoints.front());
  // The master that was named last was of no use: that sentinel may not have heard of the new one.
  if (!link.trouble().empty()) finder_->Doubt();
  finder_->Find(
      [&link](const Result<Endpoint>& master) { master ? link.ConnectTo(*master) : link.NotFound(master.error()); });
}

void MasterClient::LaneUp(Lane& lane) {
  if (subscription().endpoint() != lane.endpoint()) subscription().Renew();
  NotifyUp();
}

void MasterClient::Redirected(Lane& /*lane*/, RequestPtr request, Reply reply) {
  // A node of a Cluster that is used as a single server: only the caller can tell what that means.
  Finish(std::move(request), std::move(reply));
}

void MasterClient::Demoted(Lane& lane) {
  if (finder_ == nullptr) return;
  finder_->Doubt();
  lane.Renew();
}

void MasterClient::CallEach(const Command& command,
                            std::move_only_function<void(Result<std::vector<std::pair<Endpoint, Reply>>>)> answer) {
  Call(command, [this, answer = std::move(answer)](Result<Reply> reply) mutable {
    if (!reply) return answer(std::unexpected(std::move(reply).error()));
    std::vector<std::pair<Endpoint, Reply>> all;
    all.emplace_back(lane_.endpoint(), std::move(*reply));
    answer(std::move(all));
  });
}

std::vector<ServerHealth> MasterClient::Health() const {
  std::vector<ServerHealth> all{lane_.Health()};
  if (finder_ == nullptr) {
    all.front().endpoint = context().options.endpoints.front();
  } else {
    finder_->AddHealth(all);
  }
  return all;
}

}  // namespace tocsin::redis
