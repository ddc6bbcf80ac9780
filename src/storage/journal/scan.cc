#include "storage/journal/scan.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/codec.h"

namespace tocsin::journal {
namespace {

constexpr std::string_view kSuffix = ".segment";

class Scanner {
 public:
  Scanner(FileSystem& fs, const std::string& folder, const OnRecord& on_record, const Salvage* salvage)
      : fs_(fs), folder_(folder), on_record_(on_record), salvage_(salvage) {}

  Result<Scanned> Run() {
    TOCSIN_TRY(ReadHeaders());
    if (salvage_ != nullptr) TOCSIN_TRY(NumberByRecords());
    ChooseRun();
    for (size_t i = 0; i < scanned_.used.size(); ++i) {
      if (i > 0 && scanned_.used[i].number != scanned_.used[i - 1].number + 1) PassGap(i);
      TOCSIN_TRY(ScanSegment(i));
    }
    CheckEnds();
    return std::move(scanned_);
  }

 private:
  /// A place without a valid record. Damage if a witness proves that there was one.
  struct Gap {
    std::string file;
    uint64_t segment = 0;
    uint64_t offset = 0;
    Lsn lsn = 0;
    std::string bytes;  // up to the next record; only to salvage
  };
  /// A valid record behind a gap: taken if a witness follows, otherwise part of the torn tail.
  struct BehindGap {
    RecordHeader header;
    std::string body;
    const SegmentFile* segment = nullptr;
    uint64_t offset = 0;
  };

  Status ReadHeaders() {
    TOCSIN_ASSIGN(const auto names, fs_.List(folder_));
    for (const std::string& name : names) {
      if (!name.ends_with(kSuffix)) continue;
      TOCSIN_ASSIGN(const auto file, fs_.Open(folder_ + "/" + name, OpenMode::kRead));
      TOCSIN_ASSIGN(const uint64_t size, file->Size());
      std::string block(kBlock, '\0');
      TOCSIN_TRY(file->Read(0, block));
      auto header = DecodeSegmentHeader(block);
      if (!header && header.error().code == Code::kUnsupportedFormat) {
        return std::unexpected(std::move(header).error().Prefixed(folder_ + "/" + name));
      }
      if (!header) {
        // A power cut met this file while it was being made or its header was being rewritten. It is free, or removed
        // if it is not of full size.
        free_sizes_.emplace_back(name, size);
        if (block.find_first_not_of('\0') != std::string::npos) odd_.push_back(name);
        continue;
      }
      scanned_.segment_bytes = header->segment_bytes;
      if (size < header->segment_bytes) {
        scanned_.damage.push_back(
            {name, size, fmt::format("the file is cut off; it should have {} bytes", header->segment_bytes)});
      }
      scanned_.used.push_back({name, header->number});
    }
    return {};
  }

  /// Records name their own place, so a file without a valid header still tells which segment it is. A file that was
  /// free tells the number that it had before, which is no longer needed.
  Status NumberByRecords() {
    for (const auto& [name, size] : free_sizes_) {
      if (scanned_.segment_bytes != 0) break;
      if (size % kBlock == 0 && size >= 2 * kBlock && size <= kSegmentBytesMax) scanned_.segment_bytes = size;
    }
    if (scanned_.segment_bytes == 0) return {};
    auto unnamed = std::exchange(free_sizes_, {});
    for (auto& [name, size] : unnamed) {
      TOCSIN_ASSIGN(const auto file, fs_.Open(folder_ + "/" + name, OpenMode::kRead));
      buffer_.resize(scanned_.segment_bytes);
      TOCSIN_ASSIGN(const size_t read, file->Read(0, buffer_));
      const uint64_t number = NumberIn(std::string_view(buffer_).substr(0, read));
      if (number < salvage_->from) {
        free_sizes_.emplace_back(std::move(name), size);
        continue;
      }
      std::erase(odd_, name);
      scanned_.damage.push_back(
          {name, 0, fmt::format("the segment header is damaged; its records say that it is segment {}", number)});
      scanned_.used.push_back({std::move(name), number});
    }
    return {};
  }

  /// The latest segment that a valid record names; 0 if there is none.
  uint64_t NumberIn(std::string_view bytes) const {
    uint64_t number = 0;
    for (size_t at = kBlock; at + sizeof(RecordHeader) <= bytes.size();) {
      Lsn lsn = 0;
      std::memcpy(&lsn, bytes.data() + at + offsetof(RecordHeader, lsn), sizeof(lsn));
      const auto header =
          lsn % scanned_.segment_bytes == at ? CheckRecord(bytes.substr(at), lsn) : std::optional<RecordHeader>();
      if (header) number = std::max(number, lsn / scanned_.segment_bytes);
      at += header ? header->size : 1;
    }
    return number;
  }

