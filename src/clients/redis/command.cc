#include "clients/redis/command.h"

#include <array>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/result.h"

namespace tocsin::redis {
namespace {

// CRC16 as Redis Cluster has it: XMODEM, polynomial 0x1021, nothing reflected.
constexpr std::array<uint16_t, 256> kCrc16 = [] {
  std::array<uint16_t, 256> table{};
  for (unsigned i = 0; i < table.size(); ++i) {
    unsigned crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? crc << 1 ^ 0x1021 : crc << 1;
    table[i] = static_cast<uint16_t>(crc);
  }
  return table;
}();

std::string Sha1(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  TOCSIN_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

void AppendBulk(std::string& out, std::string_view bytes) {
  const fmt::format_int size(bytes.size());
  out.append("$").append(size.data(), size.size()).append("\r\n").append(bytes).append("\r\n");
}

}  // namespace

int HashSlot(std::string_view key) {
  const size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) key = key.substr(open + 1, close - open - 1);
  }
  unsigned crc = 0;
  for (const char byte : key) {
    crc = (crc << 8 ^ kCrc16[(crc >> 8 ^ static_cast<unsigned char>(byte)) & 0xFF]) & 0xFFFF;
  }
  return static_cast<int>(crc % kHashSlots);
}

Script::Script(std::string name, std::string source, bool replicated)
    : name_(std::move(name)), source_(std::move(source)), sha_(Sha1(source_)), replicated_(replicated) {}

Command::Command(std::string_view name) : name_(name) {}

Command::Command(std::string_view name, std::string_view key) : name_(name), hash_slot_(HashSlot(key)) { Add(key); }

Command::Command(const Script& script, size_t keys, std::string_view key)
    : keys_(keys), script_(&script), hash_slot_(HashSlot(key)) {
  TOCSIN_CHECK(keys > 0);
  Add(key);
}

Command& Command::Add(std::string_view argument) {
  AppendBulk(arguments_, argument);
  ++count_;
  return *this;
}

Command& Command::Add(int64_t argument) { return Add(fmt::format_int(argument).c_str()); }

void Command::Encode(std::string& out, bool whole_script) const {
  const size_t head = script_ == nullptr ? 1 : 3;
  const fmt::format_int count(count_ + head);
  out.append("*").append(count.data(), count.size()).append("\r\n");
  if (script_ == nullptr) {
    AppendBulk(out, name_);
  } else {
    AppendBulk(out, whole_script ? "EVAL" : "EVALSHA");
    AppendBulk(out, whole_script ? script_->source() : script_->sha());
    AppendBulk(out, fmt::format_int(keys_).c_str());
  }
  out.append(arguments_);
}

}  // namespace tocsin::redis
