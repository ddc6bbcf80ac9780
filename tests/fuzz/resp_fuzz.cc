// Commands from outside, all the way through: frames, options, access, the service over two shards, replies. Whatever
// comes in, replies are well formed, each command that was begun has one, the server goes on serving, stops when it is
// told to, and no job was lost or made up.
//
// Input: the first byte chooses. 'F': the next byte is the size of pieces, the one behind it the limits, and a parser
// makes the same of the rest as a whole and in pieces. 'R' or 'r': the rest is what clients send, byte for byte, with
// escapes (a NUL and one byte more): 1 has the server run before more is sent, 2 goes on with another connection, 3
// closes its sending side, 4 closes it, 5 stops or goes on reading, 6 looks for what is late, 0 is a NUL. 'C' or 'c':
// commands, apart by 0x1e, of arguments, apart by 0x1f, where $T is the latest token that a reserve gave out; > before
// a command uses the other connection, & has it pipelined with the next one, ~ sends it as a line. A small letter asks
// for tokens, of which $1 $2 $3 are some.
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/text.h"
#include "frontend/resp/frame.h"
#include "frontend/resp/test_replies.h"
#include "resp_world.h"

namespace tocsin::resp {
namespace {

constexpr char kCommandEnd = '\x1e';
constexpr char kArgumentEnd = '\x1f';
constexpr size_t kConnections = 3;
constexpr size_t kInputsOfAWorld = 200;
constexpr size_t kStrangerArguments = 64;

using Step = FrameParser::Step;

/// What a parser makes of some bytes.
struct Parsed {
  std::vector<std::vector<std::string>> commands;
  Step end = Step::kMore;
  std::string problem;
  size_t bytes = 0;  // of the commands

  friend bool operator==(const Parsed&, const Parsed&) = default;
};

/// In pieces of so many bytes, which move in memory as they do in a buffer that grows.
Parsed Parse(std::string_view input, size_t piece, const FrameLimits& limits) {
  FrameParser parser;
  Parsed parsed;
  size_t end = 0;
  while (parsed.end == Step::kMore && end < input.size()) {
    end = std::min(end + piece, input.size());
    const std::string moved(input.substr(parsed.bytes, end - parsed.bytes));
    std::string_view here = moved;
    while (!here.empty()) {
      parsed.end = parser.Parse(here, limits);
      if (parsed.end != Step::kFrame) break;
      TOCSIN_CHECK(parser.size() <= here.size() && parser.args().size() <= limits.arguments);
      parsed.commands.emplace_back(parser.args().begin(), parser.args().end());
      parsed.bytes += parser.size();
      here.remove_prefix(parser.size());
      parsed.end = Step::kMore;
    }
    if (parsed.end == Step::kMore && !here.empty()) TOCSIN_CHECK(parser.needed() > here.size());
  }
  if (parsed.end == Step::kBad) parsed.problem = parser.problem().message;
  return parsed;
}

void CompareFrames(std::string_view input) {
  if (input.size() < 2) return;
  const size_t piece = 1 + static_cast<unsigned char>(input[0]);
  constexpr FrameLimits kLimits[] = {{}, {.bytes = 64, .arguments = 4}, {.bytes = 1000, .arguments = 100}};
  const FrameLimits& limits = kLimits[static_cast<unsigned char>(input[1]) % std::size(kLimits)];
  const std::string_view rest = input.substr(2);
  const Parsed whole = Parse(rest, std::max<size_t>(rest.size(), 1), limits);
  TOCSIN_CHECK(Parse(rest, piece, limits) == whole);
  TOCSIN_CHECK(Parse(rest, 1, limits) == whole);
}

/// How many replies a connection has to get for what it sent; `exact` is false where there may be fewer.
struct Expected {
  size_t replies = 0;
  bool exact = true;
};

Expected ExpectedFor(const fuzz::Client& client, bool guarded) {
  const Parsed parsed = Parse(client.sent, std::max<size_t>(client.sent.size(), 1), {kFrameMax, fuzz::kBatch + 128});
  const bool dropped = parsed.end == Step::kHttp || parsed.end == Step::kTls;
  Expected expected{.exact = !guarded && !client.half_closed && !dropped};
  for (const auto& command : parsed.commands) {
    if (command.empty()) continue;
    ++expected.replies;
    // Behind a reserve that waits to the end it is read as a stranger's, which may not be as large.
    if (command.size() > kStrangerArguments) expected.exact = false;
    if (SameWord(command.front(), "QUIT") && command.size() == 1) return expected;
  }
  if (parsed.end == Step::kBad) ++expected.replies;
  if (guarded) ++expected.replies;  // what is too large for a stranger
  return expected;
}

/// One end of a connection together with what came.
struct Talk {
  fuzz::Client* client = nullptr;
  size_t replies = 0;

  /// Replies that are whole.
  std::vector<Reply> Take() {
    std::vector<Reply> taken;
    size_t at = 0;
    while (client != nullptr && at < client->got.size()) {
      auto [form, size, reply] = ReadReply(std::string_view(client->got).substr(at));
      TOCSIN_CHECK(form != Form::kBad);
      if (form == Form::kMore) break;
      taken.push_back(std::move(reply));
      at += size;
    }
    if (client != nullptr) client->got.erase(0, at);
    replies += taken.size();
    return taken;
  }
  void Check(bool guarded, bool at_end) {
    if (client == nullptr) return;
    Take();
    const Expected expected = ExpectedFor(*client, guarded);
    TOCSIN_CHECK(replies <= expected.replies);
    if (at_end && expected.exact) TOCSIN_CHECK(replies == expected.replies && client->got.empty());
  }
};

class Run {
 public:
  Run(World& world, bool guarded) : world_(world), guarded_(guarded) {}

