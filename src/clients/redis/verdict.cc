#include "clients/redis/verdict.h"

#include <array>
#include <charconv>

namespace tocsin::redis {
namespace {

struct Row {
  std::string_view word;
  Verdict verdict;
};
constexpr std::array kRows{
    Row{"MOVED", Verdict::kMoved},       Row{"ASK", Verdict::kAsk},           Row{"TRYAGAIN", Verdict::kLater},
    Row{"CLUSTERDOWN", Verdict::kLater}, Row{"LOADING", Verdict::kLater},     Row{"MASTERDOWN", Verdict::kDemoted},
    Row{"READONLY", Verdict::kDemoted},  Row{"NOSCRIPT", Verdict::kNoScript},
};

template <class T>
bool ParseNumber(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Verdict Judge(const Reply& reply) {
  if (reply.kind() != Kind::kError) return Verdict::kAnswer;
  const std::string_view text = reply.root().text();
  const std::string_view word = text.substr(0, text.find(' '));
  for (const Row& row : kRows) {
    if (row.word == word) return row.verdict;
  }
  return Verdict::kAnswer;
}

std::optional<Redirect> ParseRedirect(std::string_view text, const Endpoint& from) {
  const size_t slot = text.find(' ');
  const size_t place = slot == std::string_view::npos ? slot : text.find(' ', slot + 1);
  const size_t colon = text.rfind(':');
  if (place == std::string_view::npos || colon == std::string_view::npos || colon < place) return std::nullopt;
  Redirect redirect;
  if (!ParseNumber(text.substr(slot + 1, place - slot - 1), redirect.hash_slot)) return std::nullopt;
  if (!ParseNumber(text.substr(colon + 1), redirect.to.port)) return std::nullopt;
  if (redirect.hash_slot < 0 || redirect.hash_slot >= kHashSlots || redirect.to.port == 0) return std::nullopt;
  const std::string_view host = text.substr(place + 1, colon - place - 1);
  redirect.to.host = host.empty() || host == "?" ? from.host : std::string(host);
  return redirect;
}

}  // namespace tocsin::redis
