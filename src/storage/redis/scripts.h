// The Lua scripts of the Redis store (scripts/*.lua): every move of jobs is one of them, over a batch of one slot that
// is bounded in jobs, bytes and events. A script that has read kScriptBytesMax of records ends, and the caller sends
// the rest again. Keys and data come in KEYS and ARGV alone, and every key that is touched is declared, so that Cluster
// never runs one on half of them while a hash slot moves.
//
// The files are a part of the program. A line `--@include x` stands for x.lua. A name in capitals stands for a value
// that the C++ code defines (scripts.cc): record layout, enums and limits are written down there alone.
//
// All keys of a group begin with the same hash tag, so that they live on one server of a Cluster. What Redis holds of
// one slot:
//   store    zset   member -> due ms        scheduled jobs, except those that wait for a count alone
//   count    zset   member -> events left   jobs that still count events; below 0: one that does not, and whose
//                                           events chores have to remove
//   prepare  zset   member -> lease         leased jobs
//   dead     zset   member -> died at
//   ended    zset   member -> forget at     done and cancelled jobs that are retained
//   job      hash   member -> record        what was asked for (record.h)
//   note     hash   member -> note          what became of it (record.h); most jobs have none before a lease ends
//   id       hash   own id -> member
//   event    zset   member .. event -> 0    events counted, as long as they matter
//   claim    hash   lease -> claim          jobs, bytes, when it began, holder: who has a lease since when; and an ack
//                                           of a whole claim need not read the records. Some have no leases any more
//   meta     hash   seq, claims so far, bytes, the longest record, the counts of TopicFigures, what the slot may hold
//                   (allowances.h), the birth of the topic whose jobs it takes; for a minute after a drop, the birth of
//                   the one that has gone
//   room     hash   of the topic's slot 0 alone: what each slot was allowed
// and of its group:
//   next     zset   slot -> due ms of the first job in store; mended by whoever reads the figures of the slot
//   chore    zset   slot -> when a lease ends or a retained job is forgotten; may be too early, never too late;
//                   now, if events have to be removed
//   owner    hash   epoch, node
//   topics   hash   topic -> settings and birth (EncodeTopic), of each topic that has a slot in the group: from these a
//                   topic is found again that the shared hash of topics has lost
// A member is the job's sequence number in 7 bytes, big end first: jobs of one due time leave in the order of arrival.
//
// A lease is (end - 2020) * 4096 + a number below 4096 that tells claims apart that end in one millisecond. Most jobs
// are leased once: the fence of a first lease is that number itself, and nothing else is written for each job. A job
// that was leased before has a note, and the fence is in there, from the slot's sequence. A token says of which kind
// its fence is, so no fence is ever good for two leases of a job. A lease that is extended gets a note that keeps its
// fence, when it began, and its holder.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include <fmt/format.h>

#include "clients/redis/command.h"

