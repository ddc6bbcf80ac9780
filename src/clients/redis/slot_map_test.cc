#include "clients/redis/slot_map.h"

#include <gtest/gtest.h>

namespace tocsin::redis {
namespace {

const Endpoint kAsked{"10.0.0.1", 7000};

std::string Text(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }
std::string Server(std::string_view host, int port) {
  return fmt::format("*3\r\n{}:{}\r\n{}", Text(host), port, Text("id"));
}
std::string Range(int first, int last, const std::vector<std::string>& servers) {
  std::string wire = fmt::format("*{}\r\n:{}\r\n:{}\r\n", servers.size() + 2, first, last);
  for (const std::string& server : servers) wire += server;
  return wire;
}

Result<SlotMap> Parsed(const std::vector<std::string>& ranges) {
  std::string wire = fmt::format("*{}\r\n", ranges.size());
  for (const std::string& range : ranges) wire += range;
  ReplyBuilder builder;
  builder.Feed(wire);
  return SlotMap::Parse(builder.Next().value().value(), kAsked);
}

std::string OwnerOf(const SlotMap& map, int hash_slot) {
  const auto server = map.OwnerOf(hash_slot);
  return server ? map.servers()[*server].endpoint.Text() : "nobody";
}

TEST(SlotMap, KnowsWhoServesWhat) {
  const auto map = Parsed({Range(0, 5, {Server("b", 2), Server("c", 3)}), Range(10, 16'383, {Server("a", 1)})});
  ASSERT_TRUE(map);
  EXPECT_EQ(OwnerOf(*map, 0), "b:2");
  EXPECT_EQ(OwnerOf(*map, 5), "b:2");
  EXPECT_EQ(OwnerOf(*map, 6), "nobody");
  EXPECT_EQ(OwnerOf(*map, 10), "a:1");
  EXPECT_EQ(OwnerOf(*map, 16'383), "a:1");
  const std::vector<SlotMap::Server> servers{{{"a", 1}, 16'374, true}, {{"b", 2}, 6, true}, {{"c", 3}, 0, false}};
  EXPECT_EQ(map->servers(), servers);
}

TEST(SlotMap, IsTheSameWhoeverTellsIt) {
  const std::string low = Range(0, 8'191, {Server("b", 2)});
  const std::string high = Range(8'192, 16'383, {Server("a", 1)});
  EXPECT_EQ(*Parsed({low, high}), *Parsed({high, low}));
  EXPECT_NE(*Parsed({low, high}), *Parsed({low, Range(8'192, 16'382, {Server("a", 1)})}));
}

TEST(SlotMap, TakesTheHostThatWasAskedWhereANodeLeavesItOut) {
  const std::string nil = "*2\r\n$-1\r\n:7001\r\n";
  const auto map = Parsed({Range(0, 0, {Server("", 7'000)}), Range(1, 1, {nil}), Range(2, 2, {Server("?", 7'002)})});
  ASSERT_TRUE(map);
  EXPECT_EQ(OwnerOf(*map, 0), "10.0.0.1:7000");
  EXPECT_EQ(OwnerOf(*map, 1), "10.0.0.1:7001");
  EXPECT_EQ(OwnerOf(*map, 2), "10.0.0.1:7002");
}

TEST(SlotMap, MovesASlotToANodeThatMayBeNew) {
  auto map = *Parsed({Range(0, 9, {Server("a", 1), Server("b", 2)})});
  map.Move(3, {"b", 2});
  map.Move(4, {"z", 9});
  map.Move(12, {"a", 1});
  EXPECT_EQ(OwnerOf(map, 3), "b:2");
  EXPECT_EQ(OwnerOf(map, 4), "z:9");
  const std::vector<SlotMap::Server> servers{{{"a", 1}, 9, true}, {{"b", 2}, 1, true}, {{"z", 9}, 1, true}};
  EXPECT_EQ(map.servers(), servers);
}

TEST(SlotMap, RefusesWhatIsNone) {
  EXPECT_FALSE(Parsed({"+x\r\n"}));
  EXPECT_FALSE(Parsed({Range(0, 16'384, {Server("a", 1)})}));
  EXPECT_FALSE(Parsed({Range(-1, 5, {Server("a", 1)})}));
  EXPECT_FALSE(Parsed({Range(6, 5, {Server("a", 1)})}));
  EXPECT_FALSE(Parsed({Range(0, 5, {})}));
  EXPECT_FALSE(Parsed({Range(0, 5, {Server("a", 65'536)})}));
  EXPECT_FALSE(Parsed({Range(0, 5, {"*0\r\n"})}));
  ReplyBuilder builder;
  builder.Feed("-ERR This instance has cluster support disabled\r\n");
  const auto refused = SlotMap::Parse(builder.Next().value().value(), kAsked);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("cluster support disabled"), std::string::npos);
}

}  // namespace
}  // namespace tocsin::redis
