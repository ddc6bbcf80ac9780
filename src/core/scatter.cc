#include "core/scatter.h"

namespace tocsin {

void OnEveryShard(Node& node, Shard& origin, const std::function<void(Shard&, Done<void>)>& work, Done<void> all) {
  struct Every final : Round {
    explicit Every(Done<void> the_all) : all(std::move(the_all)) {}
    void End(Status status) override { all(std::move(status)); }
    Done<void> all;
  };
  auto round = std::make_shared<Every>(std::move(all));
  for (const auto& pointer : node.shards) {
    Shard& shard = *pointer;
    round->Expect();
    Done<void> done = [&shard, &origin, round](Result<void> result) {
      shard.Note(result);
      RunOn(shard, origin, [round, result = std::move(result)]() mutable { round->Take(std::move(result)); });
    };
    RunOn(origin, shard, [&shard, work, done = std::move(done)]() mutable { work(shard, std::move(done)); });
  }
  round->Take({});
}

}  // namespace tocsin
