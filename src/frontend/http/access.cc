#include "frontend/http/access.h"

#include <algorithm>

namespace tocsin::http {
namespace {

constexpr std::string_view kScheme = "bearer ";

Result<std::string_view> BearerOf(std::string_view authorization) {
  if (authorization.empty()) {
    return Fail(
        Code::kUnauthenticated,
        "this server needs a token: send the header Authorization: Bearer TOKEN (tocsin token create makes one)");
  }
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (!std::ranges::equal(authorization.substr(0, kScheme.size()), kScheme, {}, lower)) {
    return Fail(Code::kUnauthenticated, "the Authorization header is not of the form: Bearer TOKEN");
  }
  authorization.remove_prefix(kScheme.size());
  const size_t begin = std::min(authorization.size(), authorization.find_first_not_of(' '));
  return authorization.substr(begin);
}

}  // namespace

Result<const auth::Grant*> CheckAccess(const auth::TokenSet* tokens, Access needed, std::string_view authorization,
                                       std::string_view topic) {
  if (tokens == nullptr || needed == Access::kOpen) return nullptr;
  const auto bearer = BearerOf(authorization);
  if (!bearer) return std::unexpected(bearer.error());
  const auth::Grant* const grant = tokens->Find(*bearer);
  if (grant == nullptr) {
    return Fail(Code::kUnauthenticated, "the token is not known: it is mistyped, or revoked");
  }
  TOCSIN_TRY(auth::CheckGrant(*grant, needed, topic));
  return grant;
}

}  // namespace tocsin::http
