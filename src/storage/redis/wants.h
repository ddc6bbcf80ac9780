// Wants: which other nodes wait for jobs of which topic, as the owner of one group knows it. Kept in memory alone:
// nodes say it again, to a new owner at once and to every one now and then.
//
// Owned by a Group; used only on its store's thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::redis {

class Wants {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kKept{40};  // after it was last heard of

  void Add(std::string_view topic, std::string_view who, TimePoint now) {
    auto at = by_topic_.find(topic);
    if (at == by_topic_.end()) at = by_topic_.emplace(topic, std::deque<Node>{}).first;
    const auto known = std::ranges::find(at->second, who, &Node::who);
    if (known == at->second.end()) return at->second.push_back({std::string(who), now}), void();
    known->heard = now;
  }
  void Forget(std::string_view topic, std::string_view who) {
    const auto at = by_topic_.find(topic);
    if (at == by_topic_.end()) return;
    std::erase_if(at->second, [&](const Node& node) { return node.who == who; });
    if (at->second.empty()) by_topic_.erase(at);
  }
  /// Whom to tell next: they take turns. Empty if nobody except `except` wants it. `doubted` says of a node whether it
  /// may be dead: those come after all others.
  template <class Doubted>
  std::string Next(std::string_view topic, std::string_view except, const Doubted& doubted) {
    const auto at = by_topic_.find(topic);
    if (at == by_topic_.end()) return {};
    std::deque<Node>& nodes = at->second;
    const auto fits = [&](const Node& node) { return node.who != except; };
    auto next = std::ranges::find_if(nodes, [&](const Node& node) { return fits(node) && !doubted(node.who); });
    if (next == nodes.end()) next = std::ranges::find_if(nodes, fits);
    if (next == nodes.end()) return {};
    Node node = std::move(*next);
    nodes.erase(next);
    nodes.push_back(std::move(node));
    return nodes.back().who;
  }
  /// Forgets those that were not heard of for kKept.
  void Expire(TimePoint now) {
    for (auto at = by_topic_.begin(); at != by_topic_.end();) {
      std::erase_if(at->second, [&](const Node& node) { return now - node.heard >= kKept; });
      at = at->second.empty() ? by_topic_.erase(at) : std::next(at);
    }
  }

 private:
  struct Node {
    std::string who;
    TimePoint heard;
  };
  std::map<std::string, std::deque<Node>, std::less<>> by_topic_;  // who waits longest comes first
};

}  // namespace tocsin::redis
