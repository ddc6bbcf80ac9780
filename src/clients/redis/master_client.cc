#include "clients/redis/master_client.h"

namespace tocsin::redis {

MasterClient::MasterClient(std::unique_ptr<Context> given)
    : BaseClient(std::move(given)), link_(context(), context().options.mode == Mode::kSentinel, *this) {
  if (context().options.mode != Mode::kSentinel) return;
  finder_ = std::make_unique<MasterFinder>(context(), [this](const Endpoint& master) {
    if (master != link_.endpoint()) link_.Renew();
  });
}

MasterClient::~MasterClient() { Close(); }

void MasterClient::Start() {
  link_.Open();
  if (finder_ != nullptr) finder_->Watch();
}

void MasterClient::CloseLinks(Requests& sent, Requests& unsent) {
  link_.Close(sent, unsent);
  if (finder_ != nullptr) finder_->Close();
}

void MasterClient::Where(CommandLink& link) { Locate(link); }

void MasterClient::WhereToListen(Link& subscription) { Locate(subscription); }

void MasterClient::Locate(Link& link) {
  if (finder_ == nullptr) return link.ConnectTo(context().options.endpoints.front());
  // The last master did not work: that sentinel may not know the new one yet.
  if (!link.trouble().empty()) finder_->Doubt();
  finder_->Find(
      [&link](const Result<Endpoint>& master) { master ? link.ConnectTo(*master) : link.NotFound(master.error()); });
}

void MasterClient::LinkUp(CommandLink& link) {
  if (subscription().endpoint() != link.endpoint()) subscription().Renew();
  NotifyUp();
}

void MasterClient::Redirected(CommandLink& /*link*/, RequestPtr request, Reply reply) {
  // A server of a Cluster, used as a single server: only the caller knows what that means.
  Finish(std::move(request), std::move(reply));
}

void MasterClient::Demoted(CommandLink& link) {
  if (finder_ == nullptr) return;
  finder_->Doubt();
  link.Renew();
}

void MasterClient::CallEach(const Command& command,
                            std::move_only_function<void(Result<std::vector<std::pair<Endpoint, Reply>>>)> answer) {
  Call(command, [this, answer = std::move(answer)](Result<Reply> reply) mutable {
    if (!reply) return answer(std::unexpected(std::move(reply).error()));
    std::vector<std::pair<Endpoint, Reply>> all;
    all.emplace_back(link_.endpoint(), std::move(*reply));
    answer(std::move(all));
  });
}

std::vector<ServerHealth> MasterClient::Health() const {
  std::vector<ServerHealth> all{link_.Health()};
  if (finder_ == nullptr) {
    all.front().endpoint = context().options.endpoints.front();
  } else {
    finder_->AddHealth(all);
  }
  return all;
}

}  // namespace tocsin::redis
