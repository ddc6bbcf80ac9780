// The server's HTTP API as the commands use it: JSON in and out, and the server's errors as Errors. Owned by main, or
// by a thread of a worker; used by one thread, except for Abort.
#pragma once

#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "cli/transport/http_client.h"

namespace tocsin::cli {

namespace json = boost::json;

class Api {
 public:
  /// An empty token is none. `limit` is how long an answer may take. Connects with the first call.
  Api(Endpoint endpoint, std::string access_token, Millis limit)
      : http_(std::move(endpoint), std::move(access_token)), limit_(limit) {}

  /// The server's answer. An error of the server is an Error with the message "CODE: message (field)". So is an error
  /// status that no Tocsin server sends: kIo if it is a gateway's (502 to 504). Other errors: those of HttpClient.
  Result<json::object> Call(std::string_view method, std::string_view target, const json::object* body = nullptr,
                            std::optional<Millis> limit = std::nullopt);
  Result<json::object> Get(std::string_view target) { return Call("GET", target); }
  Result<json::object> Post(std::string_view target, const json::object& body,
                            std::optional<Millis> limit = std::nullopt) {
    return Call("POST", target, &body, limit);
  }

  /// From any thread: the call under way, and all later ones, fail.
  void Abort() { http_.Abort(); }
  /// One more connection to the same server with the same access token, for another thread.
  std::unique_ptr<Api> Another() const { return std::make_unique<Api>(http_.endpoint(), http_.access_token(), limit_); }

  const std::string& url() const { return http_.endpoint().url; }
  Millis limit() const { return limit_; }

 private:
  HttpClient http_;
  const Millis limit_;
};

/// "/v1/topics/NAME" + rest, escaped.
std::string TopicPath(std::string_view topic, std::string_view rest = "");
/// Adds "?name=value", or "&name=value" if the target has a query already, escaped.
void AppendQuery(std::string& target, std::string_view name, std::string_view value);
/// A page of the jobs of a topic. An empty cursor asks for the first page; an empty reason, for any.
std::string ListTarget(std::string_view topic, std::string_view state, int64_t limit, std::string_view cursor,
                       std::string_view reason = "");

// Fields of an answer, or the fallback: a server of another version may leave one out.
int64_t IntegerOf(const json::object& object, std::string_view name, int64_t fallback = 0);
std::string TextOf(const json::object& object, std::string_view name);
bool BoolOf(const json::object& object, std::string_view name);
const json::object& ObjectOf(const json::object& object, std::string_view name);
const json::array& ArrayOf(const json::object& object, std::string_view name);
/// The objects of an array.
inline auto ObjectsOf(const json::object& object, std::string_view name) {
  return ArrayOf(object, name) | std::views::filter([](const json::value& value) { return value.is_object(); }) |
         std::views::transform([](const json::value& value) -> const json::object& { return value.get_object(); });
}

/// Adds `payload`, or `payload_base64` if the bytes are not UTF-8.
void PutPayload(json::object& object, std::string_view bytes);
/// The bytes of either field.
std::string PayloadOf(const json::object& object);

}  // namespace tocsin::cli
