// TopicTexts: the topics of a lane as its prologues define them, encoded in advance. A prologue of a hundred thousand
// topics is then a copy of a few megabytes; encoding them would hold up the shard. Owned by the ShardStore.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "storage/journal/entries.h"
#include "storage/journal/hot_tier.h"

namespace tocsin::journal {

class TopicTexts {
 public:
  /// The topic of this number was added, changed or removed.
  void Update(const HotTier& tier, TopicNumber number) {
    const size_t block = number / kBlockTopics;
    if (block >= blocks_.size()) blocks_.resize(block + 1);
    std::string& text = blocks_[block];
    bytes_ -= text.size();
    if (number == end_) {
      ++end_;
      Encode(tier, number, text);
    } else {
      text.clear();
      const size_t stop = std::min<size_t>(end_, (block + 1) * kBlockTopics);
      for (size_t each = block * kBlockTopics; each < stop; ++each) Encode(tier, static_cast<TopicNumber>(each), text);
    }
    bytes_ += text.size();
  }

  size_t bytes() const { return bytes_; }
  void AppendTo(std::string& out) const {
    out.reserve(out.size() + bytes_);
    for (const std::string& text : blocks_) out += text;
  }

 private:
  static constexpr size_t kBlockTopics = 64;

  static void Encode(const HotTier& tier, TopicNumber number, std::string& out) {
    const TopicState& topic = tier.topic(number);
    if (topic.used) EncodeTopic(out, number, topic.settings);
  }

  std::vector<std::string> blocks_;  // each with the topics of kBlockTopics numbers
  size_t bytes_ = 0;
  TopicNumber end_ = 0;  // the numbers below it have been used
};

}  // namespace tocsin::journal
