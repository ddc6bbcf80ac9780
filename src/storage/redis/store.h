// RedisStore: the Store of one shard on a Redis that many nodes share. Jobs live only in Redis. Every call is one Lua
// script for each slot that it touches (scripts.h), so any node may serve any slot, and what a script answered is as
// durable as that Redis is. The clock is Redis' own.
//
// Slots form groups (model/placement.h). Each node asks every group of its shards for due slots when it expects some,
// when another node publishes an earlier one, after every reconnect, and in any case once a second. Only a group's
// owner rolls back leases and forgets retained jobs. Its scripts carry the epoch that it got when it took the group,
// and Redis refuses an older one.
//
// A server of a Cluster that does not answer holds back only its own slots: calls wait for it briefly, and take its
// answer when it comes.
//
// Threads: as Store; the client's thread is the shard's. The client is closed before the store is destroyed.
#pragma once

#include "spi/shared_store.h"
#include "storage/redis/calls.h"
#include "storage/redis/slots.h"

namespace tocsin::redis {

enum class ClockSource : uint8_t { kRedis, kCaller };

struct StoreOptions {
  std::string prefix = "tocsin";
  std::string node;  // the owner of groups, as people see it
  uint32_t shard = 0;
  uint32_t shards = 1;  // divides kGroups
  ClockSource clock = ClockSource::kRedis;
  uint64_t topics = 0;  // the most that there may be, over all nodes; 0: no limit
};

class RedisStore final : public Store, public SharedStore {
 public:
  RedisStore(Client& client, const Clock& clock, StoreOptions options);

  /// Reads the topics and their figures. Call nothing else before it has answered.
  void Open(Done<void> done);

  void PutTopic(const Topic& topic, Done<void> done) override;
  void DropTopic(std::string_view topic, Done<void> done) override;
  std::optional<TopicFigures> FindFigures(std::string_view topic) const override;
  TopicsPage TopicsFrom(std::string_view cursor, size_t limit) const override;
  void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
              Done<std::vector<Submitted>> done) override;
  void Claim(std::string_view topic, ClaimMax max, Millis lease, Moment now, Done<JobBatch> done) override;
  void Settle(std::string_view topic, std::span<const Settlement> settlements, Moment now,
              Done<std::vector<SettleOutcome>> done) override;
  void Amend(std::string_view topic, std::span<const Amendment> amendments, Moment now,
             Done<std::vector<Amended>> done) override;
  void Count(std::string_view topic, std::span<const CountEvent> events, Moment now,
             Done<std::vector<Counted>> done) override;
  void Find(std::string_view topic, std::span<const JobRef> jobs, Moment now, Done<JobBatch> done) override;
  void List(std::string_view topic, State state, std::string_view cursor, size_t limit, Moment now,
            Done<Page> done) override;
  void Sweep(std::string_view topic, SweepKind kind, std::string_view cursor, size_t limit, Moment now,
             Done<Swept> done) override;
  void Advance(Moment now, size_t budget, Done<Advanced> done) override;

  TopicChanges TakeTopicChanges() override { return std::exchange(topic_changes_, {}); }
  void ForgetTopic(std::string_view topic) override;
  void FinishAdvance() override { GiveUpWaiting(); }
  void OnChanged(std::function<void()> changed) override { changed_ = std::move(changed); }
  void OwnGroups(const std::vector<uint32_t>& groups) override;
  void OnGroupLost(std::function<void()> lost) override { group_lost_ = std::move(lost); }
  std::vector<GroupState> Groups() const override;
  std::vector<StoreServer> Servers() const override;

 private:
  using Submitting = Portion<Submitted, kSubmitItem>;
  using Amending = Portion<Amended, kAmendItem>;
  using Counting = Portion<Counted, kCountItem>;
  using Finding = Portion<char, kFindItem>;
  struct Claiming;
  struct Settling;
  struct Advancing;
  struct Listing;
  struct Sweeping;
  using Answer = std::move_only_function<void(Result<Reply>)>;

