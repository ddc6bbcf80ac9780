#include "storage/redis/groups.h"

#include <bit>
#include <charconv>

#include "base/result.h"

namespace tocsin::redis {
namespace {

uint32_t Reversed(uint32_t number, int bits) {
  uint32_t reversed = 0;
  for (int bit = 0; bit < bits; ++bit) reversed |= (number >> bit & 1U) << (bits - 1 - bit);
  return reversed;
}

}  // namespace

std::optional<Groups> ParseGroups(std::string_view text) {
  Groups groups;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), groups.count);
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  groups.plain = rest == " plain";
  if (error != std::errc() || (!rest.empty() && !groups.plain)) return std::nullopt;
  if (!std::has_single_bit(groups.count) || groups.count < kGroups || groups.count > kGroupsMax) return std::nullopt;
  return groups;
}

GroupTags::GroupTags(std::string_view prefix, Groups groups) : tags_(groups.count) {
  TOCSIN_CHECK(std::has_single_bit(groups.count) && groups.count <= kGroupsMax);
  const int bits = std::countr_zero(groups.count);
  const uint32_t part = kHashSlots / groups.count;
  // Numbers of six digits have all hash slots, whatever stands before them, so this ends.
  for (uint32_t number = 0, left = groups.count; left > 0; ++number) {
    std::string tag = fmt::format("{{{}.{}}}", prefix, number);
    const uint32_t even = Reversed(static_cast<uint32_t>(HashSlot(tag)) / part, bits);
    std::string& place = tags_[groups.plain ? number : even];
    if (!place.empty()) continue;
    place = std::move(tag);
    --left;
  }
}

void ReadGroups(Client& client, std::string_view prefix, uint32_t wanted, Done<Groups> done) {
  const SharedKeys keys(prefix);
  Command command(Lua<"groups">(), 2, keys.groups);
  command.Add(keys.topics).Add(int64_t{wanted});
  client.Call(std::move(command), [name = std::string(prefix), done = std::move(done)](Result<Reply> reply) mutable {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    const ReplyView root = reply->root();
    if (root.error()) return done(Fail(Code::kUnavailable, "Redis refused: {}", root.text()));
    const std::string key = SharedKeys(name).groups;
    if (root.text().empty()) {
      return done(FailField(Code::kInvalidArgument, "redis.prefix",
                            "redis.prefix: {} has topics in Redis, but the key {} with the number of its groups is "
                            "missing. If an earlier program without that key has made the topics: SET {} \"64 plain\". "
                            "If Redis has lost it: set it to what it was, which the log of a node that ran says",
                            name, key, key));
    }
    const std::optional<Groups> groups = ParseGroups(root.text());
    if (!groups) {
      return done(FailField(Code::kInvalidArgument, "redis.prefix",
                            "redis.prefix: {} in Redis is \"{}\": not a power of two from {} to {}", key, root.text(),
                            kGroups, kGroupsMax));
    }
    done(*groups);
  });
}

}  // namespace tocsin::redis
