// RedisStore: the Store of one shard on a Redis that many nodes share. Jobs live in Redis alone; every call is one Lua
// script for each slot that it touches (scripts.h), so any node may serve any slot, and what a script answered is as
// durable as that Redis is. The clock is Redis' own.
//
// Slots are looked after in groups (model/assignment.h). Each node asks every group of its shards for due slots when it
// has reason to expect some, when another node publishes an earlier one, after every reconnect, and once a second
// whatever it knows. Only a group's owner rolls back leases and forgets retained jobs; its scripts carry the epoch that
// it got when it took the group, and Redis refuses an older one.
//
// Threads: as Store; the client's thread is the shard's. The client is closed before the store is destroyed.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "clients/redis/client.h"
#include "spi/store.h"
#include "storage/redis/clock_gap.h"
#include "storage/redis/gather.h"
#include "storage/redis/rooms.h"
#include "storage/redis/slots.h"

namespace tocsin::redis {

enum class ClockSource : uint8_t { kRedis, kCaller };

struct StoreOptions {
  std::string prefix = "tocsin";
  std::string node;  // who owns, for people
  uint32_t shard = 0;
  uint32_t shards = 1;  // divides kGroups
  ClockSource clock = ClockSource::kRedis;
};

/// One group, for people.
struct GroupState {
  uint32_t group = 0;
  bool mine = false;
  std::string owner;
  uint64_t epoch = 0;
  size_t busy_slots = 0;
  Time next{};  // of Redis' clock; kNever: nothing is due
};

class RedisStore final : public Store {
 public:
  RedisStore(Client& client, const Clock& clock, StoreOptions options);

  /// Reads the topics and their figures. Before it has answered, nothing else is called.
  void Open(Done<void> done);
  /// These groups of this shard are this node's from now on, and no others.
  void Own(const std::vector<uint32_t>& groups);
  /// Redis refused this node's epoch: another node has taken a group. Who owns what has to be asked anew.
  void OnRefused(std::function<void()> refused) { refused_ = std::move(refused); }
  std::vector<GroupState> Groups() const;

  void PutTopic(const Topic& topic, Done<void> done) override;
  void DropTopic(std::string_view topic, Done<void> done) override;
  void ForgetTopic(std::string_view topic) override;
  std::vector<TopicFigures> Topics() const override;
  void Submit(std::string_view topic, std::span<const NewJob> jobs, Moment now,
              Done<std::vector<Submitted>> done) override;
  void Claim(std::string_view topic, size_t max, Millis lease, Moment now, Done<JobBatch> done) override;
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
  void OnNews(std::function<void()> news) override { news_ = std::move(news); }

 private:
  struct Submitting;
  struct Claiming;
  struct Advancing;
  struct Listing;
  struct Sweeping;
  using Answer = std::move_only_function<void(Result<Reply>)>;

  /// Sends, and hands on what Redis answered; an error of Redis becomes an Error here.
  void Send(Command command, Answer answer);
  /// ARGV[1] of most scripts.
  void AddNow(Command& command, Moment now) const;
  int64_t RedisNow(Moment now) const;
  void LearnTime(int64_t redis_ms);

  Shelf* FindShelf(std::string_view topic);
  Shelf& MakeShelf(const Topic& topic);
  /// The slot of a name in a group's index, with its topic; nothing where this store does not know it.
  std::pair<Shelf*, Slot*> FindSlot(std::string_view name);
  void MarkReady(Shelf& shelf, uint32_t slot);
  static void MarkEmpty(Shelf& shelf, uint32_t slot);
  /// What an answer says of a slot: its figures, and when its first job is due.
  static void Learn(Slot& slot, const ReplyView& figures);
  void LearnChange(const Shelf& shelf, Slot& slot, const ReplyView& figures);
  void LearnFigures(std::string_view slot, const ReplyView& figures);
  void LearnSlot(std::string_view slot, int64_t now_ms, int64_t head_ms, const ReplyView& figures);
  void ReadFigures(const std::string& topic, Done<void> done);

  void SubmitPlain(const Shelf& shelf, const Slot& slot, std::span<const NewJob> jobs, std::span<const uint32_t> places,
                   Moment now, const std::shared_ptr<Gather<Submitted>>& gather);
  void SubmitAny(std::shared_ptr<Submitting> submitting);
  /// Asks for room for those that were refused for the lack of it.
  void FindRoom(const std::shared_ptr<Submitting>& submitting);

  void ClaimNext(std::shared_ptr<Claiming> claiming);
  static void Claimed(Claiming& claiming, uint32_t slot, const ReplyView& reply);
  void LookFirst(std::shared_ptr<Claiming> claiming);
  void SettlePart(const Shelf& shelf, const Slot& slot, std::span<const Settlement> settlements,
                  std::vector<uint32_t> places, Moment now, const std::shared_ptr<Gather<SettleOutcome>>& gather);
  /// The job at a place of what the script Find gave.
  static Status ShowFound(const ReplyView& found, size_t at, uint32_t slot, JobBatch& batch, JobView& view);

  static std::shared_ptr<Advancing> MakeAdvancing(Moment now, Done<Advanced> done);
  void LeaveAdvance(const std::shared_ptr<Advancing>& advancing);
  /// From the slot that the script before it ended with, where there were too many for one.
  void ScanGroup(Group& group, const std::shared_ptr<Advancing>& advancing, std::string_view last = {},
                 std::string_view score = {});
  void Scanned(Group& group, const ReplyView& reply, const std::shared_ptr<Advancing>& advancing);
  void DoChores(Group& group, std::string_view slot, const std::shared_ptr<Advancing>& advancing);
  void CheckTopics(const std::shared_ptr<Advancing>& advancing);
  void ReadTopics(int64_t version, const std::shared_ptr<Advancing>& advancing);
  void TakeTopics(const ReplyView& reply, Advanced& advanced);
  void RefreshFigures();
  void Heard(std::string_view message);
  void TakeGroup(Group& group);
  void Refused(Group& group);

  void ListNext(std::shared_ptr<Listing> listing);
  void ListFound(std::shared_ptr<Listing> listing, const ReplyView& scanned);
  void SweepNext(std::shared_ptr<Sweeping> sweeping);

  Client& client_;
  const Clock& clock_;
  const StoreOptions options_;
  const SharedKeys keys_;
  std::map<std::string, Shelf, std::less<>> shelves_;
  std::vector<std::unique_ptr<Group>> groups_;  // by number; null for those of other shards

  ClockGap redis_clock_;
  Time scan_all_at_ = Time::min();  // on the steady timeline
  Rooms rooms_;
  std::string record_;  // scratch of one call
  bool topics_stale_ = true;
  int64_t topics_version_ = -1;
  std::set<std::string, std::less<>>
      to_report_;             // topics that have, or had, ready slots and may not have been reported
  std::string refresh_from_;  // the topic whose figures are read next
  std::function<void()> news_;
  std::function<void()> refused_;
};

}  // namespace tocsin::redis
