#include "world.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/result.h"

namespace tocsin::fuzz {

std::shared_ptr<const auth::TokenSet> MakeTokens() {
  std::vector<auth::TokenRecord> records;
  for (const std::string_view id : kTokenIds) {
    auth::TokenRecord& record = records.emplace_back();
    record.id = id;
    record.digest = auth::DigestOf(kSecret);
    record.grant.name = id;
    record.grant.prefix = id == kTokenIds[0] ? "" : "t";
    record.grant.scopes.Add(id == kTokenIds[0]   ? auth::Scope::kAdmin
                            : id == kTokenIds[1] ? auth::Scope::kSubmit
                                                 : auth::Scope::kConsume);
  }
  return std::make_shared<const auth::TokenSet>(std::move(records));
}

Limits SmallLimits() {
  Limits limits;
  limits.payload_bytes = 1 << 10;
  limits.batch = kBatch;
  limits.topics = 10;
  return limits;
}

Client::Client(net::Door& door) {
  int ends[2];
  TOCSIN_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  fd_ = ends[0];
  door.loop().Post([&door, fd = ends[1]] {
    net::Socket socket(door.loop().io());
    socket.assign(boost::asio::ip::tcp::v4(), fd);
    door.Accept(std::move(socket), nullptr);
  });
}

void Client::Close() {
  if (!std::exchange(closed, true)) close(fd_);
}

void Client::HalfClose() {
  if (!closed) shutdown(fd_, SHUT_WR);
  half_closed = true;
}

void Client::Write(std::string_view bytes) {
  if (closed || half_closed) return;
  // The server may have closed, and may not read after a refusal: the rest is not sent.
  const ssize_t went = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (went > 0) sent += bytes.substr(0, static_cast<size_t>(went));
}

void Client::Read() {
  char chunk[64 << 10];
  while (!closed && !ended && !deaf) {
    const ssize_t bytes = recv(fd_, chunk, sizeof(chunk), 0);
    if (bytes > 0) {
      got.append(chunk, static_cast<size_t>(bytes));
    } else if (bytes == 0 || errno != EAGAIN) {
      ended = true;
    } else {
      return;
    }
  }
}

}  // namespace tocsin::fuzz