namespace tocsin::redis {

// What one script takes and reads at most, so that none keeps Redis from others for long.
constexpr size_t kScriptJobsMax = 1000;
constexpr size_t kScriptBytesMax = 4 << 20;

// How many arguments an item of a call has.
constexpr size_t kSubmitItem = 6;
constexpr size_t kRestoreItem = 9;  // of a submit with copies, which also bring their state, death and note
constexpr size_t kSettleItem = 6;
constexpr size_t kAmendItem = 9;
constexpr size_t kCountItem = 4;
constexpr size_t kFindItem = 2;
/// How many values find.lua gives for each job.
constexpr size_t kFindFields = 8;

/// The kind of lease that a fence belongs to.
constexpr std::string_view kLeaseFirst = "f";
constexpr std::string_view kLeaseLater = "l";

/// How an error of life.lua begins; the slot's name follows.
constexpr std::string_view kErrorGone = "GONE ";
/// What is published when a topic has changed: this word, the number before and after the change, and the name.
constexpr std::string_view kMessageTopics = "topics";

/// How a topic is put: see put_topic.lua.
enum class PutMode : uint8_t { kLook, kCreate, kRestore };
enum class PutOutcome : uint8_t {
  kRefused,  // another version or a later life is stored
  kStored,   // now, or it was already
  kBack,     // it was missing, and was put back with its birth
  kUnknown,  // kLook: it is not there
  kDropped,  // kRestore: its life has ended
  kFull,     // it is not there, and there are as many as there may be
};
/// How long the proof of a drop is kept, for nodes and servers that were away meanwhile.
constexpr int64_t kDropProofSeconds = 24 * 3600;

/// Of grant.lua.
enum class GrantOutcome : int8_t {
  kSettingsChanged = -2,  // since the call was made
  kUnregistered = -1,     // slots have to be registered first
  kFull = 0,
  kGranted = 1,
};

struct LuaFile {
  std::string_view name;
  std::string_view text;
};
std::span<const LuaFile> LuaFiles();

Script LoadScript(std::string_view name);

template <size_t N>
struct ScriptName {
  consteval ScriptName(const char (&name)[N]) { std::copy_n(name, N, text); }  // NOLINT: a literal stands for it
  char text[N]{};
};

/// The script of a file: Lua<"claim">().
template <ScriptName kName>
const Script& Lua() {
  static const Script script = LoadScript(kName.text);
  return script;
}

enum class Part : uint8_t {
  kMeta,
  kStore,
  kJob,
  kPrepare,
  kDead,
  kEnded,
  kId,
  kNote,
  kCount,
  kEvent,
  kRoom,
  kClaim,
  kNext,
  kChore,
  kOwner,
  kTopics
};

constexpr std::array<std::string_view, 16> kPartNames{"meta", "store", "job",   "prepare", "dead", "ended",
                                                      "id",   "note",  "count", "event",   "room", "claim",
                                                      "next", "chore", "owner", "topics"};
constexpr Part kFirstOfGroup = Part::kNext;

/// What slot.lua takes.
constexpr std::initializer_list<Part> kSlotParts = {
    Part::kMeta, Part::kStore, Part::kJob,   Part::kNext,  Part::kPrepare, Part::kDead, Part::kEnded,
    Part::kId,   Part::kNote,  Part::kCount, Part::kEvent, Part::kChore,   Part::kClaim};

/// Of one slot, with those of its group.
class SlotKeys {
 public:
  /// `tag`: of its group (groups.h).
  SlotKeys(std::string_view tag, std::string_view slot) : tag_(tag), slot_(fmt::format("{}{}:", tag, slot)) {}
  const std::string& tag() const { return tag_; }

  std::string Of(Part part) const {
    const std::string& beginning = part < kFirstOfGroup ? slot_ : tag_;
    return beginning + std::string(kPartNames[static_cast<size_t>(part)]);
  }
  Command Call(const Script& script, std::initializer_list<Part> parts) const {
    Command command(script, parts.size(), Of(*parts.begin()));
    for (const Part* part = parts.begin() + 1; part != parts.end(); ++part) command.Add(Of(*part));
    return command;
  }
  /// A plain command on one key, which is its first argument.
  Command Call(std::string_view name, Part part) const { return {name, Of(part)}; }

 private:
  std::string tag_;
  std::string slot_;
};

/// Keys of no slot, which all nodes share.
struct SharedKeys {
  explicit SharedKeys(std::string_view prefix)
      : topics(fmt::format("{{{}}}topics", prefix)),
        topics_version(fmt::format("{{{}}}topics:version", prefix)),
        groups(fmt::format("{{{}}}groups", prefix)),
        channel(fmt::format("{}:news", prefix)),
        drops(fmt::format("{{{}}}dropped:", prefix)) {}
  /// The proof that a topic was dropped: the birth of its last life that was.
  std::string DropOf(std::string_view topic) const { return drops + std::string(topic); }
  const std::string topics;          // hash: name -> settings (EncodeTopic)
  const std::string topics_version;  // rises with every change of a topic
  const std::string groups;          // how many there are
  const std::string channel;         // "topics"; channels.h has the others
  const std::string drops;           // what DropOf begins with
};

}  // namespace tocsin::redis
