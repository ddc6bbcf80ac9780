// RedisStore: the Store of one shard on a Redis that many nodes share. Jobs live only in Redis. Every call is one Lua
// script for each slot that it touches (scripts.h), so any node may serve any slot, and what a script answered is as
// durable as that Redis is. The clock is Redis' own.
//
// Slots form groups (model/placement.h). The owner of a group asks it for due slots when it expects some, when another
// node publishes an earlier one, after every reconnect, and in any case once a second. It tells one node whose
// consumers wait (channels.h). If no owner is heard of, every node asks. Only the owner rolls back leases and forgets
// retained jobs. Its scripts carry the epoch that it got when it took the group, and Redis refuses an older one.
//
// A server of a Cluster that does not answer holds back only its own slots: calls wait for it briefly, and take its
// answer when it comes.
//
// Threads: as Store; the client's thread is the shard's. The client is closed before the store is destroyed.
#pragma once

#include <deque>

#include "base/loop.h"
#include "spi/shared_store.h"
#include "storage/redis/calls.h"
#include "storage/redis/slots.h"

namespace tocsin::redis {

enum class ClockSource : uint8_t { kRedis, kCaller };

struct StoreOptions {
  std::string prefix = "tocsin";
  std::string node;  // the owner of groups, as people see it
  uint32_t shard = 0;
  uint32_t shards = 1;  // divides the number of groups
  Groups groups;
  ClockSource clock = ClockSource::kRedis;
  uint64_t topics = 0;  // the most that there may be, over all nodes; 0: no limit
};

class RedisStore final : public Store, public SharedStore {
 public:
  RedisStore(Client& client, const Clock& clock, StoreOptions options);

  /// Reads the topics and their figures. Call nothing else before it has succeeded; if it fails, call it again.
  void Open(Done<void> done);

