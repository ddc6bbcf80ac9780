// Tocsin over RESP: JOB.MSUBMIT for batches and JOB.SUBMIT one by one, JOB.RESERVE that waits, JOB.ACK of many tokens.
// Where the topic has a sink, the same submits, and the server's own count of what was settled.
#include <charconv>

#include "load/drivers.h"
#include "load/resp.h"

namespace tocsin::bench {
namespace {

constexpr std::string_view kTopic = "bench";

class TocsinResp : public Protocol {
 public:
  explicit TocsinResp(const Options& options) : single_(options.single()), payload_(options.payload) {}

  const Tuning& tuning() const override {
    static constexpr Tuning kTuning{.batch = 1000,
                                    .connections = 4,
                                    .window = 8,
                                    .consumers = 2,
                                    .reserve = 1000,
                                    .submit_per_s = 300'000,
                                    .address = "127.0.0.1:7421"};
    return kTuning;
  }

  Request Submit(std::string& out, const Jobs& jobs) override {
    templates_.Get(jobs.count, [this](uint32_t count) { return Make(count); }).Render(out, jobs);
    return {};
  }

  Request Reserve(std::string& out, size_t most) override {
    if (std::exchange(reserve_most_, most) != most) {
      reserve_ = resp::Command({"JOB.RESERVE", kTopic, "MAX", std::to_string(most), "WAIT", "1000"});
    }
    out += reserve_;
    return {};
  }

  Request Ack(std::string& out, const Token* tokens, size_t count) override {
    out += resp::Head(count + 2);
    out += kAck;
    for (size_t i = 0; i < count; ++i) resp::AppendBulk(out, tokens[i].text());
    return {};
  }

  bool Take(std::string_view& in, Request& request, Receiver& receiver) override {
    if (request.call == Call::kSubmit && single_) return TakeSingle(in, request);
    if (!request.open) {
      const std::optional<size_t> count = resp::NextArray(in, "a command");
      if (!count) return false;
      request.items = static_cast<uint32_t>(*count);
      request.open = true;
    }
    for (; request.items > 0; --request.items) {
      std::string_view rest = in;
      if (!TakeItem(rest, request, receiver)) return false;
      in = rest;
    }
    return true;
  }

 private:
  static inline const std::string kAck = resp::Bulk("JOB.ACK") + resp::Bulk(kTopic);

  Template Make(uint32_t count) const {
    Template made;
    if (single_) {
      made.Text(resp::Head(5)).Text(resp::Bulk("JOB.SUBMIT")).Text(resp::Bulk(kTopic));
      AddPayload(made, 0);
      return AddDue(made);
    }
    made.Text(resp::Head(4 + count)).Text(resp::Bulk("JOB.MSUBMIT")).Text(resp::Bulk(kTopic));
    AddDue(made);
    for (uint32_t i = 0; i < count; ++i) AddPayload(made, i);
    return made;
  }
  static Template& AddDue(Template& made) { return made.Text(resp::Bulk("AT")).Text("$13\r\n").Due().Text("\r\n"); }
  void AddPayload(Template& made, uint32_t index) const {
    made.Text(fmt::format("${}\r\n", payload_)).Payload(index, payload_).Text("\r\n");
  }

  /// [id, outcome, due_ms]
  static bool TakeSingle(std::string_view& in, Request& request) {
    std::string_view rest = in;
    const std::optional<size_t> count = resp::NextArray(rest, "JOB.SUBMIT");
    if (!count || !resp::Skip(rest, *count)) return false;
    in = rest;
    request.done = 1;
    return true;
  }

  static bool TakeItem(std::string_view& in, Request& request, Receiver& receiver) {
    if (request.call == Call::kReserve) return TakeDelivery(in, request, receiver);
    const std::optional<resp::Element> element = resp::Next(in);
    if (!element) return false;
    if (request.call == Call::kSubmit && element->kind != '$') Die("JOB.MSUBMIT refused a job: {}", element->text);
    if (request.call == Call::kSubmit || element->text == "ok") ++request.done;
    return true;
  }

  /// [id, token, payload, attempt, max_attempts, due_ms, lease_deadline_ms, key, headers]
  static bool TakeDelivery(std::string_view& in, Request& request, Receiver& receiver) {
    const std::optional<size_t> fields = resp::NextArray(in, "JOB.RESERVE");
    if (!fields || !resp::Skip(in, 1)) return false;
    const std::optional<resp::Element> token = resp::Next(in);
    if (!token) return false;
    const std::optional<resp::Element> payload = resp::Next(in);
    if (!payload || !resp::Skip(in, *fields - 3)) return false;
    receiver.Delivered(token->text, payload->text);
    ++request.done;
    return true;
  }

  const bool single_;
  const size_t payload_;
  Templates templates_;
  std::string reserve_;
  size_t reserve_most_ = 0;
};

class TocsinPush final : public TocsinResp {
 public:
  explicit TocsinPush(const Options& options) : TocsinResp(options) {}

  const Tuning& tuning() const override {
    static const Tuning kPushing = [this] {
      Tuning tuning = TocsinResp::tuning();
      tuning.pushes = true;
      return tuning;
    }();
    return kPushing;
  }

  size_t Confirmed(const Endpoint& endpoint) override {
    constexpr std::string_view kName = "\ntotals_acked:";
    const std::string info = resp::Ask(endpoint, resp::Command({"INFO", "totals"}));
    const size_t at = info.find(kName);
    size_t count = 0;
    const char* digits = info.data() + at + kName.size();
    if (at == std::string::npos || std::from_chars(digits, info.data() + info.size(), count).ec != std::errc{}) {
      Die("INFO totals does not say what is acked");
    }
    return count;
  }
};

}  // namespace

std::unique_ptr<Protocol> MakeTocsinPush(const Options& options) { return std::make_unique<TocsinPush>(options); }

std::unique_ptr<Protocol> MakeTocsinResp(const Options& options) { return std::make_unique<TocsinResp>(options); }

}  // namespace tocsin::bench
