#include "clients/redis/master_client.h"

#include <charconv>

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

void MasterClient::CallEach(const Command& command, std::move_only_function<void(Result<Each>)> answer) {
  Call(command, [this, answer = std::move(answer)](Result<Reply> reply) mutable {
    if (!reply) return answer(std::unexpected(std::move(reply).error()));
    Each all;
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

MasterFinder::MasterFinder(Context& context, std::move_only_function<void(const Endpoint&)> announced)
    : context_(context),
      announced_(std::move(announced)),
      announcements_(context, SentinelLogin(),
                     {.where =
                          [this](Link& link) {
                            const auto& sentinels = context_.options.endpoints;
                            link.ConnectTo(sentinels[listened_++ % sentinels.size()]);
                          },
                      .back = [this] { Announced(); }}) {}

Login MasterFinder::SentinelLogin() const {
  return {context_.options.sentinel_username, context_.options.sentinel_password};
}

void MasterFinder::Watch() {
  announcements_.Add("+switch-master", [this](std::string_view, std::string_view message) {
    // <name> <old ip> <old port> <new ip> <new port>
    if (message.substr(0, message.find(' ')) == context_.options.master) Announced();
  });
}

void MasterFinder::Announced() {
  // This sentinel has the latest news: ask it first.
  const auto& sentinels = context_.options.endpoints;
  const auto at = std::ranges::find(sentinels, announcements_.endpoint());
  first_ = static_cast<size_t>(at - sentinels.begin());
  // A search under way may have asked a sentinel that does not know it yet.
  inquiry_ = nullptr;
  Find([this](const Result<Endpoint>& master) {
    if (master) announced_(*master);
  });
}

std::vector<Endpoint> MasterFinder::Sentinels() const {
  std::vector<Endpoint> sentinels = context_.options.endpoints;
  std::ranges::rotate(sentinels, sentinels.begin() + static_cast<ptrdiff_t>(first_ % sentinels.size()));
  return sentinels;
}

void MasterFinder::Find(Found found) {
  if (closed_) return;
  waiting_.push_back(std::move(found));
  if (inquiry_ != nullptr) return;
  Command ask("SENTINEL");
  ask.Add("get-master-addr-by-name").Add(context_.options.master);
  inquiry_ = std::make_unique<Inquiry>(
      context_,
      Inquiry::Question{Sentinels(), SentinelLogin(), std::move(ask),
                        [this](const Endpoint& sentinel, const Reply& reply) { return Take(sentinel, reply); }},
      [this](const Status& status) { End(status); });
}

Status MasterFinder::Take(const Endpoint& sentinel, const Reply& reply) {
  const ReplyView root = reply.root();
  const std::string& name = context_.options.master;
  if (root.error()) return Fail(Code::kUnavailable, "sentinel at {}: {}", sentinel.Text(), root.text());
  if (root.size() != 2) {
    return Fail(Code::kUnavailable, "sentinel at {} knows no master '{}'", sentinel.Text(), name);
  }
  const std::string_view port = root[1].text();
  Endpoint master{std::string(root[0].text()), 0};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), master.port);
  if (error != std::errc() || master.port == 0 || master.host.empty()) {
    return Fail(Code::kUnavailable, "sentinel at {} gives no address for the master '{}'", sentinel.Text(), name);
  }
  master_ = std::move(master);
  const auto& sentinels = context_.options.endpoints;
  first_ = static_cast<size_t>(std::ranges::find(sentinels, sentinel) - sentinels.begin());
  return {};
}

void MasterFinder::End(const Status& status) {
  inquiry_ = nullptr;
  const Result<Endpoint> result =
      status ? Result<Endpoint>(master_) : Result<Endpoint>(std::unexpected(status.error()));
  for (Found& found : std::exchange(waiting_, {})) found(result);
}

void MasterFinder::Close() {
  closed_ = true;
  inquiry_ = nullptr;
  waiting_.clear();
  Requests none;
  announcements_.Close(none, none);
}

void MasterFinder::AddHealth(std::vector<ServerHealth>& all) const {
  const ServerHealth listening = announcements_.Health();
  for (const Endpoint& sentinel : context_.options.endpoints) {
    ServerHealth health{.endpoint = sentinel, .state = "not in use"};
    if (sentinel == listening.endpoint) health = listening;
    health.role = "sentinel";
    all.push_back(std::move(health));
  }
}

}  // namespace tocsin::redis