  void ChooseRun() {
    // Freed files may still have their numbers. Only files that lead up to the last one without a gap are in use.
    std::ranges::sort(scanned_.used, {}, &SegmentFile::number);
    size_t first = scanned_.used.empty() ? 0 : scanned_.used.size() - 1;
    const auto belongs = [&](size_t i) {
      if (salvage_ != nullptr) return scanned_.used[i].number >= salvage_->from;
      return scanned_.used[i].number + 1 == scanned_.used[i + 1].number;
    };
    while (first > 0 && belongs(first - 1)) --first;
    for (const auto& [name, size] : free_sizes_) {
      const bool whole = scanned_.segment_bytes != 0 && size == scanned_.segment_bytes;
      (whole ? scanned_.free : scanned_.unfit).push_back(name);
    }
    for (size_t i = 0; i < first; ++i) {
      left_out_.push_back(scanned_.used.front().number);
      scanned_.free.push_back(std::move(scanned_.used.front().name));
      scanned_.used.pop_front();
    }
  }

  /// Which segments before `first` are needed and have no file: "segments 2, 5 to 7 are missing".
  std::string Missing(uint64_t first) const {
    std::vector<std::string> ranges;
    uint64_t next = first_needed_;  // `left_out_` rises
    const auto missing_before = [&](uint64_t number) {
      if (number > next + 1) ranges.push_back(fmt::format("{} to {}", next, number - 1));
      if (number == next + 1) ranges.push_back(fmt::to_string(next));
      next = std::max(next, number + 1);
    };
    for (const uint64_t number : left_out_) missing_before(number);
    missing_before(first);
    if (ranges.empty()) return fmt::format("two files say that they are segment {}", first);
    const bool one = ranges.size() == 1 && ranges[0].find(' ') == std::string::npos;
    return fmt::format("segment{} {} {} missing", one ? "" : "s", fmt::join(ranges, ", "), one ? "is" : "are");
  }

  void PassGap(size_t position) {
    const SegmentFile& before = scanned_.used[position - 1];
    const SegmentFile& after = scanned_.used[position];
    scanned_.damage.push_back(
        {after.name, 0,
         after.number == before.number
             ? fmt::format("it says that it is segment {}, as {} does", after.number, before.name)
             : fmt::format("segments {} to {} before it are missing", before.number + 1, after.number - 1)});
    // The records at the end of the segment before the gap are good, because the journal continues behind it.
    for (const BehindGap& each : behind_) Take(each.header, each.body, *each.segment, each.offset);
    behind_.clear();
    gaps_.clear();
  }

  Status ScanSegment(size_t position) {
    const SegmentFile& segment = scanned_.used[position];
    TOCSIN_ASSIGN(const auto file, fs_.Open(folder_ + "/" + segment.name, OpenMode::kRead));
    buffer_.resize(scanned_.segment_bytes);
    TOCSIN_ASSIGN(const size_t read, file->Read(0, buffer_));
    ScanRecords(std::string_view(buffer_).substr(0, read), segment);
    return {};
  }

  void ScanRecords(std::string_view bytes, const SegmentFile& segment) {
    const Lsn base = LsnOf(segment.number, 0);
    size_t expected = kBlock;
    closed_ = false;
    for (size_t at = kBlock; at < bytes.size();) {
      const auto header = CheckRecord(bytes.substr(at), base + at);
      if (!header || header->generation < generation_) {
        const size_t next = NextRecord(bytes, at + 1, base);
        if (at == expected) gaps_.push_back({segment.name, segment.number, at, base + at, {}});
        if (salvage_ != nullptr && !gaps_.empty()) gaps_.back().bytes.append(bytes.substr(at, next - at));
        at = next;
        continue;
      }
      const std::string_view body = bytes.substr(at + sizeof(RecordHeader), header->size - sizeof(RecordHeader));
      Witness(*header);
      if (gaps_.empty()) {
        Take(*header, body, segment, at);
      } else {
        behind_.push_back({*header, std::string(body), &segment, at});
      }
      at += header->size;
      expected = at;
      if (header->type == RecordType::kClose) {
        closed_ = true;
        return;
      }
    }
    // The segment is full or cut off, and does not end with a close record.
    if (expected == bytes.size()) gaps_.push_back({segment.name, segment.number, expected, base + expected, {}});
  }

  /// Everything below header.synced was durable: gaps there are damage, and records there are good.
  void Witness(const RecordHeader& header) {
    if (gaps_.empty()) return;
    while (!gaps_.empty() && gaps_.front().lsn < header.synced) {
      scanned_.damage.push_back({gaps_.front().file, gaps_.front().offset, "a record is damaged or missing"});
      if (salvage_ != nullptr) salvage_->on_damaged(gaps_.front().bytes);
      gaps_.pop_front();
    }
    const Lsn good = gaps_.empty() ? header.lsn : gaps_.front().lsn;
    while (!behind_.empty() && behind_.front().header.lsn < good) {
      const BehindGap& first = behind_.front();
      Take(first.header, first.body, *first.segment, first.offset);
      behind_.pop_front();
    }
  }

