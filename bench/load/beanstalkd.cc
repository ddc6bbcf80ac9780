// beanstalkd: pipelined put, reserve and delete; one job in each command. Its delays are whole seconds: they are
// rounded up, so that nothing is early, and lateness still counts from the moment that was asked for.
#include <charconv>

#include "load/drivers.h"
#include "load/stamp.h"
#include "shared/times.h"

namespace tocsin::bench {
namespace {

constexpr size_t kDelayDigits = 6;
constexpr int64_t kSecondNs = 1'000'000'000;

class Beanstalkd final : public Protocol {
 public:
  explicit Beanstalkd(const Options& options) : payload_(options.payload) {}

  const Tuning& tuning() const override {
    static constexpr Tuning kTuning{
        .batch = 100,
        .connections = 4,
        .window = 2,
        .consumers = 4,
        .reserve = 100,
        .submit_per_s = 30'000,
        .rounding_ms = 1000,
        .settles_in_place = true,
        .address = "127.0.0.1:11300",
        .note = "delays are whole seconds, rounded up; lateness counts from what was asked"};
    return kTuning;
  }

  Request Submit(std::string& out, const Jobs& jobs) override {
    const int64_t left = jobs.due_ms * 1'000'000 - WallNanos();
    const int64_t delay = left <= 0 ? 0 : (left + kSecondNs - 1) / kSecondNs;
    templates_.Get(jobs.count, [this](uint32_t count) { return Make(count); }).Render(out, jobs, delay);
    return {.parts = jobs.count};
  }

  /// One that waits, then some that take what else is there. Each is a command of its own, so they are about twice as
  /// many as were had the last time: asking for more than there is costs the server as much as a delivery.
  Request Reserve(std::string& out, size_t most) override {
    const size_t more = std::min(most, 2 * last_ + 1) - 1;
    out += "reserve-with-timeout 1\r\n";
    for (size_t i = 0; i < more; ++i) out += "reserve-with-timeout 0\r\n";
    return {.parts = static_cast<uint32_t>(1 + more)};
  }

  Request Ack(std::string& out, const Token* tokens, size_t count) override {
    for (size_t i = 0; i < count; ++i) out.append("delete ").append(tokens[i].text()).append("\r\n");
    return {.parts = static_cast<uint32_t>(count)};
  }

  bool Take(std::string_view& in, Request& request, Receiver& receiver) override {
    for (; request.parts > 0; --request.parts) {
      std::string_view rest = in;
      if (!TakeLine(rest, request, receiver)) return false;
      in = rest;
    }
    if (request.call == Call::kReserve) last_ = request.done;
    return true;
  }

 private:
  Template Make(uint32_t count) const {
    Template made;
    for (uint32_t i = 0; i < count; ++i) {
      made.Text("put 0 ").Extra(kDelayDigits).Text(fmt::format(" 30 {}\r\n", payload_));
      made.Payload(i, payload_).Text("\r\n");
    }
    return made;
  }

  static bool TakeLine(std::string_view& in, Request& request, Receiver& receiver) {
    const size_t end = in.find("\r\n");
    if (end == std::string_view::npos) return false;
    const std::string_view line = in.substr(0, end);
    in.remove_prefix(end + 2);
    if (line == "TIMED_OUT" && request.call == Call::kReserve) return true;
    if (line.starts_with("RESERVED ")) return TakeJob(line, in, request, receiver);
    const bool stored = request.call == Call::kSubmit && line.starts_with("INSERTED ");
    const bool settled = request.call == Call::kAck && line == "DELETED";
    if (!stored && !settled) Die("refused: {}", line.substr(0, 200));
    ++request.done;
    return true;
  }

  /// RESERVED id bytes
  static bool TakeJob(std::string_view line, std::string_view& in, Request& request, Receiver& receiver) {
    line.remove_prefix(line.find(' ') + 1);
    const size_t space = line.find(' ');
    size_t bytes = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), bytes);
    if (in.size() < bytes + 2) return false;
    receiver.Delivered(line.substr(0, space), in.substr(0, bytes));
    in.remove_prefix(bytes + 2);
    ++request.done;
    return true;
  }

  const size_t payload_;
  Templates templates_;
  size_t last_ = 50;
};

}  // namespace

std::unique_ptr<Protocol> MakeBeanstalkd(const Options& options) { return std::make_unique<Beanstalkd>(options); }

}  // namespace tocsin::bench
