#include "server/token_guard.h"

#include "base/log.h"
#include "server/options.h"

namespace tocsin {

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
  tokens_ = *std::move(tokens);
  LogInfo("access tokens read again: {}", tokens_->size());
  WarnIfNone();
  changed_(tokens_);
}

void TokenGuard::WarnIfNone() const {
  if (tokens_->size() > 0) return;
  LogWarn("{} has no access tokens: every call is refused until `tocsin token create` makes one", path_);
}

}  // namespace tocsin
