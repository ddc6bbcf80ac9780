#include "storage/journal/entries.h"

#include "storage/journal/body.h"

namespace tocsin::journal {
namespace {

constexpr uint8_t kSteady = 1;
constexpr uint8_t kNeverDue = 2;
constexpr uint8_t kMore = 4;     // of a put: more fields follow, which a new job with a time trigger lacks
constexpr uint8_t kDeadNow = 4;  // of a move
constexpr uint8_t kFired = 8;
constexpr uint8_t kEither = 16;
constexpr uint8_t kAttempted = 1;  // of a put's times
constexpr uint8_t kEnded = 2;
constexpr size_t kFirstSettings = 10;  // in every topic; a kSettings entry has more

void PutStart(std::string& out, EntryType type, uint32_t topic, Uid uid) {
  out.push_back(static_cast<char>(type));
  PutVarint(out, topic);
  PutFixed<uint64_t>(out, uid);
}

uint8_t DueFlags(Timeline timeline, Time due) {
  return static_cast<uint8_t>((timeline == Timeline::kSteady ? kSteady : 0) | (due == kNever ? kNeverDue : 0));
}

void PutDue(std::string& out, Timeline timeline, Time due, Moment moment) {
  if (due != kNever) PutVarint(out, ZigZag((due - moment.On(timeline)).count()));
}

Time ReadDue(Reader& reader, uint8_t flags, Moment moment) {
  if (flags & kNeverDue) return kNever;
  const Time base = moment.On(flags & kSteady ? Timeline::kSteady : Timeline::kUtc);
  // Unsigned, so that a damaged value wraps instead of overflowing. Submit has checked the range of a good one.
  return FromMs(
      static_cast<int64_t>(static_cast<uint64_t>(ToMs(base)) + static_cast<uint64_t>(UnZigZag(reader.Varint()))));
}

void PutMore(std::string& out, const PutEntry& entry) {
  static const Details none;
  const Details& details = entry.details ? *entry.details : none;
  out.push_back(static_cast<char>(entry.state));
  PutVarint(out, entry.attempts);
  out.push_back(static_cast<char>(entry.trigger));
  out.push_back(entry.fired ? '\1' : '\0');
  PutVarint(out, details.count_left);
  PutBytes(out, details.reason);
  out.push_back(static_cast<char>(details.finished ? 1 + static_cast<int>(details.finished_timeline) : 0));
  if (details.finished) PutFixed<int64_t>(out, ToMs(details.finished_due));
  PutVarint(out, details.events.size());
  details.events.ForEach([&out](uint64_t event) { PutFixed<uint64_t>(out, event); });
}

void PutTime(std::string& out, Time steady, Moment moment) { PutDue(out, Timeline::kSteady, steady, moment); }
Time ReadTime(Reader& reader, Moment moment) { return ReadDue(reader, kSteady, moment); }

void PutTimes(std::string& out, const Details& details, Moment moment) {
  const bool attempted = details.last_attempt != Time{};
  const bool ended = details.ended != Time{};
  out.push_back(static_cast<char>((attempted ? kAttempted : 0) | (ended ? kEnded : 0)));
  if (attempted) PutTime(out, details.last_attempt, moment);
  if (ended) PutTime(out, details.ended, moment);
}

/// Times that could have been submitted, which can be added to without overflow.
bool InRange(Time due) {
  constexpr Time kLatest = FromMs(int64_t{1} << 52);
  return due == kNever || (due >= Time{} && due <= kLatest);
}

bool ReadMore(Reader& reader, PutEntry& entry, Details& details) {
  const auto state = reader.Fixed<uint8_t>();
  entry.attempts = static_cast<uint32_t>(reader.Varint());
  const auto trigger = reader.Fixed<uint8_t>();
  entry.fired = reader.Fixed<uint8_t>() != 0;
  details.count_left = static_cast<uint32_t>(reader.Varint());
  details.reason = reader.Bytes();
  const auto finished = reader.Fixed<uint8_t>();
  details.finished = finished != 0;
  details.finished_timeline = finished == 1 ? Timeline::kUtc : Timeline::kSteady;
  if (details.finished) details.finished_due = FromMs(reader.Fixed<int64_t>());
  if (details.finished && !InRange(details.finished_due)) return false;
  const uint64_t events = reader.Varint();
  if (!reader.ok() || events > reader.left() / sizeof(uint64_t)) return false;
  const bool stored = state <= static_cast<uint8_t>(State::kCancelled) && state != static_cast<uint8_t>(State::kLeased);
  if (!stored || trigger > static_cast<uint8_t>(Trigger::kEither)) return false;
  for (uint64_t i = 0; i < events; ++i) details.events.Insert(reader.Fixed<uint64_t>());
  entry.state = static_cast<State>(state);
  entry.trigger = static_cast<Trigger>(trigger);
  entry.details = &details;
  return true;
}

bool ReadTimes(Reader& reader, Details& details, Moment moment) {
  const auto flags = reader.Fixed<uint8_t>();
  if (flags & kAttempted) details.last_attempt = ReadTime(reader, moment);
  if (flags & kEnded) details.ended = ReadTime(reader, moment);
  return flags <= (kAttempted | kEnded) && InRange(details.last_attempt) && InRange(details.ended);
}

bool ReadPut(Reader& reader, EntryType type, Moment moment, EntryVisitor& visitor) {
  PutEntry entry;
  Details details;
  entry.topic = static_cast<uint32_t>(reader.Varint());
  entry.uid = reader.Fixed<uint64_t>();
  const auto flags = reader.Fixed<uint8_t>();
  entry.timeline = flags & kSteady ? Timeline::kSteady : Timeline::kUtc;
  entry.due = ReadDue(reader, flags, moment);
  entry.max_attempts = static_cast<uint32_t>(reader.Varint());
  if (flags & kMore && !ReadMore(reader, entry, details)) return false;
  if (type == EntryType::kPutTimes && !ReadTimes(reader, details, moment)) return false;
  entry.body = reader.Bytes();
  JobView body;
  if (!reader.ok() || !InRange(entry.due) || !DecodeBody(entry.body, body)) return false;
  visitor.OnPut(entry);
  return true;
}

bool ReadMove(Reader& reader, EntryType type, Moment moment, EntryVisitor& visitor) {
  MoveEntry entry;
  entry.topic = static_cast<uint32_t>(reader.Varint());
  entry.uid = reader.Fixed<uint64_t>();
  const auto flags = reader.Fixed<uint8_t>();
  entry.timeline = flags & kSteady ? Timeline::kSteady : Timeline::kUtc;
  entry.state = flags & kDeadNow ? State::kDead : State::kScheduled;
  entry.fired = (flags & kFired) != 0;
  entry.either = (flags & kEither) != 0;
  entry.due = ReadDue(reader, flags, moment);
  entry.attempts = static_cast<uint32_t>(reader.Varint());
  entry.reason = reader.Bytes();
  if (type == EntryType::kFailed) entry.last_attempt = ReadTime(reader, moment);
  if (!reader.ok() || !InRange(entry.due) || !InRange(entry.last_attempt)) return false;
  visitor.OnMove(entry);
  return true;
}

bool ReadEnd(Reader& reader, EntryType type, Moment moment, EntryVisitor& visitor) {
  EndEntry entry;
  entry.how = type == EntryType::kAcked ? EntryType::kDone : type;
  entry.topic = static_cast<uint32_t>(reader.Varint());
  entry.uid = reader.Fixed<uint64_t>();
  const uint64_t retention_ms = reader.Varint();
  if (type == EntryType::kAcked) entry.last_attempt = ReadTime(reader, moment);
  if (!reader.ok() || retention_ms > static_cast<uint64_t>(kDelayMax.count()) || !InRange(entry.last_attempt)) {
    return false;
  }
  entry.retention = Millis(static_cast<int64_t>(retention_ms));
  visitor.OnEnd(entry);
  return true;
}

bool ReadCount(Reader& reader, EntryVisitor& visitor) {
  CountEntry entry;
  entry.topic = static_cast<uint32_t>(reader.Varint());
  entry.uid = reader.Fixed<uint64_t>();
  entry.event = reader.Fixed<uint64_t>();
  entry.left = static_cast<uint32_t>(reader.Varint());
  if (reader.ok()) visitor.OnCount(entry);
  return reader.ok();
}

/// The sink, how many settings, and each of them.
void PutDelivery(std::string& out, const Delivery& delivery) {
  PutBytes(out, delivery.sink);
  PutVarint(out, delivery.settings.size());
  for (const auto& [name, value] : delivery.settings) {
    PutBytes(out, name);
    PutBytes(out, value);
  }
}

Delivery ReadDelivery(Reader& reader) {
  Delivery delivery;
  delivery.sink = reader.Bytes();
  const uint64_t settings = reader.Varint();
  for (uint64_t i = 0; i < settings && reader.ok(); ++i) {
    std::string name(reader.Bytes());
    delivery.settings.insert_or_assign(std::move(name), std::string(reader.Bytes()));
  }
  return delivery;
}

/// False if a value is out of range.
bool ReadSettings(Reader& reader, std::span<const TopicSetting> settings, Topic& topic) {
  for (const TopicSetting& setting : settings) {
    const uint64_t value = reader.Varint();
    if (!CheckRange(setting, value)) return false;
    setting.set(topic, value);
  }
  return true;
}

bool ReadTopic(Reader& reader, EntryType type, std::span<const TopicSetting> known, EntryVisitor& visitor) {
  Topic topic;
  const auto number = static_cast<uint32_t>(reader.Varint());
  topic.name = reader.Bytes();
  if (!ReadSettings(reader, known.first(kFirstSettings), topic)) return false;
  topic.version = reader.Varint();
  const uint64_t more = type == EntryType::kSettings ? reader.Varint() : 0;
  if (more > known.size() - kFirstSettings) return false;  // a later program wrote it
  if (!ReadSettings(reader, known.subspan(kFirstSettings, more), topic)) return false;
  if (type != EntryType::kTopic) topic.delivery = ReadDelivery(reader);
  const bool must_push = type == EntryType::kPushTopic;
  if (!reader.ok() || (must_push && !topic.delivery.Pushes()) || !Validate(topic)) return false;
  visitor.OnTopic(number, topic);
  return true;
}

}  // namespace

void EncodePut(std::string& out, const PutEntry& entry, Moment moment) {
  const bool more = entry.details != nullptr || entry.state != State::kScheduled || entry.attempts != 0 ||
                    entry.trigger != Trigger::kTime || entry.fired;
  const bool times = entry.details != nullptr && entry.details->HasTimes();
  PutStart(out, times ? EntryType::kPutTimes : EntryType::kPut, entry.topic, entry.uid);
  out.push_back(static_cast<char>(DueFlags(entry.timeline, entry.due) | (more ? kMore : 0)));
  PutDue(out, entry.timeline, entry.due, moment);
  PutVarint(out, entry.max_attempts);
  if (more) PutMore(out, entry);
  if (times) PutTimes(out, *entry.details, moment);
  PutBytes(out, entry.body);
}

void EncodeMove(std::string& out, const MoveEntry& entry, Moment moment) {
  const bool failed = entry.last_attempt != Time{};
  PutStart(out, failed ? EntryType::kFailed : EntryType::kMove, entry.topic, entry.uid);
  out.push_back(static_cast<char>(DueFlags(entry.timeline, entry.due) | (entry.state == State::kDead ? kDeadNow : 0) |
                                  (entry.fired ? kFired : 0) | (entry.either ? kEither : 0)));
  PutDue(out, entry.timeline, entry.due, moment);
  PutVarint(out, entry.attempts);
  PutBytes(out, entry.reason);
  if (failed) PutTime(out, entry.last_attempt, moment);
}

void EncodeCount(std::string& out, const CountEntry& entry) {
  PutStart(out, EntryType::kCount, entry.topic, entry.uid);
  PutFixed<uint64_t>(out, entry.event);
  PutVarint(out, entry.left);
}

void EncodeEnd(std::string& out, const EndEntry& entry, Moment moment) {
  const bool acked = entry.last_attempt != Time{};
  PutStart(out, acked ? EntryType::kAcked : entry.how, entry.topic, entry.uid);
  PutVarint(out, static_cast<uint64_t>(entry.retention.count()));
  if (acked) PutTime(out, entry.last_attempt, moment);
}

void EncodeTopic(std::string& out, uint32_t number, const Topic& topic, std::span<const TopicSetting> settings) {
  const auto more = settings.first(SettingsToKeep(topic, settings, kFirstSettings)).subspan(kFirstSettings);
  const EntryType type = !more.empty()             ? EntryType::kSettings
                         : topic.delivery.Pushes() ? EntryType::kPushTopic
                                                   : EntryType::kTopic;
  out.push_back(static_cast<char>(type));
  PutVarint(out, number);
  PutBytes(out, topic.name);
  for (const TopicSetting& setting : settings.first(kFirstSettings)) PutVarint(out, setting.get(topic));
  PutVarint(out, topic.version);
  if (type == EntryType::kSettings) {
    PutVarint(out, more.size());
    for (const TopicSetting& setting : more) PutVarint(out, setting.get(topic));
  }
  if (type != EntryType::kTopic) PutDelivery(out, topic.delivery);
}

void EncodeDropTopic(std::string& out, uint32_t number) {
  out.push_back(static_cast<char>(EntryType::kDropTopic));
  PutVarint(out, number);
}

void EncodeUids(std::string& out, Uid used) {
  out.push_back(static_cast<char>(EntryType::kUids));
  PutFixed<uint64_t>(out, used);
}

bool DecodeEntries(std::string_view entries, Moment moment, EntryVisitor& visitor,
                   std::span<const TopicSetting> settings) {
  Reader reader(entries);
  while (!reader.done()) {
    const auto type = reader.Fixed<EntryType>();
    bool good = true;
    switch (type) {
      case EntryType::kPut:
      case EntryType::kPutTimes:
        good = ReadPut(reader, type, moment, visitor);
        break;
      case EntryType::kMove:
      case EntryType::kFailed:
        good = ReadMove(reader, type, moment, visitor);
        break;
      case EntryType::kCount:
        good = ReadCount(reader, visitor);
        break;
      case EntryType::kDone:
      case EntryType::kCancelled:
      case EntryType::kPurged:
      case EntryType::kAcked:
        good = ReadEnd(reader, type, moment, visitor);
        break;
      case EntryType::kTopic:
      case EntryType::kPushTopic:
      case EntryType::kSettings:
        good = ReadTopic(reader, type, settings, visitor);
        break;
      case EntryType::kDropTopic:
        if (const auto number = static_cast<uint32_t>(reader.Varint()); reader.ok()) visitor.OnDropTopic(number);
        break;
      case EntryType::kUids:
        if (const Uid used = reader.Fixed<uint64_t>(); reader.ok()) visitor.OnUids(used);
        break;
      default:
        good = false;
    }
    if (!good || !reader.ok()) return false;
  }
  return true;
}

}  // namespace tocsin::journal
