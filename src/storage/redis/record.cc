#include "storage/redis/record.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tocsin::redis {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kFirstSettings = 10;  // that stand at fixed places, behind the version
// What a section behind them begins with.
constexpr uint8_t kDeliverySection = 1;
constexpr uint8_t kSettingsSection = 2;

void PutBig(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = bytes; i-- > 0;) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t Big(std::string_view text, size_t at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<uint8_t>(text[at + i]);
  return value;
}

/// The number between two places.
uint64_t Field(std::string_view text, size_t at, size_t end) { return Big(text, at, end - at); }

std::unexpected<Error> Torn(std::string_view what) {
  return Fail(Code::kCorrupt, "a job's {} in Redis is not whole", what);
}

/// Cuts `size` bytes off the front; false if there are fewer.
bool Cut(std::string_view& rest, size_t size, std::string_view& out) {
  if (rest.size() < size) return false;
  out = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

// Headers: u16 name size | u32 value size | name | value, each.

/// When a copy was created, as the value of kCreatedHeader; empty if it does not say it.
std::string CreatedText(const NewJob& job) {
  const bool known = job.restored && job.restored->created != Time{};
  return known ? fmt::format("{}", ToMs(job.restored->created)) : std::string();
}

size_t SizeOf(const HeaderView& header) { return 6 + header.name.size() + header.value.size(); }

size_t HeadersSize(const NewJob& job, std::string_view created) {
  size_t size = created.empty() ? 0 : SizeOf({kCreatedHeader, created});
  for (const HeaderView& header : job.headers) size += SizeOf(header);
  return size;
}

void PutHeader(std::string& out, const HeaderView& header) {
  PutBig(out, header.name.size(), 2);
  PutBig(out, header.value.size(), 4);
  out += header.name;
  out += header.value;
}

void PutHeaders(std::string& out, const NewJob& job, std::string_view created) {
  if (!created.empty()) PutHeader(out, {kCreatedHeader, created});
  for (const HeaderView& header : job.headers) PutHeader(out, header);
}

/// False if it is another header.
bool ReadCreated(const HeaderView& header, JobView& view) {
  if (header.name != kCreatedHeader) return false;
  int64_t ms = 0;
  const char* const end = header.value.data() + header.value.size();
  const auto [stop, error] = std::from_chars(header.value.data(), end, ms);
  if (error != std::errc() || stop != end) return false;
  view.created = FromMs(ms);
  return true;
}

bool ReadHeaders(std::string_view bytes, JobView& view) {
  while (!bytes.empty()) {
    std::string_view sizes;
    HeaderView header;
    if (!Cut(bytes, 6, sizes)) return false;
    if (!Cut(bytes, Big(sizes, 0, 2), header.name) || !Cut(bytes, Big(sizes, 2, 4), header.value)) return false;
    if (!ReadCreated(header, view)) view.headers.push_back(header);
  }
  return true;
}

Time DueIn(uint64_t sequence, std::string_view record) {
  const uint64_t due = Field(record, record_at::kDue, record_at::kVersion);
  if (due == 0) return kNever;
  if (due < kDelayed) return FromMs(static_cast<int64_t>(due));
  return TimeOf(sequence) + Millis(due - kDelayed);
}

/// A note without its head, in parts.
struct NoteEnd {
  std::string_view reason;
  std::string_view holder;
  Time last_attempt{};
  Time since{};
  uint32_t extensions = 0;
};

NoteEnd EndOf(std::string_view note) {
  NoteEnd end{.reason = note.substr(note_at::kReason)};
  if (end.reason.size() < tail_at::kEnd || static_cast<uint8_t>(end.reason.back()) != kTailMark) return end;
  const std::string_view tail = end.reason.substr(end.reason.size() - tail_at::kEnd);
  const size_t holder = Field(tail, tail_at::kHolderSize, tail_at::kMark);
  if (end.reason.size() < tail_at::kEnd + holder) return end;  // a reason that ends like a tail
  end.reason.remove_suffix(tail_at::kEnd);
  end.holder = end.reason.substr(end.reason.size() - holder);
  end.reason.remove_suffix(holder);
  end.last_attempt = FromMs(static_cast<int64_t>(Field(tail, tail_at::kLastAttempt, tail_at::kSince)));
  end.since = FromMs(static_cast<int64_t>(Field(tail, tail_at::kSince, tail_at::kExtensions)));
  end.extensions = static_cast<uint32_t>(Field(tail, tail_at::kExtensions, tail_at::kHolderSize));
  return end;
}

/// When a lease began that was not extended, and who has it: its claim tells. The fence of a later lease tells the time
/// too.
void ShowClaim(std::string_view claim, std::string_view note, JobView& view) {
  constexpr int kWordsBefore = 2;  // jobs and bytes
  for (int i = 0; i < kWordsBefore; ++i) {
    const size_t end = claim.find(' ');
    claim.remove_prefix(end == std::string_view::npos ? claim.size() : end + 1);
  }
  int64_t began = 0;
  const char* const end = claim.data() + claim.size();
  const auto [stop, error] = std::from_chars(claim.data(), end, began);
  if (error == std::errc() && stop != end) {
    view.leased = FromMs(began);
    view.holder = std::string_view(stop + 1, end);
  } else if (!note.empty()) {
    const uint64_t flags = Field(note, note_at::kFlags, note_at::kReason);
    const uint64_t fence = Field(note, note_at::kFence, note_at::kAttempts);
    const bool first = (flags & std::to_underlying(NoteFlag::kFirstLease)) != 0;
    if (!first && fence != 0) view.leased = TimeOf(fence);
  }
}

void PutDelivery(std::string& out, const Delivery& delivery) {
  PutBig(out, kDeliverySection, 1);
  PutBig(out, delivery.sink.size(), 2);
  out += delivery.sink;
  for (const auto& [name, value] : delivery.settings) {
    PutBig(out, name.size(), 2);
    PutBig(out, value.size(), 2);
    out += name;
    out += value;
  }
}

/// False if the bytes are not whole or not a delivery.
bool ReadDelivery(std::string_view rest, Delivery& delivery) {
  std::string_view head;
  std::string_view sink;
  if (!Cut(rest, 3, head) || Big(head, 0, 1) != kDeliverySection || !Cut(rest, Big(head, 1, 2), sink)) return false;
  delivery.sink = sink;
  while (!rest.empty()) {
    std::string_view sizes;
    std::string_view name;
    std::string_view value;
    if (!Cut(rest, 4, sizes) || !Cut(rest, Big(sizes, 0, 2), name) || !Cut(rest, Big(sizes, 2, 2), value)) return false;
    delivery.settings.insert_or_assign(std::string(name), std::string(value));
  }
  return delivery.Pushes();
}

/// Takes u64 each from the front of `rest`. False if it is too short or a value is out of range.
bool ReadSettings(std::string_view& rest, std::span<const TopicSetting> settings, Topic& topic) {
  for (const TopicSetting& setting : settings) {
    std::string_view number;
    if (!Cut(rest, 8, number) || !CheckRange(setting, Big(number, 0, 8))) return false;
    setting.set(topic, Big(number, 0, 8));
  }
  return true;
}

/// The settings that were added after the first ones; as many as the writer knew.
bool ReadMoreSettings(std::string_view& rest, std::span<const TopicSetting> known, Topic& topic) {
  std::string_view head;
  if (rest.empty() || Big(rest, 0, 1) != kSettingsSection) return true;
  return Cut(rest, 2, head) && Big(head, 1, 1) <= known.size() &&
         ReadSettings(rest, known.first(Big(head, 1, 1)), topic);
}

bool ReadTopic(std::string_view rest, std::span<const TopicSetting> known, StoredTopic& topic) {
  std::string_view version;
  if (rest.size() < 16) return false;
  topic.birth = Big(rest, rest.size() - 8, 8);
  rest.remove_suffix(8);
  Cut(rest, 8, version);
  topic.version = Big(version, 0, 8);
  return ReadSettings(rest, known.first(kFirstSettings), topic) &&
         ReadMoreSettings(rest, known.subspan(kFirstSettings), topic) &&
         (rest.empty() || ReadDelivery(rest, topic.delivery));
}

}  // namespace

