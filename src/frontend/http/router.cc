#include "frontend/http/router.h"

#include <algorithm>

#include "frontend/http/text.h"
#include "frontend/http/unknown_field.h"
#include "model/topic.h"

namespace tocsin::http {
namespace {

/// Cuts the first segment off a path that begins with a slash.
std::string_view NextSegment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

bool IsName(std::string_view segment) { return segment.starts_with('{'); }

bool Matches(std::string_view pattern, std::string_view path) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view want = NextSegment(pattern);
    const std::string_view have = NextSegment(path);
    if (IsName(want) ? have.empty() : want != have) return false;
  }
  return pattern.empty() && path.empty();
}

Result<std::vector<std::string>> Params(std::string_view pattern, std::string_view path) {
  std::vector<std::string> params;
  while (!pattern.empty()) {
    const std::string_view want = NextSegment(pattern);
    const std::string_view have = NextSegment(path);
    if (!IsName(want)) continue;
    auto param = DecodePercent(have, false);
    const std::string_view name = want.substr(1, want.size() - 2);
    if (!param) {
      return FailField(Code::kInvalidArgument, std::string(name), "'{}' in the path has a malformed % escape",
                       Shown(have));
    }
    if (name == "topic") TOCSIN_TRY(ValidateTopicName(*param));
    params.push_back(*std::move(param));
  }
  return params;
}

}  // namespace

Result<Match> Router::Find(Verb method, std::string_view target, std::string* allow) const {
  const std::string_view path = target.substr(0, target.find('?'));
  std::string methods;
  for (const Route& route : routes_) {
    if (!path.starts_with('/') || !Matches(route.pattern, path)) continue;
    if (route.method != method) {
      methods += methods.empty() ? "" : ", ";
      methods += std::string_view(boost::beast::http::to_string(route.method));
      if (route.method == Verb::get) methods += ", HEAD";  // the session asks for GET then
      continue;
    }
    auto params = Params(route.pattern, path);
    if (!params) return std::unexpected(std::move(params).error());
    auto query = ParseQuery(target.substr(std::min(target.size(), path.size() + 1)), route.query);
    if (!query) return std::unexpected(std::move(query).error());
    return Match{&route, *std::move(params), *std::move(query)};
  }
  if (methods.empty()) return Fail(Code::kNotFound, "there is nothing at '{}'", Shown(path));
  if (allow != nullptr) *allow = methods;
  return Fail(Code::kMethodNotAllowed, "'{}' takes {}", Shown(path), methods);
}

Result<Query> ParseQuery(std::string_view query, const std::vector<std::string_view>& known) {
  Query values;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    auto name = DecodePercent(pair.substr(0, equals), true);
    auto value = DecodePercent(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1), true);
    if (!name || !value) return Fail(Code::kInvalidArgument, "'{}' in the query has a malformed % escape", Shown(pair));
    if (std::ranges::find(known, std::string_view(*name)) == known.end()) return UnknownField(*name, known);
    if (std::ranges::find(values, *name, &Query::value_type::first) != values.end()) {
      return FailField(Code::kInvalidArgument, *name, "{} is in the query twice", *name);
    }
    values.emplace_back(*std::move(name), *std::move(value));
  }
  return values;
}

}  // namespace tocsin::http
