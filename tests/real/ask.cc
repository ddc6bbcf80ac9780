#include "real/ask.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>

#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tocsin::real {

namespace {

/// A connection whose calls block, each for the time-out at most.
class Connection {
 public:
  ~Connection() {
    if (fd_ >= 0) close(fd_);
  }
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Status Open(uint16_t port, Millis timeout) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    const timeval time{.tv_sec = seconds.count(), .tv_usec = std::chrono::microseconds(timeout - seconds).count()};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return {};
    return Fail(Code::kIo, "port {}: {}", port, strerror(errno));
  }

  Status Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return Fail(Code::kIo, "send: {}", strerror(errno));
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return {};
  }

  /// At least one byte more in `buffer`.
  Status Receive(std::string& buffer) {
    std::array<char, 16'384> piece;
    const ssize_t got = recv(fd_, piece.data(), piece.size(), 0);
    if (got == 0) return Fail(Code::kIo, "the server closed the connection");
    if (got < 0 && errno == EAGAIN) return Fail(Code::kTimedOut, "no answer in time");
    if (got < 0) return Fail(Code::kIo, "receive: {}", strerror(errno));
    buffer.append(piece.data(), static_cast<size_t>(got));
    return {};
  }

 private:
  int fd_ = -1;
};

/// Reads answers of RESP2, byte by byte as they come.
class Reader {
 public:
  explicit Reader(Connection& connection) : connection_(connection) {}

  Result<Answer> Next() {
    Result<std::string> line = Line();
    if (!line) return std::unexpected(std::move(line).error());
    if (line->empty()) return Fail(Code::kIo, "an empty line in an answer");
    const std::string rest = line->substr(1);
    switch (line->front()) {
      case '+':
        return Answer{.kind = Answer::Kind::kText, .text = rest};
      case '-':
        return Answer{.kind = Answer::Kind::kError, .text = rest};
      case ':':
        return Answer{.kind = Answer::Kind::kInteger, .integer = Number(rest)};
      case '$':
        return Text(Number(rest));
      case '*':
        return Array(Number(rest));
      default:
        return Fail(Code::kIo, "not an answer of Redis: {}", *line);
    }
  }

 private:
  static int64_t Number(std::string_view text) {
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  Result<std::string> Line() {
    size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos) TOCSIN_TRY(connection_.Receive(buffer_));
    std::string line = buffer_.substr(0, end);
    buffer_.erase(0, end + 2);
    return line;
  }

  Result<Answer> Text(int64_t size) {
    if (size < 0) return Answer{};
    const auto bytes = static_cast<size_t>(size);
    while (buffer_.size() < bytes + 2) TOCSIN_TRY(connection_.Receive(buffer_));
    Answer answer{.kind = Answer::Kind::kText, .text = buffer_.substr(0, bytes)};
    buffer_.erase(0, bytes + 2);
    return answer;
  }

  Result<Answer> Array(int64_t size) {
    if (size < 0) return Answer{};
    Answer answer{.kind = Answer::Kind::kArray};
    for (int64_t i = 0; i < size; ++i) {
      Result<Answer> element = Next();
      if (!element) return element;
      answer.elements.push_back(std::move(*element));
    }
    return answer;
  }

  Connection& connection_;
  std::string buffer_;
};

std::string Encoded(const std::vector<std::string>& command) {
  std::string out = fmt::format("*{}\r\n", command.size());
  for (const std::string& argument : command)
    fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", argument.size(), argument);
  return out;
}

}  // namespace

std::string Answer::Text() const {
  switch (kind) {
    case Kind::kNil:
      return "(nil)";
    case Kind::kInteger:
      return fmt::format("{}", integer);
    case Kind::kText:
    case Kind::kError:
      return text;
    case Kind::kArray:
      break;
  }
  std::string out = "[";
  for (const Answer& element : elements) out += (out.size() > 1 ? ", " : "") + element.Text();
  return out + "]";
}

Result<Answer> Ask(uint16_t port, const std::vector<std::string>& command, const Login& login) {
  Connection connection;
  TOCSIN_TRY(connection.Open(port, login.timeout));
  Reader reader(connection);
  if (!login.password.empty()) {
    std::vector<std::string> words = {"AUTH"};
    if (!login.username.empty()) words.push_back(login.username);
    words.push_back(login.password);
    TOCSIN_TRY(connection.Send(Encoded(words)));
    Result<Answer> answer = reader.Next();
    if (!answer || answer->error()) return answer;
  }
  TOCSIN_TRY(connection.Send(Encoded(command)));
  return reader.Next();
}

Result<Answer> MustAsk(uint16_t port, const std::vector<std::string>& command, const Login& login) {
  Result<Answer> answer = Ask(port, command, login);
  if (answer && answer->error()) return Fail(Code::kIo, "port {}, {}: {}", port, fmt::join(command, " "), answer->text);
  return answer;
}

Result<std::string> AskText(uint16_t port, std::string_view text, Millis timeout) {
  Connection connection;
  TOCSIN_TRY(connection.Open(port, timeout));
  TOCSIN_TRY(connection.Send(text));
  std::string answer;
  Status more;
  while (more) more = connection.Receive(answer);
  if (more.error().code == Code::kTimedOut) return std::unexpected(std::move(more).error());
  return answer;
}

std::string InfoField(std::string_view info, std::string_view name) {
  const std::string start = fmt::format("{}:", name);
  for (size_t at = 0; at < info.size();) {
    const size_t end = std::min(info.find("\r\n", at), info.size());
    const std::string_view line = info.substr(at, end - at);
    if (line.starts_with(start)) return std::string(line.substr(start.size()));
    at = end + 2;
  }
  return {};
}

}  // namespace tocsin::real