  /// What clients send, byte for byte.
  void Bytes(std::string_view input) {
    std::string bytes;
    for (size_t i = 0; i < input.size(); ++i) {
      if (input[i] != '\0' || i + 1 == input.size()) {
        bytes += input[i];
      } else if (input[++i] == 0) {
        bytes += '\0';
      } else {
        Flush(bytes);
        Obey(input[i]);
      }
    }
    Flush(bytes);
    world_.Run();
  }

  void Commands(std::string_view input) {
    while (!input.empty()) {
      const std::string_view text = input.substr(0, input.find(kCommandEnd));
      input.remove_prefix(std::min(text.size() + 1, input.size()));
      SendCommand(text);
    }
    world_.Run();
  }

  void CheckEnd() {
    for (Talk& talk : talks_) {
      if (talk.client != nullptr) talk.client->deaf = false;
    }
    world_.Run();
    for (Talk& talk : talks_) talk.Check(guarded_, true);
  }

 private:
  Talk& current() {
    Talk& talk = talks_[at_];
    if (talk.client == nullptr) talk.client = &world_.Connect();
    return talk;
  }
  void Flush(std::string& bytes) {
    if (!bytes.empty()) current().client->Write(bytes);
    bytes.clear();
  }
  void Obey(char what) {
    if (what == 1) world_.Run();
    if (what == 2) at_ = (at_ + 1) % talks_.size();
    if (what == 3) current().client->HalfClose();
    if (what == 4) {
      Talk& talk = current();
      talk.client->Read();
      talk.Check(guarded_, false);
      talk.client->Close();
      talk = {};
    }
    if (what == 5) current().client->deaf = !current().client->deaf;
    if (what == 6) world_.Expire();
  }

  std::string Argument(std::string_view text) const {
    std::string argument(text);
    const auto fill = [&](std::string_view name, std::string_view value) {
      for (size_t at = argument.find(name); at != std::string::npos; at = argument.find(name, at + value.size())) {
        argument.replace(at, name.size(), value);
      }
    };
    fill("$T", token_);
    constexpr std::string_view kNames[] = {"$1", "$2", "$3"};
    for (size_t i = 0; i < 3; ++i) fill(kNames[i], fmt::format("tocsin_{}_{}", fuzz::kTokenIds[i], fuzz::kSecret));
    return argument;
  }

  void SendCommand(std::string_view text) {
    bool pipelined = false;
    bool line = false;
    at_ = 0;
    for (; !text.empty() && std::string_view(">&~").contains(text.front()); text.remove_prefix(1)) {
      if (text.front() == '>') at_ = 1;
      pipelined = pipelined || text.front() == '&';
      line = line || text.front() == '~';
    }
    std::string command;
    size_t arguments = 0;
    while (!text.empty()) {
      const std::string_view one = text.substr(0, text.find(kArgumentEnd));
      text.remove_prefix(std::min(one.size() + 1, text.size()));
      const std::string argument = Argument(one);
      ++arguments;
      command += line ? argument + " " : fmt::format("${}\r\n{}\r\n", argument.size(), argument);
    }
    current().client->Write(line ? command + "\n" : fmt::format("*{}\r\n", arguments) + command);
    if (pipelined) return;
    world_.Run();
    for (Talk& talk : talks_) {
      for (const Reply& reply : talk.Take()) NoteToken(reply);
    }
  }

  /// Where the reply is that of a reserve.
  void NoteToken(const Reply& reply) {
    for (const Reply& job : reply.items) {
      if (job.items.size() == 9) token_ = job[1].text;
    }
  }

  World& world_;
  const bool guarded_;
  std::array<Talk, kConnections> talks_;
  size_t at_ = 0;
  std::string token_ = "$T";
};

/// On a new connection: the server serves on, and every job is accounted for.
void CheckStillSound(World& world, bool guarded) {
  Talk talk{.client = &world.Connect()};
  if (guarded) talk.client->Write(fmt::format("AUTH tocsin_{}_{}\r\n", fuzz::kTokenIds[0], fuzz::kSecret));
  talk.client->Write("PING\r\nINFO conservation\r\n");
  world.Run();
  const auto replies = talk.Take();
  TOCSIN_CHECK(replies.size() == (guarded ? 3 : 2));
  TOCSIN_CHECK(replies[replies.size() - 2].text == "PONG");
  TOCSIN_CHECK(replies.back().text.contains("conservation_difference:0\r\n"));
}

void Serve(std::string_view input) {
  static std::unique_ptr<World> world;
  static size_t inputs = 0;
  if (inputs++ % kInputsOfAWorld == 0) {
    world.reset();
    world = std::make_unique<World>();
  }
  const char mode = input.front();
  const bool guarded = mode == 'r' || mode == 'c';
  world->Guard(guarded);
  Run run(*world, guarded);
  if (mode == 'C' || mode == 'c') {
    run.Commands(input.substr(1));
  } else {
    run.Bytes(mode == 'R' || mode == 'r' ? input.substr(1) : input);
  }
  CheckStillSound(*world, guarded);
  world->EndWaiting();
  run.CheckEnd();
  world->Clear();
}

}  // namespace
}  // namespace tocsin::resp

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  tocsin::SetLogLevel(tocsin::LogLevel::kError);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('F')) {
    tocsin::resp::CompareFrames(input.substr(1));
  } else if (!input.empty()) {
    tocsin::resp::Serve(input);
  }
  return 0;
}