std::string MemberOf(uint64_t sequence) {
  std::string member;
  PutBig(member, sequence, kMemberBytes);
  return member;
}

std::optional<uint64_t> SequenceOf(std::string_view member) {
  if (member.size() != kMemberBytes) return std::nullopt;
  return Big(member, 0, kMemberBytes);
}

std::string IdField(const JobRef& job) {
  std::string field;
  if (job.id.empty() || job.uid != 0) return field;
  PutBig(field, job.key.size(), 2);
  field += job.key;
  field += job.id;
  return field;
}

void EncodeRecord(const NewJob& job, const Topic& topic, int64_t when, std::string& out) {
  out.clear();
  uint64_t count = 0;
  if (job.trigger != Trigger::kTime) count = job.count != 0 ? job.count : topic.count_limit;
  const std::string created = CreatedText(job);
  const size_t headers = HeadersSize(job, created);
  out.reserve(record_at::kKey + job.key.size() + job.id.size() + headers + job.payload.size());
  const auto due = static_cast<uint64_t>(when);
  PutBig(out, when < kAbsoluteMin ? kDelayed + due : due, record_at::kVersion - record_at::kDue);
  PutBig(out, kVersion, record_at::kTrigger - record_at::kVersion);
  PutBig(out, static_cast<uint64_t>(job.trigger), record_at::kMaxAttempts - record_at::kTrigger);
  PutBig(out, job.max_attempts != 0 ? job.max_attempts : topic.max_attempts,
         record_at::kEvents - record_at::kMaxAttempts);
  PutBig(out, count, record_at::kFingerprint - record_at::kEvents);
  PutBig(out, Fingerprint(job), record_at::kKeySize - record_at::kFingerprint);
  PutBig(out, job.key.size(), record_at::kIdSize - record_at::kKeySize);
  PutBig(out, job.id.size(), record_at::kHeadersSize - record_at::kIdSize);
  PutBig(out, headers, record_at::kKey - record_at::kHeadersSize);
  out += job.key;
  out += job.id;
  PutHeaders(out, job, created);
  out += job.payload;
}

