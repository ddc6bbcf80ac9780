// The server's API as the commands use it: JSON in and out, and the server's errors as Errors. Owned by main; one
// thread.
#pragma once

#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/result.h"
#include "base/time.h"
#include "cli/transport.h"

namespace tocsin::cli {

namespace json = boost::json;

struct Reply {
  json::object body;
};

class Api {
 public:
  /// `limit`: how long an answer may take.
  Api(Transport& transport, Millis limit) : transport_(transport), limit_(limit) {}

  /// As Transport::Call. `wait` is what a long poll may take besides.
  Result<Reply> Call(std::string_view method, std::string_view target, const json::object* body = nullptr,
                     Millis wait = Millis(0));
  Result<Reply> Get(std::string_view target) { return Call("GET", target); }
  Result<Reply> Delete(std::string_view target) { return Call("DELETE", target); }
  Result<Reply> Post(std::string_view target) { return Call("POST", target); }
  Result<Reply> Post(std::string_view target, const json::object& body, Millis wait = Millis(0)) {
    return Call("POST", target, &body, wait);
  }

  Transport& transport() { return transport_; }

 private:
  Transport& transport_;
  const Millis limit_;
};

/// "/v1/topics/NAME" + rest, escaped.
std::string TopicPath(std::string_view topic, std::string_view rest = "");
/// "/v1/topics/NAME/jobs/ID" + rest, and "?key=KEY" where `key` is not empty.
std::string JobPath(std::string_view topic, std::string_view id, std::string_view key, std::string_view rest = "");

// Fields of an answer. A server of another version may leave one out: then the fallback.
int64_t IntegerOf(const json::object& object, std::string_view name, int64_t fallback = 0);
std::string TextOf(const json::object& object, std::string_view name);
bool BoolOf(const json::object& object, std::string_view name);
const json::object& ObjectOf(const json::object& object, std::string_view name);
const json::array& ArrayOf(const json::object& object, std::string_view name);

/// Adds `payload`, or `payload_base64` where the bytes are no UTF-8.
void PutPayload(json::object& object, std::string_view bytes);
/// The bytes of either field.
std::string PayloadOf(const json::object& object);

}  // namespace tocsin::cli
