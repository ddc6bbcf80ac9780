#include "server/token_guard.h"

#include <unordered_map>
#include <utility>
#include <vector>

#include "base/audit.h"
#include "base/log.h"
#include "server/options.h"

namespace tocsin {
namespace {

/// Whether an access token lets the same bearer do the same, under the same name.
bool IsSame(const auth::TokenRecord& before, const auth::TokenRecord& now) {
  return before.grant.scopes == now.grant.scopes && before.grant.prefix == now.grant.prefix &&
         before.grant.name == now.grant.name && before.digest == now.digest && before.certificate == now.certificate;
}

/// Both names of an access token that has another one: earlier lines of the audit have the first.
std::string NamesOf(const auth::TokenRecord& before, const auth::TokenRecord& now) {
  if (before.grant.name == now.grant.name) return now.grant.name;
  return fmt::format("{}->{}", before.grant.name, now.grant.name);
}

}  // namespace

Result<std::unique_ptr<TokenGuard>> TokenGuard::Open(boost::asio::io_context& io, const Config& config, bool loopback) {
  if (config.auth_token_file.empty()) {
    if (!loopback) {
      LogWarn("auth.allow_unauthenticated: whoever reaches {}:{} or {}:{} may do everything", config.http_listen.host,
              config.http_listen.port, config.resp_listen.host, config.resp_listen.port);
    }
    return nullptr;
  }
  std::unique_ptr<TokenGuard> guard(new TokenGuard(io, config.auth_token_file));
  TOCSIN_ASSIGN(guard->tokens_, Prefixed("auth.token_file", guard->watch_.Poll()));
  if (guard->tokens_->size() > 0) return guard;
  if (!loopback) {
    return FailField(
        Code::kInvalidArgument, "auth.token_file",
        "auth.token_file: {0} has no access tokens; make one with `tocsin token create --file {0} --name me "
        "--scope admin`",
        config.auth_token_file);
  }
  guard->WarnIfNone();
  return guard;
}

void TokenGuard::Start(std::function<void(Tokens)> changed) {
  changed_ = std::move(changed);
  AwaitChange();
  AwaitSignal();
}

void TokenGuard::AwaitChange() {
  constexpr Millis kLook{1000};
  timer_.expires_after(kLook);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    Read();
    AwaitChange();
  });
}

void TokenGuard::AwaitSignal() {
  hangup_.async_wait([this](const boost::system::error_code& error, int) {
    if (error) return;
    watch_.Forget();
    Read();
    AwaitSignal();
  });
}

void TokenGuard::Read() {
  auto tokens = watch_.Poll();
  if (!tokens) {
    LogError("auth.token_file: {}; the access tokens that were read before stay in force", tokens.error().message);
    return;
  }
  if (*tokens == nullptr) return;
  const Tokens before = std::exchange(tokens_, *std::move(tokens));
  AuditChange(*before);
  LogInfo("access tokens read again: {}", tokens_->size());
  WarnIfNone();
  changed_(tokens_);
}

void TokenGuard::AuditChange(const auth::TokenSet& before) const {
  std::unordered_map<std::string_view, const auth::TokenRecord*> gone;
  for (const auth::TokenRecord& record : before.records()) gone.emplace(record.id, &record);
  std::string added;
  std::string removed;
  std::string changed;
  const auto add = [](std::string& names, std::string_view name) {
    names.append(names.empty() ? "" : ",").append(name);
  };
  for (const auth::TokenRecord& record : tokens_->records()) {
    const auto known = gone.find(record.id);
    if (known == gone.end()) {
      add(added, record.grant.name);
      continue;
    }
    if (!IsSame(*known->second, record)) add(changed, NamesOf(*known->second, record));
    gone.erase(known);
  }
  for (const auth::TokenRecord& record : before.records()) {
    if (gone.contains(record.id)) add(removed, record.grant.name);
  }
  std::vector<LogField> fields{{"who", "-"}, {"from", path_}, {"door", "file"}, {"act", "tokensChanged"}};
  const size_t common = fields.size();
  if (!added.empty()) fields.push_back({"added", added});
  if (!removed.empty()) fields.push_back({"removed", removed});
  if (!changed.empty()) fields.push_back({"changed", changed});
  if (fields.size() > common) Audit(fields);
}

void TokenGuard::WarnIfNone() const {
  if (tokens_->size() > 0) return;
  LogWarn("{} has no access tokens: every call is refused until `tocsin token create` makes one", path_);
}

}  // namespace tocsin