std::string EncodeNote(const Restored& past) {
  std::string note;
  const bool tried = past.attempts > 0 || past.last_attempt != Time{} || !past.reason.empty();
  if (!tried && !past.dead) return note;
  PutBig(note, 0, note_at::kAttempts - note_at::kFence);
  PutBig(note, past.attempts, note_at::kFlags - note_at::kAttempts);
  PutBig(note, 0, note_at::kReason - note_at::kFlags);
  note += past.reason;
  // A reason that may be taken for a tail gets a tail.
  const bool ends_as_tail = !past.reason.empty() && static_cast<uint8_t>(past.reason.back()) == kTailMark;
  if (past.last_attempt == Time{} && !ends_as_tail) return note;
  PutBig(note, static_cast<uint64_t>(ToMs(past.last_attempt)), tail_at::kSince - tail_at::kLastAttempt);
  note.append(tail_at::kMark - tail_at::kSince, '\0');
  PutBig(note, kTailMark, tail_at::kEnd - tail_at::kMark);
  return note;
}

Status DecodeJob(uint64_t sequence, std::string_view record, std::string_view note, JobView& view) {
  if (record.size() < record_at::kKey) return Torn("record");
  view.due = DueIn(sequence, record);
  view.created = TimeOf(sequence);
  const uint64_t version = Field(record, record_at::kVersion, record_at::kTrigger);
  if (version != kVersion) {
    return Fail(Code::kUnsupportedFormat, "a job in Redis has format {}, this program reads {}", version, kVersion);
  }
  view.trigger = static_cast<Trigger>(Field(record, record_at::kTrigger, record_at::kMaxAttempts));
  view.max_attempts = static_cast<uint32_t>(Field(record, record_at::kMaxAttempts, record_at::kEvents));
  std::string_view rest = record.substr(record_at::kKey);
  std::string_view headers;
  if (!Cut(rest, Field(record, record_at::kKeySize, record_at::kIdSize), view.key) ||
      !Cut(rest, Field(record, record_at::kIdSize, record_at::kHeadersSize), view.own_id) ||
      !Cut(rest, Field(record, record_at::kHeadersSize, record_at::kKey), headers) || !ReadHeaders(headers, view)) {
    return Torn("record");
  }
  view.payload = rest;
  if (note.empty()) return {};
  if (note.size() < note_at::kReason) return Torn("note");
  view.attempt = static_cast<uint32_t>(Field(note, note_at::kAttempts, note_at::kFlags));
  const uint64_t flags = Field(note, note_at::kFlags, note_at::kReason);
  if ((flags & std::to_underlying(NoteFlag::kWaitsForEither)) != 0) view.trigger = Trigger::kEither;
  const NoteEnd end = EndOf(note);
  view.reason = end.reason;
  view.last_attempt = end.last_attempt;
  return {};
}

