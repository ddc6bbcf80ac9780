// What an access token allows (some scopes, on the topics whose names begin with its prefix), what a call needs, and
// whether the first allows the second. The same for every front end. Pure; no message has any part of an access token
// in it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tocsin::auth {

enum class Scope : uint8_t { kSubmit, kConsume, kAdmin, kObserve };

/// In the order of Scope.
constexpr std::array<std::string_view, 4> kScopeNames{"submit", "consume", "admin", "observe"};

std::optional<Scope> ParseScope(std::string_view name);

/// kAdmin includes the others.
class ScopeSet {
 public:
  void Add(Scope scope) { bits_ |= Bit(scope); }
  bool Has(Scope scope) const { return (bits_ & (Bit(scope) | Bit(Scope::kAdmin))) != 0; }
  /// Also without what kAdmin includes.
  bool HasItself(Scope scope) const { return (bits_ & Bit(scope)) != 0; }
  bool empty() const { return bits_ == 0; }
  /// "submit,consume"
  std::string Text() const;

  friend bool operator==(const ScopeSet&, const ScopeSet&) = default;

 private:
  static constexpr uint8_t Bit(Scope scope) { return static_cast<uint8_t>(1U << static_cast<unsigned>(scope)); }

  uint8_t bits_ = 0;
};

struct Grant {
  std::string name;  // of the holder, for people
  ScopeSet scopes;
  std::string prefix;  // of topics; empty: all of them
  /// Bytes of large requests and answers that are under way for its bearers: the doors count them. Shared by copies.
  std::shared_ptr<std::atomic<size_t>> transfer_bytes = std::make_shared<std::atomic<size_t>>(0);

  bool Allows(Scope scope, std::string_view topic) const { return scopes.Has(scope) && topic.starts_with(prefix); }
  bool AllowsAll(Scope scope) const { return scopes.Has(scope) && prefix.empty(); }
};

enum class Access : uint8_t {
  kOpen,          // anyone
  kKnown,         // any access token
  kSubmit,        // on the topic
  kConsume,       // on the topic
  kShowJob,       // submit, consume or observe, on the topic
  kTopicObserve,  // on the topic
  kTopicAdmin,    // on the topic
  kListTopics,    // observe; the answer has only the topics of the grant's prefix
  kNodeObserve,   // observe of all topics
  kNodeAdmin,     // admin of all topics
};

/// Whether a call that `access` allows may show payloads to the bearer. To observe is to see everything else; a
/// producer sees the payload of a job that it names.
bool SeesPayloads(const Grant& grant, Access access);

/// The scope that a call needs, as the documents name it.
std::string_view ScopeOf(Access access);

/// kForbidden, with what would be needed, if the grant does not allow it. `topic`: that of the call.
Status CheckGrant(const Grant& grant, Access needed, std::string_view topic);

}  // namespace tocsin::auth
