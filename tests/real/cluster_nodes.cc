#include "real/cluster_nodes.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <fmt/format.h>

namespace tocsin::real {

namespace {

int Number(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// id ip:port@bus[,host] flags master ping pong epoch link [range...]; [slot->-id] is a slot that moves.
ClusterNode ParseLine(const std::string& line) {
  ClusterNode node;
  std::istringstream words(line);
  std::string address;
  std::string flags;
  std::string unused;
  words >> node.id >> address >> flags >> node.master >> unused >> unused >> node.epoch >> unused;
  node.port = static_cast<uint16_t>(Number(std::string_view(address).substr(address.rfind(':') + 1)));
  node.myself = flags.starts_with("myself,");
  node.flags = node.myself ? flags.substr(flags.find(',') + 1) : flags;
  for (std::string range; words >> range;) {
    if (range.starts_with('[')) continue;
    const size_t dash = range.find('-');
    const std::string_view first = std::string_view(range).substr(0, dash);
    const std::string_view last = dash == std::string::npos ? first : std::string_view(range).substr(dash + 1);
    node.hash_slots.emplace_back(Number(first), Number(last));
  }
  return node;
}

}  // namespace

bool ClusterNode::Serves(int hash_slot) const {
  return std::ranges::any_of(hash_slots,
                             [&](const auto& range) { return range.first <= hash_slot && hash_slot <= range.second; });
}

std::vector<ClusterNode> ParseClusterNodes(std::string_view text) {
  std::vector<ClusterNode> nodes;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) nodes.push_back(ParseLine(line));
  }
  return nodes;
}

std::string ViewOf(std::vector<ClusterNode> nodes) {
  std::ranges::sort(nodes, {}, &ClusterNode::id);
  std::string view;
  for (const ClusterNode& node : nodes) {
    view += fmt::format("{} {} {} {} {}", node.id, node.port, node.flags, node.master, node.epoch);
    for (const auto& [first, last] : node.hash_slots) view += fmt::format(" {}-{}", first, last);
    view += '\n';
  }
  return view;
}

}  // namespace tocsin::real