void ShowState(const StoredState& stored, std::string_view note, JobView& view) {
  const NoteEnd end = note.empty() ? NoteEnd() : EndOf(note);
  view.state = stored.state;
  switch (stored.state) {
    case State::kScheduled:
      return;
    case State::kLeased:
      ++view.attempt;
      view.lease_deadline = stored.at;
      view.extensions = end.extensions;
      view.leased = end.since;
      view.holder = end.holder;
      if (end.extensions == 0) ShowClaim(stored.claim, note, view);
      view.last_attempt = view.leased;
      return;
    case State::kDead:
      view.died = stored.at;
      return;
    case State::kDone:
      ++view.attempt;
      [[fallthrough]];
    case State::kCancelled:
      view.finished = end.since;
      return;
  }
}

Time TimeOf(uint64_t sequence) { return FromMs(kYear2020Ms + static_cast<int64_t>(sequence / kSequencesPerMs)); }

std::string EncodeTopic(const Topic& topic, std::span<const TopicSetting> settings) {
  std::string out;
  PutBig(out, topic.version, 8);  // first, and slots second: a script compares them
  for (const TopicSetting& setting : settings.first(kFirstSettings)) PutBig(out, setting.get(topic), 8);
  const auto kept = settings.first(SettingsToKeep(topic, settings, kFirstSettings));
  if (const auto more = kept.subspan(kFirstSettings); !more.empty()) {
    PutBig(out, kSettingsSection, 1);
    PutBig(out, more.size(), 1);
    for (const TopicSetting& setting : more) PutBig(out, setting.get(topic), 8);
  }
  if (topic.delivery.Pushes()) PutDelivery(out, topic.delivery);
  return out;
}

std::string EncodeBirth(uint64_t birth) {
  std::string out;
  PutBig(out, birth, 8);
  return out;
}

uint64_t BirthIn(std::string_view stored) {
  return stored.size() < kTopicNumberBytes ? 0 : Big(stored, stored.size() - kTopicNumberBytes, kTopicNumberBytes);
}

uint64_t VersionIn(std::string_view stored) {
  return stored.size() < kTopicNumberBytes ? 0 : Big(stored, 0, kTopicNumberBytes);
}

uint32_t SlotsIn(std::string_view stored) {
  if (stored.size() < kTopicSlotsAt + kTopicNumberBytes) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(Big(stored, kTopicSlotsAt, kTopicNumberBytes), kSlotsMax));
}

std::string_view SettingsIn(std::string_view stored) { return stored.substr(0, stored.size() - kTopicNumberBytes); }

Result<StoredTopic> DecodeTopic(std::string_view name, std::string_view text, std::span<const TopicSetting> settings) {
  StoredTopic topic;
  topic.name = name;
  if (!ReadTopic(text, settings, topic)) {
    return Fail(Code::kUnsupportedFormat, "the settings of topic {} in Redis, {} bytes, are not those of this program",
                name, text.size());
  }
  if (Status known = Validate(topic.delivery); !known) {
    return Fail(Code::kUnsupportedFormat, "the settings of topic {} in Redis are not known here: {}", name,
                known.error().message);
  }
  return topic;
}

}  // namespace tocsin::redis
