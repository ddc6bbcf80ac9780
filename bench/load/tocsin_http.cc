// Tocsin over HTTP/JSON: pipelined requests, many jobs in each.
#include <charconv>

#include "load/drivers.h"
#include "load/stamp.h"

namespace tocsin::bench {
namespace {

constexpr std::string_view kReservePath = "/v1/topics/bench/reserve";

std::string Head(std::string_view path, size_t body_bytes) {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", path, body_bytes);
}

struct Answer {
  int status = 0;
  std::string_view body;
};

/// Takes an answer from the front; nothing if it is not whole.
std::optional<Answer> NextAnswer(std::string_view& in) {
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const size_t head = in.find("\r\n\r\n");
  if (head == std::string_view::npos) return std::nullopt;
  const size_t at = in.substr(0, head).find(kLength);
  if (at == std::string_view::npos) Die("an answer has no Content-Length: {}", in.substr(0, head));
  size_t bytes = 0;
  std::from_chars(in.data() + at + kLength.size(), in.data() + head, bytes);
  if (in.size() < head + 4 + bytes) return std::nullopt;
  Answer answer{.body = in.substr(head + 4, bytes)};
  std::from_chars(in.data() + 9, in.data() + head, answer.status);
  in.remove_prefix(head + 4 + bytes);
  return answer;
}

uint32_t CountOf(std::string_view text, std::string_view what) {
  uint32_t count = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

class TocsinHttp final : public Protocol {
 public:
  explicit TocsinHttp(const Options& options) : payload_(options.payload) {}

  const Tuning& tuning() const override {
    static constexpr Tuning kTuning{.batch = 500,
                                    .connections = 16,  // requests of one connection are answered one by one
                                    .window = 1,
                                    .consumers = 2,
                                    .reserve = 500,
                                    .submit_per_s = 80'000,
                                    .address = "127.0.0.1:7420"};
    return kTuning;
  }

  Request Submit(std::string& out, const Jobs& jobs) override {
    templates_.Get(jobs.count, [this](uint32_t count) { return Make(count); }).Render(out, jobs);
    return {};
  }

  Request Reserve(std::string& out, size_t most) override {
    if (std::exchange(reserve_most_, most) != most) {
      const std::string body = fmt::format(R"({{"max":{},"wait_ms":1000}})", most);
      reserve_ = Head(kReservePath, body.size()) + body;
    }
    out += reserve_;
    return {};
  }

  Request Ack(std::string& out, const Token* tokens, size_t count) override {
    body_.assign(R"({"tokens":[)");
    for (size_t i = 0; i < count; ++i) {
      body_.append(i == 0 ? "\"" : ",\"").append(tokens[i].text()).append("\"");
    }
    body_ += "]}";
    out += Head("/v1/topics/bench/ack", body_.size());
    out += body_;
    return {};
  }

  bool Take(std::string_view& in, Request& request, Receiver& receiver) override {
    const std::optional<Answer> answer = NextAnswer(in);
    if (!answer) return false;
    if (answer->status / 100 != 2) Die("refused: {} {}", answer->status, answer->body.substr(0, 200));
    switch (request.call) {
      case Call::kSubmit:
        request.done = CountOf(answer->body, R"("outcome":"accepted")");
        break;
      case Call::kReserve:
        TakeDeliveries(answer->body, request, receiver);
        break;
      case Call::kAck:
        request.done = CountOf(answer->body, R"("outcome":"ok")");
        break;
    }
    return true;
  }

 private:
  Template Make(uint32_t count) const {
    constexpr std::string_view kBefore = R"({"due_ms":)";
    constexpr std::string_view kBetween = R"(,"payload":")";
    constexpr std::string_view kAfter = R"("})";
    const size_t job = kBefore.size() + kDueDigits + kBetween.size() + payload_ + kAfter.size();
    const bool many = count > 1;
    const std::string_view open = many ? R"({"jobs":[)" : "";
    const std::string_view close = many ? "]}" : "";
    Template made;
    made.Text(Head("/v1/topics/bench/jobs", open.size() + count * (job + 1) - 1 + close.size())).Text(open);
    for (uint32_t i = 0; i < count; ++i) {
      made.Text(i == 0 ? "" : ",").Text(kBefore).Due().Text(kBetween).Payload(i, payload_).Text(kAfter);
    }
    return made.Text(close);
  }

  static void TakeDeliveries(std::string_view body, Request& request, Receiver& receiver) {
    constexpr std::string_view kToken = R"("token":")";
    constexpr std::string_view kPayload = R"("payload":")";
    for (size_t at = body.find(kToken); at != std::string_view::npos; at = body.find(kToken)) {
      body.remove_prefix(at + kToken.size());
      const std::string_view token = body.substr(0, body.find('"'));
      const size_t payload = body.find(kPayload);
      if (payload == std::string_view::npos) Die("a delivery without a payload: {}", body.substr(0, 200));
      body.remove_prefix(payload + kPayload.size());
      receiver.Delivered(token, body.substr(0, body.find('"')));
      ++request.done;
    }
  }

  const size_t payload_;
  Templates templates_;
  std::string reserve_;
  size_t reserve_most_ = 0;
  std::string body_;
};

}  // namespace

std::unique_ptr<Protocol> MakeTocsinHttp(const Options& options) { return std::make_unique<TocsinHttp>(options); }

}  // namespace tocsin::bench
