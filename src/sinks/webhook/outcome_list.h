// The list of outcomes in a receiver's answer, read entry by entry. No table of keys is made of it: a receiver could
// choose keys that collide. A pure function.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin::webhook {

/// What the receiver says of one job. A member that is missing or of another type is empty.
struct ListedOutcome {
  std::string id;
  std::string token;
  std::string outcome;
  std::string reason;
  std::optional<int64_t> delay_ms;
};

/// Calls `take` with each object of the list, also with those before the place where the body turns out to be bad.
/// Whether the body is JSON: an object with one list, `outcomes`.
bool ReadOutcomeList(std::string_view body, const std::function<void(const ListedOutcome&)>& take);

}  // namespace tocsin::webhook
