#include "storage/redis/scripts.h"

#include <map>

#include "base/result.h"
#include "spi/store.h"
#include "storage/redis/record.h"

namespace tocsin::redis {
namespace {

constexpr std::string_view kInclude = "--@include ";
/// Scripts whose effects are answered to clients (redis.wait_replicas). A claim that a failover loses is made again.
constexpr std::string_view kReplicated[] = {"submit", "submit_plain", "ack",        "settle",    "amend",    "count",
                                            "sweep",  "put_topic",    "drop_topic", "drop_slot", "open_slot"};

std::string Number(auto value) { return fmt::format("{}", value); }
/// Of an enum, as a script answers it.
std::string Ordinal(auto value) { return Number(std::to_underlying(value)); }
/// Of an enum, as a script is given it: arguments are texts.
std::string Argument(auto value) { return fmt::format("'{}'", std::to_underlying(value)); }
std::string Quoted(std::string_view text) { return fmt::format("'{}'", text); }
/// Lua counts bytes from 1.
std::string Place(size_t at) { return Number(at + 1); }
/// For struct.unpack: the numbers between these places, big end first.
std::string Format(std::initializer_list<size_t> places) {
  std::string format = "'>";
  for (const size_t* at = places.begin(); at + 1 != places.end(); ++at) format += fmt::format("I{}", at[1] - at[0]);
  return format + '\'';
}

/// A table of tables: kind -> state -> outcome.
std::string UnchangedOutcomes() {
  std::string kinds;
  for (auto kind = AmendKind::kCancel; kind <= AmendKind::kRevoke; kind = AmendKind(std::to_underlying(kind) + 1)) {
    std::string states;
    for (auto state = State::kScheduled; state <= State::kCancelled; state = State(std::to_underlying(state) + 1)) {
      const auto outcome = UnchangedOutcome(kind, state);
      if (outcome) states += fmt::format("[{}]={},", Ordinal(state), Ordinal(*outcome));
    }
    kinds += fmt::format("[{}]={{{}}},", Argument(kind), states);
  }
  return fmt::format("{{{}}}", kinds);
}

using Constants = std::map<std::string_view, std::string>;

/// What the scripts know of the C++ code, by the names that they use.
Constants MakeConstants() {
  return {
      {"SCRIPT_BYTES_MAX", Number(kScriptBytesMax)},
      {"JOBS_MAX", Number(kScriptJobsMax)},
      {"ERROR_GONE", Quoted(kErrorGone)},
      {"MESSAGE_TOPICS", Quoted(kMessageTopics)},
      {"LEASE_FIRST", Quoted(kLeaseFirst)},
      // Sequence numbers and times.
      {"YEAR_2020_MS", Number(kYear2020Ms)},
      {"SEQUENCES_PER_MS", Number(kSequencesPerMs)},
      {"ABSOLUTE_MIN", Number(kAbsoluteMin)},
      {"DELAYED", Number(kDelayed)},
      {"SLOTS_MAX", Number(size_t{1} << kSlotBits)},
      {"MEMBER_BYTES", Number(kMemberBytes)},
      {"MEMBER_FORMAT", Format({0, kMemberBytes})},
      // Records.
      {"DUE_BYTES", Number(record_at::kVersion)},
      {"DUE_FORMAT", Format({record_at::kDue, record_at::kVersion})},
      {"TRIGGER_AT", Place(record_at::kTrigger)},
      {"TRIGGER_FORMAT", Format({record_at::kTrigger, record_at::kMaxAttempts})},
      {"MAX_ATTEMPTS_AT", Place(record_at::kMaxAttempts)},
      {"MAX_ATTEMPTS_FORMAT", Format({record_at::kMaxAttempts, record_at::kEvents})},
      {"FINGERPRINT_AT", Place(record_at::kFingerprint)},
      {"KEY_SIZE_AT", Place(record_at::kKeySize)},
      {"ID_SIZE_AT", Place(record_at::kIdSize)},
      {"KEY_AND_ID_FORMAT", Format({record_at::kKeySize, record_at::kIdSize, record_at::kHeadersSize})},
      {"SIZES_FORMAT", Format({record_at::kKeySize, record_at::kIdSize, record_at::kHeadersSize, record_at::kKey})},
      {"RECORD_HEAD", Number(record_at::kKey)},
      {"EVENT_NAME_MAX", Number(kNameBytesMax)},
      // Notes.
      {"FENCE_BYTES", Number(note_at::kAttempts)},
      {"FENCE_FORMAT", Format({note_at::kFence, note_at::kAttempts})},
      {"NOTE_FORMAT", Format({note_at::kFence, note_at::kAttempts, note_at::kFlags, note_at::kReason})},
      {"NOTE_FLAGS_AT", Place(note_at::kFlags)},
      {"NOTE_FLAGS_FORMAT", Format({note_at::kFlags, note_at::kReason})},
      {"NOTE_HEAD", Number(note_at::kReason)},
      {"NOTE_DONE", Ordinal(NoteFlag::kDone)},
      {"NOTE_CANCELLED", Ordinal(NoteFlag::kCancelled)},
      {"NOTE_EITHER", Ordinal(NoteFlag::kWaitsForEither)},
      {"NOTE_FIRST_LEASE", Ordinal(NoteFlag::kFirstLease)},
      {"TAIL_BYTES", Number(tail_at::kEnd)},
      {"TAIL_FORMAT", Format({tail_at::kLastAttempt, tail_at::kSince, tail_at::kExtensions, tail_at::kHolderSize,
                              tail_at::kMark, tail_at::kEnd})},
      {"TAIL_MARK", Number(kTailMark)},
      {"EXTENSIONS_MAX", Number(kExtensionsMax)},
      // Topics.
      {"TOPIC_NUMBER_BYTES", Number(kTopicNumberBytes)},
      {"TOPIC_NUMBER_FORMAT", Format({0, kTopicNumberBytes})},
      {"TOPIC_SLOTS_AT", Place(kTopicSlotsAt)},
      {"BIRTH_BYTES", Number(kTopicNumberBytes)},
      {"DROP_PROOF_SECONDS", Number(kDropProofSeconds)},
      {"PUT_LOOK", Argument(PutMode::kLook)},
      {"PUT_RESTORE", Argument(PutMode::kRestore)},
      {"PUT_REFUSED", Ordinal(PutOutcome::kRefused)},
      {"PUT_STORED", Ordinal(PutOutcome::kStored)},
      {"PUT_BACK", Ordinal(PutOutcome::kBack)},
      {"PUT_UNKNOWN", Ordinal(PutOutcome::kUnknown)},
      {"PUT_DROPPED", Ordinal(PutOutcome::kDropped)},
      {"PUT_FULL", Ordinal(PutOutcome::kFull)},
      {"BACK_OFF_DOUBLINGS_MAX", Number(back_off::kDoublingsMax)},
      {"BACK_OFF_PRIME", Number(back_off::kPrime)},
      {"BACK_OFF_SEED_FACTOR", Number(back_off::kSeedFactor)},
      {"BACK_OFF_ATTEMPT_FACTOR", Number(back_off::kAttemptFactor)},
      {"BACK_OFF_JITTER_PART", Number(back_off::kJitterPart)},
      // Arguments for one item of a call.
      {"SETTLE_ITEM", Number(kSettleItem)},
      {"AMEND_ITEM", Number(kAmendItem)},
      {"COUNT_ITEM", Number(kCountItem)},
      {"FIND_ITEM", Number(kFindItem)},
      // Enums of the model.
      {"STATE_SCHEDULED", Ordinal(State::kScheduled)},
      {"STATE_LEASED", Ordinal(State::kLeased)},
      {"STATE_DEAD", Ordinal(State::kDead)},
      {"STATE_DONE", Ordinal(State::kDone)},
      {"STATE_CANCELLED", Ordinal(State::kCancelled)},
      {"TRIGGER_COUNT", Ordinal(Trigger::kCount)},
      {"CONFLICT_REPLACE", Argument(OnConflict::kReplace)},
      {"CONFLICT_KEEP", Argument(OnConflict::kKeep)},
      {"SUBMIT_ACCEPTED", Ordinal(SubmitOutcome::kAccepted)},
      {"SUBMIT_DUPLICATE", Ordinal(SubmitOutcome::kDuplicate)},
      {"SUBMIT_CONFLICT", Ordinal(SubmitOutcome::kConflict)},
      {"SUBMIT_IN_FLIGHT", Ordinal(SubmitOutcome::kInFlight)},
      {"SUBMIT_OVER_CAPACITY", Ordinal(SubmitOutcome::kOverCapacity)},
      {"KIND_ACK", Argument(SettleKind::kAck)},
      {"KIND_NACK", Argument(SettleKind::kNack)},
      {"KIND_EXTEND", Argument(SettleKind::kExtend)},
      {"KIND_BURY", Argument(SettleKind::kBury)},
      {"SETTLE_OK", Ordinal(SettleOutcome::kOk)},
      {"SETTLE_DEAD", Ordinal(SettleOutcome::kDead)},
      {"SETTLE_STALE", Ordinal(SettleOutcome::kStale)},
      {"KIND_CANCEL", Argument(AmendKind::kCancel)},
      {"KIND_PAYLOAD", Argument(AmendKind::kPayload)},
      {"KIND_FIRE", Argument(AmendKind::kFire)},
      {"KIND_REDRIVE", Argument(AmendKind::kRedrive)},
      {"KIND_REMOVE", Argument(AmendKind::kRemove)},
      {"KIND_ATTEMPTS", Argument(AmendKind::kAttempts)},
      {"KIND_REVOKE", Argument(AmendKind::kRevoke)},
      {"REVOKED_REASON", Quoted(kRevokedReason)},
      {"UNCHANGED_OUTCOMES", UnchangedOutcomes()},
      {"AMEND_DONE", Ordinal(AmendOutcome::kDone)},
      {"AMEND_UNKNOWN", Ordinal(AmendOutcome::kUnknown)},
      {"AMEND_CHANGED", Ordinal(AmendOutcome::kChanged)},
      {"AMEND_OVER_CAPACITY", Ordinal(AmendOutcome::kOverCapacity)},
      {"COUNT_COUNTED", Ordinal(CountOutcome::kCounted)},
      {"COUNT_FIRED", Ordinal(CountOutcome::kFired)},
      {"COUNT_REPEATED", Ordinal(CountOutcome::kRepeated)},
      {"COUNT_NOT_COUNTED", Ordinal(CountOutcome::kNotCounted)},
      {"COUNT_FINISHED", Ordinal(CountOutcome::kFinished)},
      {"COUNT_UNKNOWN", Ordinal(CountOutcome::kUnknown)},
      {"SWEEP_REDRIVE", Argument(SweepKind::kRedrive)},
      {"SWEEP_PURGE_DEAD", Argument(SweepKind::kPurgeDead)},
      {"SWEEP_PURGE", Argument(SweepKind::kPurge)},
      {"GRANT_SETTINGS_CHANGED", Ordinal(GrantOutcome::kSettingsChanged)},
      {"GRANT_UNREGISTERED", Ordinal(GrantOutcome::kUnregistered)},
      {"GRANT_FULL", Ordinal(GrantOutcome::kFull)},
      {"GRANT_GRANTED", Ordinal(GrantOutcome::kGranted)},
  };
}

/// A file without its comments and blank lines, and with those that it includes.
void AppendFile(std::string& out, std::string_view name) {
  const auto file = std::ranges::find(LuaFiles(), name, &LuaFile::name);
  TOCSIN_CHECK(file != LuaFiles().end());
  std::string_view rest = file->text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.starts_with(kInclude)) {
      AppendFile(out, line.substr(kInclude.size()));
    } else if (!line.empty() && !line.starts_with("--")) {
      out.append(line).push_back('\n');
    }
  }
}

bool InName(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

/// With the constants' values in the place of their names: as locals they would be set, and caught by closures, in
/// every call.
std::string Replaced(std::string_view source) {
  static const Constants constants = MakeConstants();
  std::string out;
  for (size_t at = 0; at < source.size();) {
    const size_t begin = at;
    while (at < source.size() && InName(source[at])) ++at;
    if (at == begin) {
      out.push_back(source[at++]);
      continue;
    }
    const std::string_view name = source.substr(begin, at - begin);
    const auto constant = constants.find(name);
    out += constant == constants.end() ? name : std::string_view(constant->second);
  }
  return out;
}

}  // namespace

Script LoadScript(std::string_view name) {
  std::string source;
  AppendFile(source, name);
  const bool replicated = std::ranges::find(kReplicated, name) != std::end(kReplicated);
  return {std::string(name), fmt::format("-- tocsin {}\n", name) + Replaced(source), replicated};
}

}  // namespace tocsin::redis
