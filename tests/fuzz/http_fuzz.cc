// Requests from outside, all the way through: header check, parser, router, access, decoding, the service on an
// in-memory store, encoding, packing. Whatever comes in, every answer is whole and of the promised shape, every request
// has its answer, the server goes on serving, stops when it is told to, and no job was lost or made up.
//
// Input: the first byte chooses. 'R' or 'r': the rest is what clients send, byte for byte, with escapes (a NUL and one
// byte more): 1 has the server run before more is sent, 2 goes on with another connection, 3 closes its sending side, 4
// closes it, 5 to 8 send the byte after them 300, 4,096, 16,384 or 70,000 times, 0 is a NUL. 'C' or 'c': calls, apart
// by 0x1e: flags, method, blank, path, then after a newline the body, where $T is the latest token that a reserve gave
// out. Flags: 1 2 3 send one of the tokens, > uses the other connection, ~ takes gzip, # sends the body in chunks,
// whose sizes, extensions and trailer the next byte chooses (@: none). A small letter asks for tokens.
#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include <boost/json/parse.hpp>

#include "base/result.h"
#include "http_answers.h"
#include "http_world.h"

namespace tocsin::http {
namespace {

constexpr char kCallEnd = '\x1e';
constexpr size_t kConnections = 3;
constexpr size_t kInputsOfAWorld = 200;
constexpr size_t kLarge = 70'000;  // more than any parser may keep of one field
constexpr std::array<size_t, 4> kRepeats{300, 4'096, 16'384, kLarge};
constexpr std::array<size_t, 4> kChunkSizes{7, 1, 16, 1'000};

/// A connection together with what its client expects.
class Talk {
 public:
  explicit Talk(World& world) : world_(world) {}

  void Send(std::string_view request, bool head, bool metrics = false) {
    if (client_ == nullptr || closing_) Open();
    heads_.push_back(head);
    client_->Write(request);
    world_.Run();
    // Another thread renders them: waiting makes the input do the same each time.
    while (metrics && heads_.size() == 1 && !client_->ended && client_->got.empty()) world_.Wait();
  }
  /// Answers that came since; after the last one, which says so, the server takes no more from this connection.
  std::deque<Reply> Take() {
    if (client_ == nullptr) return {};
    auto replies = TakeAnswers(client_->got, heads_);
    for (const Reply& reply : replies) {
      TOCSIN_CHECK(!closing_);
      closing_ = reply.close;
    }
    return replies;
  }
  /// Every request has its answer, but for those behind the one with which the connection ended.
  void CheckEnd() {
    Take();
    if (client_ == nullptr) return;
    TOCSIN_CHECK(client_->got.empty());
    TOCSIN_CHECK(heads_.empty() || closing_);
  }

 private:
  void Open() {
    client_ = &world_.Connect();
    heads_.clear();
    closing_ = false;
  }

  World& world_;
  fuzz::Client* client_ = nullptr;
  std::deque<bool> heads_;  // of the requests without an answer
  bool closing_ = false;
};

/// On a new connection: the server serves on, and every job is accounted for.
void CheckStillSound(World& world, bool guarded) {
  const std::string fields = fmt::format("HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer tocsin_{}_{}\r\n\r\n",
                                         fuzz::kTokenIds[0], guarded ? fuzz::kSecret : "");
  Talk talk(world);
  talk.Send("GET /healthz " + fields, false);
  talk.Send("GET /v1/stats " + fields, false);
  const auto replies = talk.Take();
  TOCSIN_CHECK(replies.size() == 2 && replies[0].status == 200 && replies[1].status == 200);
  TOCSIN_CHECK(replies[0].body == "{\"status\":\"ok\"}");
  const boost::json::value stats = boost::json::parse(replies[1].body);
  TOCSIN_CHECK(stats.at("conservation").at("difference").to_number<int64_t>() == 0);
}

/// What clients send, byte for byte. Where requests end is for the server to say, so only the answers are judged.
class Raw {
 public:
  Raw(World& world, bool judged) : world_(world), judged_(judged) { clients_.fill(nullptr); }

  void Send(std::string_view input) {
    std::string bytes;
    for (size_t i = 0; i < input.size(); ++i) {
      if (input[i] != '\0' || i + 1 == input.size()) {
        bytes += input[i];
      } else if (input[++i] == 0) {
        bytes += '\0';
      } else if (input[i] >= 5 && input[i] <= 8 && i + 1 < input.size()) {
        const size_t repeats = kRepeats[static_cast<size_t>(input[i] - 5)];
        bytes.append(repeats, input[++i]);
      } else {
        Flush(bytes);
        Obey(input[i]);
      }
    }
    Flush(bytes);
    world_.Run();
  }

  void CheckEnd() {
    for (fuzz::Client* client : clients_) {
      if (client != nullptr) Judge(*client);
    }
  }

 private:
  fuzz::Client& current() {
    fuzz::Client*& client = clients_[at_];
    if (client == nullptr) client = &world_.Connect();
    return *client;
  }
  void Flush(std::string& bytes) {
    if (!bytes.empty()) current().Write(bytes);
    bytes.clear();
  }
  void Obey(char what) {
    if (what == 1) world_.Run();
    if (what == 2) at_ = (at_ + 1) % clients_.size();
    if (what == 3) current().HalfClose();
    if (what == 4) {
      fuzz::Client& client = current();
      client.Read();
      Judge(client, false);
      client.Close();
      clients_[at_] = nullptr;
    }
  }
  void Judge(fuzz::Client& client, bool whole = true) const {
    if (!judged_) return;
    std::deque<bool> no_heads;
    bool closing = false;
    for (const Reply& reply : TakeAnswers(client.got, no_heads)) {
      TOCSIN_CHECK(!closing);
      closing = reply.close;
    }
    TOCSIN_CHECK(!whole || client.got.empty());
  }

  World& world_;
  const bool judged_;
  std::array<fuzz::Client*, kConnections> clients_;
  size_t at_ = 0;
};

/// One call of the input, made into a request that is sound but for what its target and its body say.
struct CallText {
  std::string request;
  bool head = false;
  bool other_connection = false;
};

/// The form of a chunked body, chosen by one byte.
struct Shape {
  uint8_t bits;

  size_t ChunkSize() const { return kChunkSizes[bits & 3]; }
  std::string Extension() const {
    const std::array<std::string, 4> extensions{"", ";a=\"b\"", ";" + std::string(300, 'e'), " ; e"};
    return extensions[bits >> 2 & 3];
  }
  std::string Trailer() const {
    const std::array<std::string, 4> trailers{"", "Digest: x\r\n", std::string(kLarge, 'n') + ": x\r\n",
                                              "x: " + std::string(kLarge, 'v') + "\r\n"};
    std::string trailer = trailers[bits >> 4 & 3];
    for (size_t i = 0; i < 3'000 && (bits & 0x80) != 0; ++i) trailer += "x: y\r\n";
    return trailer;
  }
};

std::string Chunked(std::string_view body, const Shape& shape) {
  const size_t size = shape.ChunkSize();
  std::string out;
  for (; !body.empty(); body.remove_prefix(std::min(size, body.size()))) {
    const std::string_view chunk = body.substr(0, size);
    out += fmt::format("{:x}{}\r\n{}\r\n", chunk.size(), shape.Extension(), chunk);
  }
  return out + "0\r\n" + shape.Trailer() + "\r\n";
}

/// Nothing where the request line has bytes that could end it.
std::optional<CallText> MakeCall(std::string_view text, const std::string& token) {
  CallText call;
  std::string fields;
  std::optional<Shape> shape;
  for (; !text.empty() && std::string_view("123>~#").contains(text.front()); text.remove_prefix(1)) {
    const char flag = text.front();
    if (flag >= '1' && flag <= '3' && !fields.contains("Authorization")) {
      fields += fmt::format("Authorization: Bearer tocsin_{}_{}\r\n", fuzz::kTokenIds[flag - '1'], fuzz::kSecret);
    }
    if (flag == '~' && !fields.contains("Accept")) fields += "Accept-Encoding: gzip\r\n";
    call.other_connection = call.other_connection || flag == '>';
    if (flag != '#') continue;
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
    shape = Shape(static_cast<uint8_t>(text.front()));
  }
  const size_t line_end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, line_end);
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos || blank == 0) return std::nullopt;
  for (size_t i = 0; i < line.size(); ++i) {
    if (i != blank && (line[i] <= ' ' || line[i] == '\x7f')) return std::nullopt;
  }
  std::string body(text.substr(std::min(line_end + 1, text.size())));
  for (size_t at = body.find("$T"); at != std::string::npos; at = body.find("$T", at + token.size())) {
    body.replace(at, 2, token);
  }
  call.head = line.starts_with("HEAD ");
  if (shape) {
    fields += "Transfer-Encoding: chunked\r\n";
    body = Chunked(body, *shape);
  } else {
    fields += fmt::format("Content-Length: {}\r\n", body.size());
  }
  call.request = fmt::format("{} HTTP/1.1\r\nHost: localhost\r\n{}\r\n{}", line, fields, body);
  return call;
}

void RunCalls(std::string_view input, std::array<Talk, 2>& talks) {
  std::string token = "$T";
  bool scraped = false;
  while (!input.empty()) {
    const std::string_view text = input.substr(0, input.find(kCallEnd));
    input.remove_prefix(std::min(text.size() + 1, input.size()));
    const auto call = MakeCall(text, token);
    // To render the metrics takes as long as a hundred other calls: once in an input is enough.
    const bool metrics = text.contains("/metrics");
    if (!call || (metrics && std::exchange(scraped, true))) continue;
    talks[call->other_connection ? 1 : 0].Send(call->request, call->head, metrics);
    for (Talk& talk : talks) {
      for (const Reply& reply : talk.Take()) {
        constexpr std::string_view kToken = "\"token\":\"";
        const size_t at = reply.body.find(kToken);
        if (at != std::string::npos) {
          const size_t begin = at + kToken.size();
          token = reply.body.substr(begin, reply.body.find('"', begin) - begin);
        }
      }
    }
  }
}

void One(std::string_view input) {
  static std::unique_ptr<World> world;
  static size_t inputs = 0;
  if (inputs++ % kInputsOfAWorld == 0) {
    world.reset();
    world = std::make_unique<World>();
  }
  const char mode = input.front();
  const bool guarded = mode == 'r' || mode == 'c';
  world->Guard(guarded);
  std::array<Talk, 2> talks = {Talk(*world), Talk(*world)};
  // Which of the requests in the bytes is a HEAD is for the server to say: answers without a body look cut off.
  Raw raw(*world, !input.contains("HEAD"));
  if (mode == 'C' || mode == 'c') {
    RunCalls(input.substr(1), talks);
  } else {
    raw.Send(mode == 'R' || mode == 'r' ? input.substr(1) : input);
  }
  CheckStillSound(*world, guarded);
  world->EndWaiting();
  for (Talk& talk : talks) talk.CheckEnd();
  raw.CheckEnd();
  world->Clear();
}

}  // namespace
}  // namespace tocsin::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0) tocsin::http::One({reinterpret_cast<const char*>(data), size});
  return 0;
}
