// Any bytes as a header, a record, entries or a body, and as a whole segment file: read or refused, never a crash, a
// hang or more memory than the input accounts for. What opens has to answer for the state that it claims.
//
// Input: the first byte chooses what the rest is. A segment is given as bodies of records, which get sound headers, so
// that the reader behind the checksum is met too.
#include <cstdint>
#include <string>
#include <vector>

#include <sys/prctl.h>

#include "base/codec.h"
#include "base/hash.h"
#include "base/result.h"
#include "sim/sim_node.h"
#include "storage/journal/inspect.h"

namespace tocsin::journal {
namespace {

constexpr uint64_t kSegment = 64 << 10;
constexpr int64_t kNowMs = 1'800'000'000'000;

class Nothing final : public EntryVisitor {
 public:
  void OnPut(const PutEntry&) override {}
  void OnMove(const MoveEntry&) override {}
  void OnCount(const CountEntry&) override {}
  void OnEnd(const EndEntry&) override {}
  void OnTopic(uint32_t, const Topic&) override {}
  void OnDropTopic(uint32_t) override {}
  void OnUids(Uid) override {}
};

void Parts(std::string_view bytes) {
  std::string block(bytes);
  block.resize(kBlock, '\0');
  const uint32_t crc = Crc32c(std::string_view(block).substr(4));
  std::memcpy(block.data(), &crc, sizeof(crc));
  static_cast<void>(DecodeSegmentHeader(block));
  static_cast<void>(DecodeSegmentHeader(bytes));
  static_cast<void>(CheckRecord(bytes, 0));
  Nothing nothing;
  static_cast<void>(DecodeEntries(bytes, {FromMs(kNowMs), FromMs(kNowMs)}, nothing));
  JobView view;
  if (DecodeBody(bytes, view)) static_cast<void>(DecodeId(bytes));
}

/// A segment with one record for each piece of the input: type, lane and length come from the input, the checksum is
/// right.
std::string Segment(std::string_view bytes) {
  std::string image = EncodeSegmentHeader({kSegment, 1});
  Reader input(bytes);
  while (!input.done() && image.size() < kSegment / 2) {
    const auto type = static_cast<RecordType>(1 + input.Fixed<uint8_t>() % 3);
    const uint16_t lane = input.Fixed<uint8_t>() % 3;
    const uint32_t generation = 1 + input.Fixed<uint8_t>() % 2;
    const size_t size = std::min<size_t>(input.Fixed<uint16_t>() % 1024U, input.left());
    std::string record;
    const size_t begin = BeginRecord(record, type, lane, generation, {FromMs(kNowMs), FromMs(kNowMs)});
    record += input.Take(size);
    EndRecord(record, begin);
    PlaceRecord(record.data(), kSegment + image.size(), kSegment + image.size());
    image += record;
  }
  return image;
}

void WholeFile(std::string image) {
  image.resize(kSegment, '\0');
  auto disk = std::make_unique<SimFileSystem>();
  TOCSIN_CHECK(disk->MakeDir("data"));
  {
    auto file = disk->Open("data/00000001.segment", OpenMode::kCreate);
    TOCSIN_CHECK(file && (*file)->Write(0, image) && (*file)->Sync());
  }
  const auto report = Verify(*disk, "data");
  SimNode node(SimNode::SmallOptions(), std::move(disk));
  if (!node.Open()) {
    TOCSIN_CHECK(!report || !report->damage.empty());
    return;
  }
  if (!report) return;  // no header, so no journal: a new one was begun
  TOCSIN_CHECK(report->damage.empty());
  uint64_t listed = 0;
  for (const TopicFigures& figures : node.store().Topics()) {
    for (const State state : {State::kScheduled, State::kDead}) {
      node.store().List(figures.topic.name, OfState(state), "", {100'000}, node.clock().Now(), [&](Result<Page> page) {
        if (page) listed += page->jobs.jobs.size();
      });
    }
    node.store().Claim(figures.topic.name, {100}, Millis(10), node.clock().Now(), [](const Result<JobBatch>&) {});
  }
  TOCSIN_CHECK(listed == report->jobs_live + report->jobs_dead);
  node.clock().Advance(std::chrono::days(1));
  for (int i = 0; i < 3; ++i) node.store().Advance(node.clock().Now(), 1'000, [](const Result<Advanced>&) {});
  node.Pump();
  TOCSIN_CHECK(node.CloseAndOpen());
}

}  // namespace
}  // namespace tocsin::journal

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // A store that holds few jobs touches few pages: zeroing huge ones would take most of the time.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      tocsin::journal::Parts(bytes);
      break;
    case 1:
      tocsin::journal::WholeFile(std::string(bytes));
      break;
    default:
      tocsin::journal::WholeFile(tocsin::journal::Segment(bytes));
      break;
  }
  return 0;
}
