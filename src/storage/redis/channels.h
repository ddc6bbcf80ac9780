// The channels of the Redis store, and what is said on them. All of it may be lost, which only delays jobs. An owner
// that told a node of a slot looks about 80 ms later whether its jobs were taken, and tells another. Other losses cost
// until the owner scans the group again: within a second if there are 64 groups, and with more of them within as many
// seconds as there are 64s in the number of groups in use.
//
//   <prefix>:group:<group>   to the group's owner, and only it listens:
//     <group> <ms>                     a job is due then, earlier than any other in the group that is not due (scripts)
//     chore <group> <ms>               a lease ends then, earlier than any other in the group (scripts)
//     want <group> <who> <topic> ...   consumers of this node wait for jobs of these topics
//     pass <group> <who> <slot>        nobody waits here any more: tell another node of the slot, and not this one
//     more <group> <who> <slot>        this node took some of its jobs, and others are due: tell another node as well
//   <prefix>:beats           to all nodes:
//     beat <who> <listens> <node> all|new [<group> <epoch> <slots> <ms>] ...   each second, with a scan: the groups
//                                      that this store looks after (epoch 0: no longer), or those that have changed
//     ask                              a node does not know who looks after what: tell all
//     figures [<slot> <numbers>] ...   from the owner, when they have changed
//   <prefix>:to:<who>        to one store, from an owner:
//     ready <slot>                     the slot has jobs to claim
//
// `who` is one store of a node. `listens` changes when messages to it may have been lost: whoever sees a new one says
// what it wants again. Names of topics, slots and nodes have no space.
//
// In a Cluster the channels of groups and stores are sharded: their names begin with a hash tag, for a group's channel
// that of its keys, and messages go to one server (`publish` of common.lua, RedisStore::Publish). Servers before Redis
// 7 tell all others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tocsin::redis {

constexpr std::string_view kMessageChore = "chore";
constexpr std::string_view kMessageWant = "want";
constexpr std::string_view kMessagePass = "pass";
constexpr std::string_view kMessageMore = "more";
constexpr std::string_view kMessageBeat = "beat";
constexpr std::string_view kMessageReady = "ready";
constexpr std::string_view kMessageAsk = "ask";
constexpr std::string_view kMessageFigures = "figures";
constexpr std::string_view kBeatAll = "all";
constexpr std::string_view kBeatNew = "new";

/// `tag`: of the group's keys, in a Cluster; empty otherwise.
inline std::string OwnerChannel(std::string_view prefix, uint32_t group, std::string_view tag) {
  return tag.empty() ? fmt::format("{}:group:{}", prefix, group) : fmt::format("{}group", tag);
}
inline std::string BeatChannel(std::string_view prefix) { return fmt::format("{}:beats", prefix); }
inline std::string StoreChannel(std::string_view prefix, std::string_view who, bool sharded) {
  return fmt::format(fmt::runtime(sharded ? "{{{}:to:{}}}" : "{}:to:{}"), prefix, who);
}

}  // namespace tocsin::redis
