#include "load/resp.h"

#include <charconv>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tocsin::bench::resp {
namespace {

constexpr int kAskMs = 10'000;

/// The number behind the first byte, and where its line ends; 0 if it is not whole.
size_t ReadNumber(std::string_view in, int64_t& value) {
  const char* const end = in.data() + in.size();
  const auto [after, error] = std::from_chars(in.data() + 1, end, value);
  if (after + 2 > end) return 0;
  if (error != std::errc{} || after[0] != '\r') Die("a malformed answer: {}", in.substr(0, 60));
  return static_cast<size_t>(after + 2 - in.data());
}

}  // namespace

void AppendBulk(std::string& out, std::string_view text) {
  fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", text.size(), text);
}

std::string Bulk(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }

std::string Head(size_t words) { return fmt::format("*{}\r\n", words); }

std::string Command(std::initializer_list<std::string_view> words) {
  std::string out = Head(words.size());
  for (const std::string_view word : words) AppendBulk(out, word);
  return out;
}

std::optional<Element> Next(std::string_view& in) {
  if (in.size() < 4) return std::nullopt;
  Element element{.kind = in.front()};
  size_t size = 0;
  if (element.kind == '+' || element.kind == '-') {
    const size_t end = in.find('\r');
    if (end == std::string_view::npos || end + 1 == in.size()) return std::nullopt;
    element.text = in.substr(1, end - 1);
    size = end + 2;
  } else if (element.kind == ':' || element.kind == '*' || element.kind == '$') {
    size = ReadNumber(in, element.number);
    if (size == 0) return std::nullopt;
    if (element.kind == '$' && element.number >= 0) {
      const auto bytes = static_cast<size_t>(element.number);
      if (in.size() < size + bytes + 2) return std::nullopt;
      element.text = in.substr(size, bytes);
      size += bytes + 2;
    }
  } else {
    Die("a malformed answer: {}", in.substr(0, 60));
  }
  in.remove_prefix(size);
  return element;
}

std::optional<size_t> NextArray(std::string_view& in, std::string_view command) {
  const std::optional<Element> element = Next(in);
  if (!element) return std::nullopt;
  if (element->kind == '-') Die("{} was refused: {}", command, element->text);
  if (element->kind != '*') Die("{} answered with {}", command, element->kind);
  return static_cast<size_t>(std::max<int64_t>(element->number, 0));
}

bool Skip(std::string_view& in, size_t elements) {
  while (elements > 0) {
    const std::optional<Element> element = Next(in);
    if (!element) return false;
    --elements;
    if (element->kind == '*' && element->number > 0) elements += static_cast<size_t>(element->number);
  }
  return true;
}

std::string Ask(const Endpoint& endpoint, std::string_view command) {
  const int fd = Connect(endpoint);
  if (send(fd, command.data(), command.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(command.size())) {
    Die("cannot send: {}", std::strerror(errno));
  }
  std::string got;
  std::optional<Element> element;
  while (!element) {
    pollfd readable{.fd = fd, .events = POLLIN};
    if (poll(&readable, 1, kAskMs) != 1) Die("no answer within {} s", kAskMs / 1000);
    char chunk[4096];
    const ssize_t bytes = recv(fd, chunk, sizeof(chunk), 0);
    if (bytes <= 0) Die("the server closed a connection");
    got.append(chunk, static_cast<size_t>(bytes));
    std::string_view rest = got;
    element = Next(rest);
  }
  close(fd);
  if (element->kind == '-') Die("refused: {}", element->text);
  return std::string(element->text);
}

}  // namespace tocsin::bench::resp
