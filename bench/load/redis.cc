// Redis with the recipe that is usually written by hand: a sorted set of due times and hashes with the payloads. One
// script stores jobs (HSET, ZADD); one takes up to 100 due ids, moves them to a set of prepared ones and returns their
// payloads; an acknowledgement is ZREM and DEL or HDEL of many ids, pipelined. Two forms: a hash for each job, and one
// hash for each of 8 slots.
//
// Where there was a choice, Redis got the faster way: a whole batch in one call of the script, all of it in one slot,
// with one due time; plain commands instead of a script for acknowledgements. A pipelined call for each job
// (--script-jobs 1) was measured at 0.5 to 0.7 of that, with appendfsync always and everysec. One by one, a reserve of
// the second form still asks all slots, for one job each.
#include "load/drivers.h"
#include "load/resp.h"
#include "shared/times.h"

namespace tocsin::bench {
namespace {

constexpr uint32_t kSlots = 8;
constexpr int64_t kLeaseMs = 30'000;
constexpr size_t kMostInCall = 2000;  // Lua unpacks some thousand values at most

// KEYS: due times, hashes. ARGV: due, then id and payload of each job.
constexpr std::string_view kSubmitHash = R"(
local due, added = ARGV[1], {}
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[2] .. ARGV[i], 'payload', ARGV[i + 1], 'due', due)
  added[#added + 1] = due
  added[#added + 1] = ARGV[i]
end
redis.call('ZADD', KEYS[1], unpack(added))
return (#ARGV - 1) / 2)";
constexpr std::string_view kSubmitSlot = R"(
local due, added = ARGV[1], {}
for i = 2, #ARGV, 2 do
  added[#added + 1] = due
  added[#added + 1] = ARGV[i]
end
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
redis.call('ZADD', KEYS[1], unpack(added))
return (#ARGV - 1) / 2)";

// KEYS: due times, hashes, prepared ones. ARGV: now, end of the lease, most.
constexpr std::string_view kTake = R"(
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
if #ids == 0 then return ids end
local moved, out = {}, {}
for i, id in ipairs(ids) do
  moved[2 * i - 1] = ARGV[2]
  moved[2 * i] = id
end
redis.call('ZREM', KEYS[1], unpack(ids))
redis.call('ZADD', KEYS[3], unpack(moved)))";
constexpr std::string_view kPayloadsHash = R"(
for i, id in ipairs(ids) do
  out[2 * i - 1] = id
  out[2 * i] = redis.call('HGET', KEYS[2] .. id, 'payload')
end
return out)";
constexpr std::string_view kPayloadsSlot = R"(
local payloads = redis.call('HMGET', KEYS[2], unpack(ids))
for i, id in ipairs(ids) do
  out[2 * i - 1] = id
  out[2 * i] = payloads[i]
end
return out)";

struct Keys {
  std::string due;
  std::string job;  // what the key of a job's hash begins with, or the key of the slot's hash
  std::string prepared;
};

class Redis final : public Protocol {
 public:
  Redis(const Options& options, uint32_t slots)
      : payload_(options.payload), slots_(slots), in_call_(options.script_jobs) {
    for (uint32_t slot = 0; slot < slots; ++slot) {
      const std::string name = slots == 1 ? "bench" : fmt::format("bench:{}", slot);
      keys_.push_back(
          {.due = name + ":due", .job = name + (hash() ? ":job:" : ":jobs"), .prepared = name + ":prepared"});
    }
    settled_.resize(slots);
  }

  const Tuning& tuning() const override {
    static constexpr Tuning kTuning{.batch = 1000,
                                    .connections = 4,
                                    .window = 4,
                                    .consumers = 4,
                                    .reserve = 100,
                                    .submit_per_s = 50'000,
                                    .polls = true,
                                    .address = "127.0.0.1:6379"};
    return kTuning;
  }

  void Prepare(const Endpoint& endpoint) override {
    submit_ = resp::Ask(endpoint, resp::Command({"SCRIPT", "LOAD", hash() ? kSubmitHash : kSubmitSlot}));
    const std::string take = fmt::format("{}{}", kTake, hash() ? kPayloadsHash : kPayloadsSlot);
    take_ = resp::Ask(endpoint, resp::Command({"SCRIPT", "LOAD", take}));
    templates_.resize(slots_);
  }

  Request Submit(std::string& out, const Jobs& jobs) override {
    const uint32_t in_call = in_call_ == 0 ? jobs.count : static_cast<uint32_t>(in_call_);
    if (in_call > kMostInCall) Die("--batch: at most {} jobs fit into one call of a script", kMostInCall);
    uint32_t calls = 0;
    for (uint32_t done = 0; done < jobs.count; done += in_call, ++calls) {
      const Jobs part{jobs.first + done, std::min(in_call, jobs.count - done), jobs.due_ms};
      const uint32_t slot = next_slot_++ % slots_;  // an id begins with it
      templates_[slot].Get(part.count, [&](uint32_t count) { return Make(slot, count); }).Render(out, part, slot);
    }
    return {.parts = calls};
  }

  Request Reserve(std::string& out, size_t most) override {
    const int64_t now_ms = WallNanos() / 1'000'000;
    for (const Keys& keys : keys_) {
      out += resp::Command({"EVALSHA", take_, "3", keys.due, keys.job, keys.prepared, std::to_string(now_ms),
                            std::to_string(now_ms + kLeaseMs), std::to_string(most)});
    }
    return {.parts = slots_};
  }

  /// ZREM prepared id ..., then DEL job:id ... or HDEL jobs id ...
  Request Ack(std::string& out, const Token* tokens, size_t count) override {
    for (size_t i = 0; i < count; ++i) {
      const std::string_view id = tokens[i].text();
      settled_[hash() ? 0 : static_cast<size_t>(id.front() - '0')].push_back(id);
    }
    uint32_t parts = 0;
    for (uint32_t slot = 0; slot < slots_; ++slot) {
      std::vector<std::string_view>& ids = settled_[slot];
      if (ids.empty()) continue;
      AckSlot(out, keys_[slot], ids);
      ids.clear();
      parts += 2;
    }
    return {.parts = parts};
  }

  bool Take(std::string_view& in, Request& request, Receiver& receiver) override {
    for (; request.parts > 0; --request.parts) {
      if (request.call == Call::kReserve ? !TakeDeliveries(in, request, receiver) : !TakeCount(in, request))
        return false;
    }
    if (request.call == Call::kAck) request.done /= 2;
    return true;
  }

 private:
  bool hash() const { return slots_ == 1; }

  Template Make(uint32_t slot, uint32_t count) const {
    const Keys& keys = keys_[slot];
    Template made;
    made.Text(resp::Head(6 + 2 * count)).Text(resp::Bulk("EVALSHA")).Text(resp::Bulk(submit_)).Text(resp::Bulk("2"));
    made.Text(resp::Bulk(keys.due)).Text(resp::Bulk(keys.job)).Text("$13\r\n").Due().Text("\r\n");
    for (uint32_t i = 0; i < count; ++i) {
      made.Text("$9\r\n").Extra(1).Number(i).Text(fmt::format("\r\n${}\r\n", payload_));
      made.Payload(i, payload_).Text("\r\n");
    }
    return made;
  }

  void AckSlot(std::string& out, const Keys& keys, const std::vector<std::string_view>& ids) const {
    out += resp::Head(2 + ids.size());
    out += resp::Bulk("ZREM") + resp::Bulk(keys.prepared);
    for (const std::string_view id : ids) resp::AppendBulk(out, id);
    if (!hash()) {
      out += resp::Head(2 + ids.size());
      out += resp::Bulk("HDEL") + resp::Bulk(keys.job);
      for (const std::string_view id : ids) resp::AppendBulk(out, id);
      return;
    }
    out += resp::Head(1 + ids.size());
    out += resp::Bulk("DEL");
    for (const std::string_view id : ids) {
      fmt::format_to(std::back_inserter(out), "${}\r\n{}{}\r\n", keys.job.size() + id.size(), keys.job, id);
    }
  }

  static bool TakeCount(std::string_view& in, Request& request) {
    const std::optional<resp::Element> element = resp::Next(in);
    if (!element) return false;
    if (element->kind != ':') Die("refused: {}", element->text.substr(0, 200));
    request.done += static_cast<uint32_t>(element->number);
    return true;
  }

  /// [id, payload, id, payload, ...]
  static bool TakeDeliveries(std::string_view& in, Request& request, Receiver& receiver) {
    if (!request.open) {
      const std::optional<size_t> count = resp::NextArray(in, "the script");
      if (!count) return false;
      request.items = static_cast<uint32_t>(*count);
      request.open = true;
    }
    for (; request.items > 0; request.items -= 2) {
      std::string_view rest = in;
      const std::optional<resp::Element> id = resp::Next(rest);
      if (!id) return false;
      const std::optional<resp::Element> payload = resp::Next(rest);
      if (!payload) return false;
      in = rest;
      receiver.Delivered(id->text, payload->text);
      ++request.done;
    }
    request.open = false;
    return true;
  }

  const size_t payload_;
  const uint32_t slots_;
  const size_t in_call_;
  std::vector<Keys> keys_;
  std::string submit_;  // of the loaded scripts
  std::string take_;
  std::vector<Templates> templates_;
  std::vector<std::vector<std::string_view>> settled_;
  uint32_t next_slot_ = 0;
};

}  // namespace

std::unique_ptr<Protocol> MakeRedisHash(const Options& options) { return std::make_unique<Redis>(options, 1); }
std::unique_ptr<Protocol> MakeRedisSlot(const Options& options) { return std::make_unique<Redis>(options, kSlots); }

}  // namespace tocsin::bench
