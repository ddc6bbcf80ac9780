#include "frontend/http/login.h"

#include <algorithm>

#include "frontend/http/header_check.h"
#include "frontend/http/json_writer.h"
#include "frontend/http/server.h"
#include "frontend/http/session.h"
#include "frontend/shared/audit.h"

namespace tocsin::http {
namespace {

using Field = boost::beast::http::field;

/// Digits alone: the text becomes a part of a header.
std::string_view PortOf(std::string_view host) {
  const size_t colon = host.rfind(':');
  if (colon == std::string_view::npos || host.ends_with(']')) return {};
  const std::string_view port = host.substr(colon + 1);
  return port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos ? port : "";
}

std::string Encode(const Call& call, const auth::Grant* grant, bool authentication) {
  JsonWriter out;
  out.Object(7);
  out.Member("name", grant == nullptr ? std::string_view() : std::string_view(grant->name));
  out.Name("scopes");
  out.Array(auth::kScopeNames.size());
  for (const std::string_view name : auth::kScopeNames) {
    if (grant == nullptr || grant->scopes.HasItself(*auth::ParseScope(name))) out.Text(name);
  }
  out.EndArray();
  out.Member("prefix", grant == nullptr ? std::string_view() : std::string_view(grant->prefix));
  out.Member("authentication", authentication);
  out.Member("clock", call.context.virtual_clock != nullptr ? std::string_view("virtual") : std::string_view("real"));
  out.Member("version", std::string_view(call.context.node.version));
  out.Member("now_ms", ToMs(call.context.clock.Now().utc));
  out.EndObject();
  return out.Take();
}

/// Whether the browser speaks TLS, to this server or to a proxy in front of it.
bool IsSecure(const Session& session) {
  return session.secure() || session.FieldOf(Field::origin).starts_with("https://");
}

constexpr std::string_view kNotKept = "Cache-Control: no-store\r\n";

}  // namespace

std::string CookieName(std::string_view host) {
  const std::string_view port = PortOf(host);
  return port.empty() ? "tocsin" : fmt::format("tocsin_{}", port);
}

std::string BearerInCookie(std::string_view cookies, std::string_view host) {
  if (cookies.empty()) return {};
  const std::string name = CookieName(host);
  while (!cookies.empty()) {
    const std::string_view pair = cookies.substr(0, cookies.find(';'));
    cookies.remove_prefix(std::min(cookies.size(), pair.size() + 1));
    const std::string_view cookie = Trimmed(pair);
    const size_t equals = cookie.find('=');
    if (equals != std::string_view::npos && cookie.substr(0, equals) == name) {
      return fmt::format("Bearer {}", cookie.substr(equals + 1));
    }
  }
  return {};
}

std::string SetCookieLine(std::string_view token, std::string_view host, bool secure) {
  return fmt::format("Set-Cookie: {}={}; Path=/; HttpOnly; SameSite=Strict{}{}\r\n", CookieName(host), token,
                     secure ? "; Secure" : "", token.empty() ? "; Max-Age=0" : "");
}

Status BeginSession(Call& call) {
  TOCSIN_ASSIGN(const Decoded decoded, DecodeCall(call));
  const std::string_view token = decoded.arguments.access_token;
  const auto tokens = call.session.tokens();
  const auth::Grant* const grant = tokens == nullptr ? nullptr : tokens->Find(token);
  if (tokens != nullptr && grant == nullptr) {
    const Error error{Code::kUnauthenticated, "the access token is not known: it is mistyped, or revoked", "token"};
    shared::LogRefusedLogin(call.session, "http", error, call.loop.clock().IoNow());
    return std::unexpected(error);
  }
  Response response{.body = Encode(call, grant, tokens != nullptr), .fields = std::string(kNotKept)};
  if (grant != nullptr) {
    response.fields += SetCookieLine(token, call.session.FieldOf(Field::host), IsSecure(call.session));
  }
  call.answer.Send(std::move(response));
  return {};
}

Status ShowSession(Call& call) {
  const bool authentication = call.session.tokens() != nullptr;
  call.answer.Send({.body = Encode(call, call.grant, authentication), .fields = std::string(kNotKept)});
  return {};
}

Status EndSession(Call& call) {
  Response response{.body = R"({"outcome":"ended"})", .fields = std::string(kNotKept)};
  response.fields += SetCookieLine({}, call.session.FieldOf(Field::host), IsSecure(call.session));
  call.answer.Send(std::move(response));
  return {};
}

}  // namespace tocsin::http