  /// A record holds its own position, so a search for the next one needs no other mark.
  static size_t NextRecord(std::string_view bytes, size_t from, Lsn base) {
    constexpr size_t kLsnAt = offsetof(RecordHeader, lsn);
    for (size_t at = from; at + sizeof(RecordHeader) <= bytes.size(); ++at) {
      Lsn lsn = 0;
      std::memcpy(&lsn, bytes.data() + at + kLsnAt, sizeof(lsn));
      if (lsn == base + at) return at;
    }
    return bytes.size();
  }

  void Take(const RecordHeader& header, std::string_view body, const SegmentFile& segment, uint64_t offset) {
    generation_ = header.generation;
    if (header.moment().steady >= scanned_.past.last.steady) scanned_.past.last = header.moment();
    ++scanned_.records;
    scanned_.bytes += header.size;
    bool good = true;
    if (header.type == RecordType::kSeal) {
      const auto seal = DecodeSeal(body);
      good = seal.has_value();
      if (good) first_needed_ = std::max(first_needed_, seal->first_needed);
      if (good) scanned_.past.mark = seal->mark;
    } else if (header.type == RecordType::kEntries) {
      good = on_record_(header, body, segment.number);
    } else {
      good = header.type == RecordType::kClose;
    }
    if (!good) scanned_.damage.push_back({segment.name, offset, "a record holds what this program cannot read"});
  }

  void CheckEnds() {
    scanned_.end.first_needed = first_needed_;
    scanned_.end.generation = generation_;
    if (scanned_.used.empty()) {
      for (const std::string& name : odd_) scanned_.damage.push_back({name, 0, "the segment header is damaged"});
      return;
    }
    const uint64_t first = scanned_.used.front().number;
    if (first > first_needed_) {
      const std::string hint = odd_.empty() ? "" : fmt::format(" (the header of {} is damaged)", odd_.front());
      scanned_.damage.push_back({odd_.empty() ? scanned_.used.front().name : odd_.front(), 0, Missing(first) + hint});
    }
    for (const BehindGap& each : behind_) scanned_.torn_tail_bytes += each.header.size;
    if (!gaps_.empty()) {
      scanned_.end.segment = gaps_.front().segment;
      scanned_.end.offset = gaps_.front().offset;
    } else if (closed_) {
      const SegmentFile& last = scanned_.used.back();
      scanned_.damage.push_back({last.name, scanned_.segment_bytes,
                                 fmt::format("segment {}, in which the journal goes on, is missing", last.number + 1)});
      scanned_.end.segment = last.number;
      scanned_.end.offset = scanned_.segment_bytes;
    }
    // Segments behind the end were prepared, or hold only records that were never acknowledged. They are free, and used
    // first: no other file may get a number that one of them still has.
    while (!scanned_.used.empty() && scanned_.used.back().number > scanned_.end.segment) {
      scanned_.free.push_front(std::move(scanned_.used.back().name));
      scanned_.used.pop_back();
    }
  }

  Lsn LsnOf(uint64_t segment, uint64_t offset) const { return segment * scanned_.segment_bytes + offset; }

  FileSystem& fs_;
  const std::string& folder_;
  const OnRecord& on_record_;
  const Salvage* const salvage_;
  Scanned scanned_;
  std::string buffer_;
  std::deque<Gap> gaps_;          // not, or not yet, proved to be damage
  std::deque<BehindGap> behind_;  // records behind the first gap
  std::vector<std::pair<std::string, uint64_t>> free_sizes_;
  std::vector<uint64_t> left_out_;  // numbers of files before the run that is used
  std::vector<std::string> odd_;    // files whose header is neither valid nor empty
  uint64_t first_needed_ = 1;
  uint32_t generation_ = 0;
  bool closed_ = true;  // the segment before ended with a close record, or there was none
};

}  // namespace

Result<Scanned> Scan(FileSystem& fs, const std::string& folder, const OnRecord& on_record, const Salvage* salvage) {
  return Scanner(fs, folder, on_record, salvage).Run();
}

Status RefuseDamage(const Scanned& scanned) {
  if (scanned.damage.empty()) return {};
  const Damage& first = scanned.damage.front();
  return Fail(
      Code::kCorrupt,
      "the journal is damaged: {} at offset {}: {}{}; `tocsin journal verify` lists all damage, `tocsin journal "
      "repair` makes a new folder with what can be saved",
      first.file, first.offset, first.what,
      scanned.damage.size() > 1 ? fmt::format(" ({} more)", scanned.damage.size() - 1) : "");
}

}  // namespace tocsin::journal
