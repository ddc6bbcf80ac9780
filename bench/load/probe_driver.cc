// The driver of the probe server (probe_server.h).
#include "load/drivers.h"
#include "load/probe_wire.h"
#include "load/stamp.h"

namespace tocsin::bench {
namespace {

using probe::Head;
using probe::TokenNumber;

class Probe final : public Protocol {
 public:
  explicit Probe(const Options& options) : payload_(options.payload) {}

  const Tuning& tuning() const override {
    static constexpr Tuning kTuning{
        .batch = 1000, .connections = 4, .window = 8, .consumers = 2, .reserve = 1000, .submit_per_s = 1'000'000};
    return kTuning;
  }

  Request Submit(std::string& out, const Jobs& jobs) override {
    probe::AppendRaw(out, Head{.kind = probe::kSubmit,
                               .count = jobs.count,
                               .due_ms = jobs.due_ms,
                               .payload = static_cast<uint32_t>(payload_),
                               .bytes = static_cast<uint32_t>(jobs.count * payload_)});
    templates_.Get(jobs.count, [this](uint32_t count) { return Make(count); }).Render(out, jobs);
    return {};
  }

  Request Reserve(std::string& out, size_t most) override {
    probe::AppendRaw(out, Head{.kind = probe::kReserve, .count = static_cast<uint32_t>(most)});
    return {};
  }

  Request Ack(std::string& out, const Token* tokens, size_t count) override {
    const size_t bytes = count * sizeof(TokenNumber);
    probe::AppendRaw(
        out, Head{.kind = probe::kAck, .count = static_cast<uint32_t>(count), .bytes = static_cast<uint32_t>(bytes)});
    for (size_t i = 0; i < count; ++i) out += tokens[i].text();
    return {};
  }

  bool Take(std::string_view& in, Request& request, Receiver& receiver) override {
    if (in.size() < sizeof(Head)) return false;
    const auto head = probe::ReadRaw<Head>(in.data());
    if (in.size() < sizeof(head) + head.bytes) return false;
    std::string_view body = in.substr(sizeof(head), head.bytes);
    in.remove_prefix(sizeof(head) + head.bytes);
    request.done = head.count;
    if (request.call != Call::kReserve) return true;
    for (uint32_t i = 0; i < head.count; ++i) {
      receiver.Delivered(body.substr(0, sizeof(TokenNumber)), body.substr(sizeof(TokenNumber), head.payload));
      body.remove_prefix(sizeof(TokenNumber) + head.payload);
    }
    return true;
  }

 private:
  Template Make(uint32_t count) const {
    Template made;
    for (uint32_t i = 0; i < count; ++i) made.Payload(i, payload_);
    return made;
  }

  const size_t payload_;
  Templates templates_;
};

}  // namespace

std::unique_ptr<Protocol> MakeProbe(const Options& options) { return std::make_unique<Probe>(options); }

}  // namespace tocsin::bench
