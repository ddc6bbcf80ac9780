// Whatever a Redis answers, the client reads the same replies from it in one piece and in many, and bears them as a map
// of a Cluster and as a redirect; never a crash, a hang, or memory that the limits do not allow.
//
// Input: the size of the pieces, from 1 to 256; the bytes of the wire.
#include <string>

#include "base/result.h"
#include "clients/redis/slot_map.h"

namespace {

using tocsin::redis::Kind;
using tocsin::redis::Reply;
using tocsin::redis::ReplyView;

void Append(std::string& seen, ReplyView view) {
  seen += static_cast<char>('a' + static_cast<int>(view.kind()));
  seen += std::to_string(view.integer());
  seen += view.text();
  TOCSIN_CHECK(view.nil() == (view.kind() == Kind::kNil));
  for (size_t i = 0; i < view.size(); ++i) Append(seen, view[i]);
}

void Use(const Reply& reply) {
  const tocsin::redis::Endpoint from{"127.0.0.1", 7000};
  if (const auto redirect = tocsin::redis::ParseRedirect(reply.root().text(), from)) {
    TOCSIN_CHECK(redirect->hash_slot >= 0 && redirect->hash_slot < tocsin::redis::kHashSlots && redirect->to.port > 0);
  }
  tocsin::redis::Judge(reply);
  const auto map = tocsin::redis::SlotMap::Parse(reply, from);
  if (!map) return;
  size_t slots = 0;
  for (const auto& server : map->servers()) slots += server.hash_slots;
  size_t owned = 0;
  for (int slot = 0; slot < tocsin::redis::kHashSlots; ++slot) {
    const auto owner = map->OwnerOf(slot);
    if (!owner) continue;
    TOCSIN_CHECK(*owner < map->servers().size() && map->servers()[*owner].master);
    ++owned;
  }
  TOCSIN_CHECK(slots == owned);
}

/// All replies, and how it ended.
std::string ReadAll(std::string_view wire, size_t piece) {
  tocsin::redis::ReplyBuilder builder;
  std::string seen;
  for (size_t at = 0; at < wire.size(); at += piece) {
    builder.Feed(wire.substr(at, piece));
    for (;;) {
      const auto reply = builder.Next();
      if (!reply) return seen + "error";
      if (!*reply) break;
      Append(seen, (*reply)->root());
      Use(**reply);
      seen += '\n';
    }
  }
  return seen + "more";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string wire(reinterpret_cast<const char*>(data) + 1, size - 1);
  TOCSIN_CHECK(ReadAll(wire, wire.size()) == ReadAll(wire, size_t{data[0]} + 1));
  return 0;
}
