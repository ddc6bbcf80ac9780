#include "model/job.h"

#include <algorithm>
#include <array>

#include "base/codec.h"
#include "base/hash.h"
#include "base/result.h"

namespace tocsin {
namespace {

constexpr std::string_view kBase64Url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> kBase64Digits = [] {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (size_t i = 0; i < kBase64Url.size(); ++i) digits[static_cast<uint8_t>(kBase64Url[i])] = static_cast<uint8_t>(i);
  return digits;
}();

// A token is slot (2 bytes), handle (8), fence (8), little-endian, as base64url without padding. 18 bytes make exactly
// 24 digits, so a token has one text and every text of 24 digits is one token.
constexpr size_t kTokenBytes = 18;
constexpr size_t kTokenDigits = 24;

size_t CountedBytes(std::string_view id, const auto& job) {
  size_t bytes = id.size() + job.key.size() + job.payload.size();
  for (const HeaderView& header : job.headers) bytes += header.name.size() + header.value.size();
  return bytes;
}

}  // namespace

std::string TokenText(const Token& token) {
  TOCSIN_CHECK(token.slot < kSlotsMax);
  std::array<uint8_t, kTokenBytes> raw;
  const auto slot = static_cast<uint16_t>(token.slot);
  std::memcpy(raw.data(), &slot, 2);
  std::memcpy(raw.data() + 2, &token.handle, 8);
  std::memcpy(raw.data() + 10, &token.fence, 8);
  std::string text(kTokenDigits, '\0');
  for (size_t in = 0, out = 0; in < kTokenBytes; in += 3) {
    const uint32_t group = uint32_t{raw[in]} << 16 | uint32_t{raw[in + 1]} << 8 | raw[in + 2];
    for (int shift = 18; shift >= 0; shift -= 6) text[out++] = kBase64Url[group >> shift & 63];
  }
  return text;
}

std::optional<Token> ParseToken(std::string_view text) {
  if (text.size() != kTokenDigits) return std::nullopt;
  std::array<uint8_t, kTokenBytes> raw;
  for (size_t in = 0, out = 0; in < kTokenDigits; in += 4) {
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t digit = kBase64Digits[static_cast<uint8_t>(text[in + i])];
      if (digit == kNoDigit) return std::nullopt;
      group = group << 6 | digit;
    }
    for (int shift = 16; shift >= 0; shift -= 8) raw[out++] = static_cast<uint8_t>(group >> shift);
  }
  uint16_t slot = 0;
  Token token;
  std::memcpy(&slot, raw.data(), 2);
  std::memcpy(&token.handle, raw.data() + 2, 8);
  std::memcpy(&token.fence, raw.data() + 10, 8);
  token.slot = slot;
  if (slot >= kSlotsMax) return std::nullopt;
  return token;
}

size_t CountedBytes(const NewJob& job) { return CountedBytes(job.id, job); }

size_t CountedBytes(const JobView& job) { return CountedBytes(job.own_id, job); }

JobView ViewOf(const NewJob& job) {
  return {.own_id = job.id, .key = job.key, .headers = job.headers, .payload = job.payload};
}

void Append(JobBatch& batch, JobView job) {
  char* at = batch.bytes.emplace_back(new char[CountedBytes(job) + job.reason.size() + job.holder.size()]).get();
  const auto keep = [&at](std::string_view& text) {
    char* begin = at;
    at = std::ranges::copy(text, at).out;
    text = {begin, at};
  };
  keep(job.own_id);
  keep(job.key);
  keep(job.reason);
  keep(job.holder);
  for (HeaderView& header : job.headers) {
    keep(header.name);
    keep(header.value);
  }
  keep(job.payload);
  batch.jobs.push_back(std::move(job));
}

std::optional<AmendOutcome> UnchangedOutcome(AmendKind kind, State state) {
  const auto changes = [kind](auto... kinds) { return ((kind == kinds) || ...); };
  switch (state) {
    case State::kScheduled:
      if (changes(AmendKind::kRedrive, AmendKind::kRevoke)) break;
      return std::nullopt;
    case State::kLeased:
      if (kind == AmendKind::kRevoke) return std::nullopt;
      return AmendOutcome::kInFlight;
    case State::kDead:
      if (!changes(AmendKind::kPayload, AmendKind::kRedrive, AmendKind::kRemove, AmendKind::kAttempts)) break;
      return std::nullopt;
    case State::kCancelled:
      if (kind == AmendKind::kCancel) return AmendOutcome::kDone;
      [[fallthrough]];
    case State::kDone:
      if (kind == AmendKind::kRemove) return std::nullopt;
      break;
  }
  return AmendOutcome::kFinished;
}

bool IsAs(const Seen& seen, State state, uint32_t attempt, Time due, Timeline timeline) {
  if (seen.state && state != *seen.state) return false;
  if (seen.attempt && attempt != *seen.attempt) return false;
  if (!seen.due || due == *seen.due) return true;
  if (timeline == Timeline::kUtc || due == kNever || *seen.due == kNever) return false;
  return due - *seen.due <= Millis(1) && *seen.due - due <= Millis(1);
}

uint32_t SlotFor(const JobRef& job, uint32_t slots) {
  return job.uid != 0 ? SlotOf(job.uid) & (slots - 1) : SlotFor(job.key, job.id, slots);
}

uint32_t SlotFor(std::string_view key, std::string_view id, uint32_t slots) {
  // slots is a power of two. A server id comes first: its job may have been placed by a key that the caller does not
  // know.
  if (const auto uid = ParseUid(id)) return SlotOf(*uid) & (slots - 1);
  return Crc32(key.empty() ? id : key) & (slots - 1);
}

uint64_t Fingerprint(const NewJob& job) {
  // Each part is mixed in with its length (Hash64 begins with it), so bytes cannot move from one part to the next.
  uint64_t hash = Hash64(job.key, static_cast<uint64_t>(job.timeline) << 8 | static_cast<uint64_t>(job.trigger));
  const int64_t when = job.timeline == Timeline::kSteady ? job.delay.count() : ToMs(job.due);
  hash = Mix64(hash ^ static_cast<uint64_t>(when), uint64_t{job.count} << 32 | job.max_attempts);
  hash = Mix64(hash, job.headers.size());
  for (const HeaderView& header : job.headers) hash = Hash64(header.value, Hash64(header.name, hash));
  // Without the times of its past: those may be shown a millisecond off the next time.
  const Restored* const past = job.restored.get();
  if (past != nullptr && (past->dead || past->attempts > 0 || !past->reason.empty())) {
    hash = Hash64(past->reason, Mix64(hash, uint64_t{past->attempts} << 1 | (past->dead ? 1 : 0)));
  }
  return Hash64(job.payload, hash);
}

}  // namespace tocsin