  /// Sends the command. An error that Redis answers becomes an Error.
  void Send(Command command, Answer answer);
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
  void LearnSlot(std::string_view slot, int64_t now_ms, int64_t head_ms, const ReplyView& figures);
  Command FiguresOf(const Slot& slot) const;
  /// As FiguresOf. From then on the slot takes jobs of this life of the topic.
  Command OpeningOf(const Slot& slot, uint64_t birth) const;
  /// Sends one of those two commands, and keeps the figures.
  void ReadSlot(const std::string& topic, uint32_t number, Command command, Done<void> done);
  void OpenSlots(const std::string& topic, Done<void> done);
  void DropSlots(const std::string& topic, Done<void> done);
  /// A slot has refused jobs because it was not opened in this life of the topic: finds out why.
  void CheckLife(std::string_view slot);
  void TopicsAreStale();

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
  void SettlePart(const std::shared_ptr<Settling>& settling, uint32_t number, std::vector<uint32_t> places);
  void AmendSome(std::shared_ptr<Amending> amending);
  void CountSome(std::shared_ptr<Counting> counting);
  void FindSome(std::shared_ptr<Finding> finding, std::shared_ptr<JobBatch> found);
  /// The job at a place of what the script Find gave.
  static Status ShowFound(const ReplyView& found, size_t at, uint32_t slot, JobBatch& batch, JobView& view);

  // A part whose round was answered already, or that has none, calls for another round, which reports what it found.
  std::shared_ptr<Advancing> MakeAdvancing(Moment now, Done<Advanced> done);
  void LeaveAdvance(const std::shared_ptr<Advancing>& advancing);
  /// `trouble` is the last error of this part.
  void LeaveFailed(std::optional<Error>& trouble, Error error, const std::shared_ptr<Advancing>& advancing);
  void AnswerAdvance(std::shared_ptr<Advancing> advancing);
  void SetNext(Advanced& advanced, Moment now) const;
  std::optional<Error> Trouble() const;
  /// Rounds and claims that have waited too long go on without the servers that do not answer.
  void GiveUpWaiting();
  void GiveUpClaims();
  /// If a group has too many due slots for one script, the next one goes on from the last slot of the one before.
  struct From {
    std::string_view last;
    std::string_view score;
  };
  void ScanGroup(Group& group, Moment now, const std::shared_ptr<Advancing>& advancing, From from);
  void Scanned(Group& group, const ReplyView& reply, const std::shared_ptr<Advancing>& advancing);
  void DoChores(Group& group, std::string_view slot, const std::shared_ptr<Advancing>& advancing);
  void CheckTopics(std::shared_ptr<Advancing> advancing);
  void ReadTopics(int64_t version, const std::shared_ptr<Advancing>& advancing);
  void TakeTopics(const ReplyView& reply);
  void RefreshFigures();
  void OnMessage(std::string_view message);
  void TakeGroup(Group& group);
  /// Takes the groups that this node owns and has no epoch for.
  void TakeGroups();
  void LoseGroup(Group& group);

  void ListNext(std::shared_ptr<Listing> listing);
  void ListFound(std::shared_ptr<Listing> listing, const ReplyView& scanned);
  void ListShow(std::shared_ptr<Listing> listing);
  void SweepNext(std::shared_ptr<Sweeping> sweeping);

  Client& client_;
  const Clock& clock_;
  const StoreOptions options_;
  const SharedKeys keys_;
  std::map<std::string, TopicSlots, std::less<>> topics_;
  struct Dropping {
    uint64_t birth = 0;
    uint32_t slots = 0;
  };
  std::map<std::string, Dropping, std::less<>> dropping_;  // perhaps not dropped on all their slots yet
  std::vector<std::unique_ptr<Group>> groups_;             // by number; null for those of other shards

  Time scan_all_at_ = Time::min();  // on the steady timeline
  Allowances allowances_;
  std::string record_;        // scratch of one call
  bool take_failed_ = false;  // taking a group failed the last time, and was logged
  bool topics_stale_ = true;
  bool checking_topics_ = false;
  std::optional<Error> topics_trouble_;  // of the last check
  int64_t topics_version_ = -1;
  TopicChanges topic_changes_;                     // by other nodes; the dropped ones are forgotten here already
  std::set<std::shared_ptr<Advancing>> rounds_;    // under way
  std::set<std::shared_ptr<Claiming>> claims_;     // that wait for a slot
  std::set<std::string, std::less<>> to_report_;   // topics that may have ready slots that Advance did not report
  std::pair<std::string, uint32_t> refresh_from_;  // the slot whose figures are read next, with its topic
  size_t figures_share_ = 0;                       // readings of figures left to this shard, times the shards
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
    if (!room) return refused->gather->Fail(std::move(room).error());
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
