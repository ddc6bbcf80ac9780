// Replay: applies the records of a journal to the stores of a node's shards. The number of shards may have changed
// since they were written: each job goes to the shard that serves its slot now.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "storage/journal/shard_store.h"

namespace tocsin::journal {

class Replay final : private EntryVisitor {
 public:
  explicit Replay(std::vector<std::unique_ptr<ShardStore>>& shards) : shards_(shards) {}

  /// Notes the topics that this record defines and drops. The repair calls it for all records before the first Record:
  /// if damage has destroyed the definition of a topic number, the next one is used, unless a drop comes before it.
  void NoteTopics(const RecordHeader& header, std::string_view body);
  /// What is in the place of damaged records: notes the jobs that can be told from it.
  void NoteDamaged(std::string_view bytes);
  /// Jobs whose puts were damaged, and that later records neither put again nor end.
  const std::unordered_set<Uid>& damaged() const { return damaged_; }
  /// False if the record is malformed.
  bool Record(const RecordHeader& header, std::string_view body, uint64_t segment);
  /// Called after the last record: only now all jobs of dropped topics are gone.
  void Finish();

 private:
  struct Job {
    ShardStore* shard = nullptr;
    TopicNumber topic = kNoTopic;
    Index index = 0;
  };

  void OnPut(const PutEntry& entry) override;
  void OnMove(const MoveEntry& entry) override;
  void OnCount(const CountEntry& entry) override;
  void OnEnd(const EndEntry& entry) override;
  void OnTopic(uint32_t number, const Topic& topic) override;
  void OnDropTopic(uint32_t number) override;
  void OnUids(Uid used) override;

  /// A topic of the current lane, as each shard numbers it.
  struct LaneTopic {
    std::string name;
    uint32_t home = 0;
    std::vector<TopicNumber> numbers;
    uint64_t life = 0;  // as in lives_: another one means that the topic was dropped since
  };
  bool IsCurrent(const LaneTopic& topic) const { return lives_[topic.numbers.front()] == topic.life; }
  /// Null if the lane has no topic of this number now.
  const LaneTopic* CurrentOf(uint32_t number) const;
  /// The same, but looks for a later definition.
  const LaneTopic* TopicOf(uint32_t number);
  Job Find(uint32_t topic, Uid uid);
  static void EraseDropped(ShardStore& shard);

  std::vector<std::unique_ptr<ShardStore>>& shards_;
  struct Noted {
    Lsn lsn = 0;
    std::optional<Topic> topic;  // nothing: dropped
  };
  std::map<std::tuple<uint32_t, uint16_t, uint32_t>, std::vector<Noted>> noted_;  // by generation, lane, number
  std::unordered_set<Uid> damaged_;
  uint32_t generation_ = 0;
  uint16_t lane_number_ = 0;
  Lsn lsn_ = 0;
  using LaneTopics = std::unordered_map<uint32_t, LaneTopic>;  // by number
  std::map<uint16_t, LaneTopics> lanes_;                       // of the current generation
  LaneTopics* lane_ = nullptr;
  std::vector<uint64_t> lives_;  // how often each number of the first shard was given back
  Moment moment_;
  uint64_t segment_ = 0;
};

}  // namespace tocsin::journal