  void PutTopic(const Topic& topic, Done<void> done) override;
  void DropTopic(std::string_view topic, Done<void> done) override;
  std::optional<TopicFigures> FindFigures(std::string_view topic) const override;
  TopicsPage TopicsFrom(std::string_view cursor, size_t limit) const override;
  void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
              Done<std::vector<Submitted>> done) override;
  void Claim(std::string_view topic, JobMax max, Millis lease, Moment now, Done<JobBatch> done) override;
  void Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
              Done<std::vector<SettleOutcome>> done) override;
  void Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
             Done<std::vector<Amended>> done) override;
  void Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
             Done<std::vector<Counted>> done) override;
  void Find(std::string_view topic, std::span<const JobRef> jobs, JobRoom* room, Moment now,
            Done<JobBatch> done) override;
  void List(std::string_view topic, const Selector& what, std::string_view cursor, JobMax max, Moment now,
            Done<Page> done) override;
  void Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
             Done<Swept> done) override;
  void Load(std::string_view topic, const LoadSpan& span, Moment now, Done<LoadCounts> done) override;
  void Advance(Moment now, size_t budget, Done<Advanced> done) override;

  TopicChanges TakeTopicChanges() override { return std::exchange(topic_changes_, {}); }
  bool AdoptTopic(const HeardTopic& topic) override;
  void ForgetTopic(std::string_view topic) override;
  void FinishAdvance() override { GiveUpWaiting(); }
  void OnChanged(std::function<void()> changed) override { changed_ = std::move(changed); }
  void OwnGroups(const std::vector<uint32_t>& groups) override;
  void SetHungry(std::string_view topic, bool hungry) override;
  void OnGroupLost(std::function<void()> lost) override { group_lost_ = std::move(lost); }
  std::vector<GroupState> Groups() const override;
  std::vector<StoreServer> Servers() const override;

 private:
  using Submitting = Portion<Submitted, kRestoreItem>;
  using Amending = Portion<Amended, kAmendItem>;
  using Counting = Portion<Counted, kCountItem>;
  using Finding = Portion<char, kFindItem>;
  struct FoundJobs;
  struct Claiming;
  struct Settling;
  struct Advancing;
  struct Listing;
  struct Sweeping;
  struct Loading;
  using Answer = std::move_only_function<void(Result<Reply>)>;

  /// Subscribes; only once, though Open may be called again.
  void HearOthers();
  /// Sends the command. An error that Redis answers becomes an Error.
  void Send(Command command, Answer answer);
  /// The rest of that, with what Redis has answered.
  void Receive(Result<Reply> reply, Answer answer);
  /// The same for a script that refuses a slot which was not opened. Another node may have made the topic just now and
  /// be about to open its slots: if none of this slot's answers has said that it is open, this opens it and sends the
  /// command once more.
  void SendToOpen(const Slot& slot, Command command, Answer answer);
  /// ARGV[1] of most scripts.
  void AddNow(Command& command, Moment now) const;
  /// A script that includes slot.lua: its keys, and the first of its arguments.
  Command SlotCall(const Script& script, const Slot& slot, Moment now,
                   std::initializer_list<Part> parts = kSlotParts) const;
  int64_t RedisNow(const Group& group, Moment now) const;
  void LearnTime(Group& group, int64_t redis_ms);

  TopicSlots* FindTopic(std::string_view topic);
  TopicSlots& KeepTopic(const StoredTopic& topic);
  /// A slot with its topic; null if this store does not have it.
  using Found = std::pair<TopicSlots*, Slot*>;
  Found FindSlot(std::string_view topic, uint32_t number);
  /// By its name in a group's index.
  Found FindSlot(std::string_view name);
  /// Whether this node claims from the slot. Consumers get jobs of all slots from any node, but if two nodes pushed one
  /// slot, its order would break.
  bool Serves(const TopicSlots& slots, const Slot& slot) const;
  void MarkReady(TopicSlots& slots, const Slot& slot);
  static void MarkEmpty(TopicSlots& slots, uint32_t slot);
  /// Takes in what an answer says of a slot: its figures, and when its first job is due.
  static void Learn(Slot& slot, const ReplyView& figures);
  void LearnChange(const TopicSlots& slots, Slot& slot, const ReplyView& figures);
  void LearnFigures(std::string_view slot, const ReplyView& figures);
  /// `claimed`: it answers a claim of this node.
  void LearnSlot(std::string_view slot, int64_t now_ms, int64_t head_ms, const ReplyView& figures,
                 bool claimed = false);
  /// When the first job of the slot was due, if it is due and this node looks at the group. Others leave it to the one
  /// that does.
  void LearnOldest(Slot& slot, int64_t head_ms, int64_t now_ms);
  /// Another node looks at the group now.
  static void ForgetOldest(Group& group);
  /// What a script tells of failures (leases.lua).
  void LearnFailed(std::string_view slot, const ReplyView& failures);
  /// These jobs of the slot, one member after the other, have ended.
  void ForgetFailed(std::string_view slot, std::string_view members);
  /// From then on the slot takes jobs of this life of the topic. Answers its figures.
  Command OpeningOf(const Slot& slot, const TopicSlots& slots) const;
  /// Sends that command, and keeps the figures.
  void ReadSlot(const std::string& topic, uint32_t number, Command command, Done<void> done);
  void OpenSlots(const std::string& topic, Done<void> done);
  void DropSlots(const std::string& topic, Done<void> done);
  /// A slot was not opened in this life of the topic: opens it, or finds out that the topic has ended. Then runs
  /// `then`.
  void CheckLife(std::string_view slot, Task then = {});
  void EndCheck(const std::string& slot);
  void TopicsAreStale();
  /// The answer of put_topic.lua.
  struct Put {
    PutOutcome outcome = PutOutcome::kRefused;
    std::string stored;    // as Redis has it
    uint64_t dropped = 0;  // lives up to this birth were dropped
  };
  void SendPut(PutMode mode, std::string_view name, std::string_view settings, uint64_t birth, Done<Put> done);
  void PutAs(PutMode mode, const Topic& topic, Done<void> done);
  /// Before a topic is created: Redis may have lost it, and the groups of its first slots may know it.
  void LookThenPut(const Topic& topic, Done<void> done);
  /// Topics that are known here are missing: forgets those that were dropped.
  void TakeMissing(std::vector<std::string> names);
  void TakeDropped(std::string_view name);
  /// Redis has lost the topic, or set it back. One node puts it back at once, the others if it is still missing after a
  /// while: if all did, each would send a script for each topic.
  void TakeLost(const StoredTopic& topic);
  /// Whether that node is this one. Nodes with the same number of shards agree: the owner of the group of the topic's
  /// first slot, or of the next one below that belongs to the shard which looks after topics.
  bool PutsBackFirst(std::string_view topic) const;
  void PutBack(const StoredTopic& topic);
  /// The owner of a group compares the topics that the group keeps with those that are known. `kept`: how many it
  /// keeps.
  void CompareTopics(Group& group, size_t kept);
  /// One that is not known here, at least not in this life: it was lost, or not all of it was dropped.
  void TakeFound(Group& group, const std::string& name, const std::string& entry);
  /// Opens slots of topics that the group should keep, and does not.
  void OpenUnkept(Group& group, const std::set<std::string_view>& kept);
  void CountInGroups(const TopicSlots& slots, bool in);

  void SubmitPlain(const TopicSlots& slots, const Slot& slot, std::span<const NewJob> jobs,
                   std::span<const uint32_t> places, Moment now, const std::shared_ptr<Gather<Submitted>>& gather);
  void SubmitAny(std::shared_ptr<Submitting> submitting);
  /// Asks for room for what was refused for lack of it, and calls kAgain with it. The last call for a portion.
  template <auto kAgain, class P>
  void AskForRoom(const std::shared_ptr<P>& refused, uint64_t jobs, uint64_t bytes);

  void ClaimNext(std::shared_ptr<Claiming> claiming);
  void ClaimFrom(TopicSlots& slots, uint32_t number, const std::shared_ptr<Claiming>& claiming);
  void SlotAnswered(Claiming& claiming, uint32_t number, const Result<Reply>& reply);
  void Claimed(Claiming& claiming, uint32_t slot, const ReplyView& reply);
  /// Releases what a slot gave after its claim had given up waiting.
  void GiveBack(const std::string& topic, uint32_t number, const Result<Reply>& reply);
  void ScanThenClaim(std::shared_ptr<Claiming> claiming);
  Command AckCall(const Slot& slot, const Topic& topic, const Settling& settling, std::vector<uint32_t>& places) const;
  Command SettleCall(const Slot& slot, const Topic& topic, const Settling& settling,
                     const std::vector<uint32_t>& places) const;
  void ForgetAcked(const Settling& settling, uint32_t number, std::span<const uint32_t> places);
  void SettlePart(const std::shared_ptr<Settling>& settling, uint32_t number, std::vector<uint32_t> places);
  void AmendSome(std::shared_ptr<Amending> amending);
  void CountSome(std::shared_ptr<Counting> counting);
  void FindSome(std::shared_ptr<Finding> finding, std::shared_ptr<FoundJobs> found);
  Command FindCall(const Slot& slot, Moment now) const;
  /// What a copy of the job takes, about, that is at a place of what the script Find gave.
  static size_t FoundBytes(const ReplyView& found, size_t at);
  /// The job at a place of what the script Find gave. Its texts point into that.
  static Status ShowFound(const ReplyView& found, size_t at, uint32_t slot, JobView& view);

  // A part whose round was answered already, or that has none, calls for another round, which reports what it found.
  /// `topic`: of the claim that the round scans for.
  std::shared_ptr<Advancing> MakeAdvancing(Moment now, Done<Advanced> done, std::string topic = {});
  void LeaveAdvance(const std::shared_ptr<Advancing>& advancing);
  /// `trouble` is the last error of this part.
  void LeaveFailed(std::optional<Error>& trouble, Error error, const std::shared_ptr<Advancing>& advancing);
  void AnswerAdvance(std::shared_ptr<Advancing> advancing);
  void SetNext(Advanced& advanced, Moment now) const;
  std::optional<Error> Trouble() const;
  /// Whether none of the groups that this node asks answers.
  bool CutOff() const;
  /// Rounds and claims that have waited too long go on without the servers that do not answer.
  void GiveUpWaiting();
  void GiveUpClaims();
  /// If a group has too many due slots for one script, the next one goes on from the last slot of the one before.
  struct From {
    std::string_view last;
    std::string_view score;
  };
  void ScanGroup(Group& group, Moment now, const std::shared_ptr<Advancing>& advancing, From from,
                 const std::string& beat = {});
  /// Those that expect something, or whose turn it is; `beats`: the first one that can tells the others of this node.
  void ScanGroups(const std::shared_ptr<Advancing>& advancing, bool beats);
  /// `first`: of a scan that began with the first slot.
  void Scanned(Group& group, const ReplyView& reply, const std::shared_ptr<Advancing>& advancing, bool first);
  void DoChores(Group& group, std::string_view slot, const std::shared_ptr<Advancing>& advancing);
  /// Those that found no budget left, as far as there is some now.
  void DoWaitingChores(const std::shared_ptr<Advancing>& advancing);
  void CheckTopics(std::shared_ptr<Advancing> advancing);
  /// Redis may have lost topics, and not the version: if it has fewer than are known here, all are read.
  void CountTopics();
  /// Puts the number of groups back if Redis has lost it.
  void CheckGroups(std::string_view stored);
  void ReadTopics(int64_t version, const std::shared_ptr<Advancing>& advancing);
  void TakeTopics(const ReplyView& reply, int64_t since);
  /// Of one topic, which is as stored. `since`: the version of the topics that were known before.
  void TakeTopic(std::string_view name, std::string_view entry, int64_t since);
  void HearOfTopic(std::string_view news);
  /// The topics that have changed since topics_version_, if a message told of each change; and the version after them.
  std::pair<std::set<std::string>, int64_t> TopicsTold();
  void ReadTold(const std::set<std::string>& names, int64_t version, const std::shared_ptr<Advancing>& advancing);
  void TakeGroup(Group& group);
  /// Takes the groups that this node owns and has no epoch for.
  void TakeGroups();
  void LoseGroup(Group& group);

  // beats.cc
  /// The groups that this node may have to scan: those that are its own, and those with slots that nobody else looks
  /// after, or whose owner may be lost while consumers wait here.
  const std::vector<Group*>& LookedAt();
  /// Which groups are scanned in this second although nothing is expected.
  void GiveAllTurns();
  std::string MakeBeat();
  void HearBeat(std::string_view beat);
  void HearOfGroup(Group& group, const std::shared_ptr<Keeper>& keeper, std::string_view node, const GroupWord& word);
  /// Nobody is known to look after it any more.
  void Unkeep(Group& group);
  void ForgetKeepers();
  void ReadFigures(Group& group, const std::vector<Slot*>& slots, Done<void> done);
  void ReadAllFigures(Group& group, const std::shared_ptr<Gather<char>>& gather);
  /// Of the next slots of a group, and tells others of them if it is ours.
  void RefreshFigures(Group& group, Time now);
  void TellFigures(Slot& slot);
  void PublishFigures();
  void HearFigures(std::string_view told);

  // notices.cc
  void Publish(std::string_view channel, std::string_view message);
  /// To one store.
  std::string ChannelTo(std::string_view who) const;
  /// Listens to the group's channel while it is ours.
  void Listen(Group& group);
  void OnMessage(std::string_view message);
  void HearWant(Group& group, std::string_view want);
  void HearOfRest(Group& group, std::string_view said, bool passed);
  void HearReady(std::string_view slot);
  /// This node's consumers do not wait any more: the owner has to tell another one of the slot.
  void Pass(TopicSlots& slots, const Slot& slot);
  /// A slot of a group that is ours has jobs to claim: tells a node whose consumers wait, or marks it ready here.
  void Offer(TopicSlots& slots, Slot& slot, std::string_view except = {});
  /// A store that waits for jobs of the topic; empty: none does.
  std::string NextFor(Group& group, std::string_view topic, std::string_view except);
  /// Whether the store may be dead: it did not take what it was told of, or its beats have stopped.
  bool Doubted(std::string_view who) const;
  void Trust(std::string_view who);
  /// A scan found jobs to claim in the slot, the first of them due at `head_ms`.
  void FoundDue(Group& group, TopicSlots& slots, Slot& slot, int64_t head_ms, int64_t now_ms);
  /// A claim has left jobs that are due, or has no room for them: another node may claim beside this one.
  void ShareRest(const TopicSlots& slots, Slot& slot);
  /// Tells the owners of the topic's slots that consumers wait here, unless they know.
  void Want(const TopicSlots& slots);
  /// Tells the group's owner all that consumers wait for here.
  void WantAll(Group& group);
  void RefreshWants();
  /// Nobody waits for the topic here: tells others of the slots that are marked ready.
  void GiveAway(TopicSlots& slots);
  /// The topic has changed, or `fresh`: it was not known here.
  void TellOfTopic(TopicSlots& slots, bool fresh);

  void ListNext(std::shared_ptr<Listing> listing);
  void ListFound(std::shared_ptr<Listing> listing, const ReplyView& scanned);
  void ListShow(std::shared_ptr<Listing> listing);
  void ListLess(std::shared_ptr<Listing> listing, bool no_room);
  void ListLooked(std::shared_ptr<Listing> listing, const ReplyView& list);
  void ForgetSwept(std::string_view topic, uint32_t number, SweepKind kind);
  void SweepNext(std::shared_ptr<Sweeping> sweeping);
  /// Sends the next scripts, or answers after the last.
  void LoadSome(const std::shared_ptr<Loading>& loading);
  void SendLoad(const Slot& slot, const std::shared_ptr<Loading>& loading);

  Client& client_;
  const Clock& clock_;
  const StoreOptions options_;
  const SharedKeys keys_;
  const GroupTags tags_;
  std::map<std::string, TopicSlots, std::less<>> topics_;
  struct Dropping {
    uint64_t birth = 0;
    uint32_t slots = 0;
  };
  std::map<std::string, Dropping, std::less<>> dropping_;  // perhaps not dropped on all their slots yet
  std::vector<std::unique_ptr<Group>> groups_;             // by number; null for those of other shards

  const std::string who_;                                                // this store, on the channels
  bool hears_ = false;                                                   // HearOthers has run
  int64_t listens_ = 0;                                                  // how often messages may have been lost
  std::set<std::string, std::less<>> hungry_;                            // topics whose consumers wait
  int64_t seconds_ = 0;                                                  // rounds of all groups so far
  std::map<std::string, std::shared_ptr<Keeper>, std::less<>> keepers_;  // by who
  std::map<std::string, IoTime, std::less<>>
      doubted_;                 // stores that did not take what they were told of, and since when
  std::vector<Group*> looked_;  // LookedAt, as last computed
  bool looked_stale_ = true;
  IoTime looked_until_{};   // a beat may be late from then on
  uint32_t used_from_ = 0;  // the group whose turn is next, of those with slots
  uint32_t figures_from_ = 0;
  uint32_t empty_from_ = 0;  // and of the others
  bool tell_now_ = false;    // with the next scan, what is new
  bool tell_all_ = true;     // with the next beat
  size_t figures_under_way_ = 0;
  std::string figures_news_;                  // to be published
  std::set<std::string, std::less<>> plain_;  // sharded channels whose server, before Redis 7, has only plain ones

  Time scan_all_at_ = Time::min();  // on the steady timeline
  Allowances allowances_;
  std::string record_;         // scratch of one call
  bool take_failed_ = false;   // taking a group failed the last time, and was logged
  bool other_groups_ = false;  // Redis has another number of them, which was logged
  bool topics_stale_ = true;
  bool checking_topics_ = false;
  std::optional<Error> topics_trouble_;           // of the last check
  static constexpr int64_t kUnknownVersion = -2;  // -1: Redis has none
  int64_t topics_version_ = kUnknownVersion;
  struct TopicNews {
    int64_t before = 0;  // the version before the change
    int64_t version = 0;
    std::string name;
  };
  std::deque<TopicNews> topic_news_;                              // not taken yet
  std::map<std::string, std::vector<Task>, std::less<>> checks_;  // slots whose life is asked for, and what waits
  std::set<std::string, std::less<>> putting_back_;               // topics; under way
  std::map<std::string, Time, std::less<>> lost_;                 // topics, and when this node puts them back
  const Millis put_back_after_;                                   // of those that another node should put back
  std::set<std::string, std::less<>> unreadable_;                 // topics in Redis; they were logged
  bool counted_fewer_ = false;                                    // topics in Redis than are known here, the last time
  TopicChanges topic_changes_;                    // by other nodes; the dropped ones are forgotten here already
  std::set<std::shared_ptr<Advancing>> rounds_;   // under way
  std::set<std::shared_ptr<Claiming>> claims_;    // that wait for a slot
  std::set<std::string, std::less<>> to_report_;  // topics that may have ready slots that Advance did not report
  std::function<void()> changed_;
  std::function<void()> group_lost_;
};

template <auto kAgain, class P>
void RedisStore::AskForRoom(const std::shared_ptr<P>& refused, uint64_t jobs, uint64_t bytes) {
  const TopicSlots* slots = FindTopic(refused->topic);
  if (refused->at.empty() || ++refused->asks > Allowances::kAsksMax || slots == nullptr ||
      !Allowances::Shared(slots->topic)) {
    return refused->gather->Leave();
  }
  allowances_.Ask(slots->topic, refused->slot, jobs, bytes, [this, refused](Result<bool> room) {
    if (!room) return refused->gather->Fail(std::move(room).error(), refused->at);
    if (!*room) return refused->gather->Leave();
    (this->*kAgain)(refused);
  });
}

/// Checks the settings of a Redis before a node trusts it with jobs. What is wrong, for people; empty if nothing is.
/// Finds a version that is too old, a Cluster that is configured as a single server, missing persistence, keys that may
/// be evicted, and servers that refuse the questions.
void CheckServers(Client& client, Mode mode, Done<std::vector<std::string>> done);

/// The same for one server, from the answers to INFO and CONFIG GET. Declared for tests.
std::vector<std::string> Findings(std::string_view server, Mode mode, std::string_view info,
                                  const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace tocsin::redis
