#include "core/every_shard.h"

#include <memory>

namespace tocsin {

void OnEvery(Node& node, Shard& origin, const std::function<void(Shard&, Done<void>)>& work, Done<void> all) {
  struct Round {
    size_t left;
    Result<void> result;
    Done<void> all;
  };
  auto round = std::make_shared<Round>(node.shards.size(), Result<void>{}, std::move(all));
  for (auto& pointer : node.shards) {
    Shard& shard = *pointer;
    Done<void> done = [&shard, &origin, round](Result<void> result) {
      shard.Note(result);
      RunOn(shard, origin, [round, result = std::move(result)]() mutable {
        if (!result && round->result) round->result = std::move(result);
        if (--round->left == 0) round->all(std::move(round->result));
      });
    };
    RunOn(origin, shard, [&shard, work, done = std::move(done)]() mutable { work(shard, std::move(done)); });
  }
}

}  // namespace tocsin
