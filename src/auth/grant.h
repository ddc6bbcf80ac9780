// What an access token allows: some scopes, on the topics whose names begin with its prefix. Pure values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin::auth {

enum class Scope : uint8_t { kSubmit, kConsume, kAdmin };

constexpr std::array<std::string_view, 3> kScopeNames{"submit", "consume", "admin"};

/// kAdmin includes the other two.
class ScopeSet {
 public:
  void Add(Scope scope) { bits_ |= Bit(scope); }
  bool Has(Scope scope) const { return (bits_ & (Bit(scope) | Bit(Scope::kAdmin))) != 0; }
  bool empty() const { return bits_ == 0; }
  /// "submit,consume"
  std::string Text() const;

  friend bool operator==(const ScopeSet&, const ScopeSet&) = default;

 private:
  static constexpr uint8_t Bit(Scope scope) { return static_cast<uint8_t>(1U << static_cast<unsigned>(scope)); }

  uint8_t bits_ = 0;
};

std::string_view NameOf(Scope scope);
std::optional<Scope> ParseScope(std::string_view name);

struct Grant {
  std::string name;  // of the holder, for people
  ScopeSet scopes;
  std::string prefix;  // of topics; empty: all of them

  bool Covers(std::string_view topic) const { return topic.starts_with(prefix); }
  bool Allows(Scope scope, std::string_view topic) const { return scopes.Has(scope) && Covers(topic); }
  bool AllowsAll(Scope scope) const { return scopes.Has(scope) && prefix.empty(); }
};

}  // namespace tocsin::auth
