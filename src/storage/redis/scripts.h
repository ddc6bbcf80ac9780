// The Lua scripts of the Redis store: every move of jobs is one of them, over a batch of one slot that is bounded in
// jobs, bytes and events: what reads records ends when they have 4 MiB, and the caller sends the rest again. Keys and
// data come in KEYS and ARGV alone, and every key that is touched is declared, so that Cluster never runs one on half
// of them while a hash slot moves.
//
// What Redis holds of one slot (keys.h):
//   store    zset   member -> due ms        scheduled jobs, but those that wait for a count alone
//   count    zset   member -> events left   jobs whose count still matters (the countdown bucket); below 0 it does not,
//                                           and chores have to remove what is left of the events
//   prepare  zset   member -> lease         leased jobs
//   dead     zset   member -> died at
//   ended    zset   member -> forget at     done and cancelled jobs that are retained
//   job      hash   member -> record        what was asked for (record.h)
//   note     hash   member -> note          what became of it (record.h); none before a first lease ends
//   id       hash   own id -> member
//   event    zset   member .. event -> 0    events counted, as long as they matter
//   claim    hash   lease -> jobs bytes     of large claims, so that an ack of a whole one need not read the records
//   meta     hash   seq, bytes, the longest record, the counts of TopicFigures, what the slot may hold (rooms.h),
//                   the birth of the topic whose jobs it takes; for a minute after a drop, of the one that has gone
//   room     hash   of the topic's slot 0 alone: what each slot was allowed
// and of its group:
//   next     zset   slot -> due ms of the first job in store
//   chore    zset   slot -> when a lease ends or a retained job is forgotten; may be too early, never too late;
//                   now, where events are to be removed
//   owner    hash   epoch, node
// A member is the job's sequence number in 7 bytes, big end first: jobs of one due time leave in the order of arrival.
//
// A lease is (end - 2020) * 4096 + a number below 4096 that tells the claims of one millisecond apart. Most jobs are
// leased once: the fence of a first lease is that number itself, and nothing else is written for it. A job that was
// leased before has a note, and the fence is in there, from the slot's sequence. A token says of which kind its fence
// is, so no fence is ever good for two leases of a job. A first lease that is extended gets a note that keeps its
// fence.
#pragma once

#include "clients/redis/command.h"

namespace tocsin::redis::scripts {

const Script& SubmitPlain();
const Script& Submit();
const Script& Claim();
const Script& Ack();
const Script& Settle();
const Script& Amend();
const Script& Count();
const Script& Find();
const Script& Sweep();
const Script& Scan();
const Script& Chores();
const Script& Take();
const Script& Figures();
const Script& PutTopic();
const Script& DropTopic();
const Script& OpenSlot();
const Script& DropSlot();
const Script& Grant();
const Script& Record();
const Script& Mark();
const Script& Allow();

}  // namespace tocsin::redis::scripts
