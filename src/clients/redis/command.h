// Command: one request to Redis, encoded as it is built, so that sending is appending. The key decides which server of
// a Cluster gets it; all keys of one command have the same hash tag. Values: no thread owns them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tocsin::redis {

/// A Lua script that is called by the SHA1 of its source, and whose source is sent to a server that does not know it.
class Script {
 public:
  /// `name` is for metrics. `replicated`: what it writes is answered to somebody who relies on it.
  Script(std::string name, std::string source, bool replicated = false);
  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }
  const std::string& sha() const { return sha_; }
  bool replicated() const { return replicated_; }

 private:
  std::string name_;
  std::string source_;
  std::string sha_;  // in hexadecimal digits
  bool replicated_;
};

class Command {
 public:
  /// A command without a key, for any server.
  explicit Command(std::string_view name);
  Command(std::string_view name, std::string_view key);
  /// `script` outlives the command. `key` is the first of `keys`, at least one; the others follow, then the arguments.
  Command(const Script& script, size_t keys, std::string_view key);

  Command& Add(std::string_view argument);
  Command& Add(int64_t argument);

  /// Which of Cluster's 16384 hash slots the key is in; -1 without a key.
  int hash_slot() const { return hash_slot_; }
  const Script* script() const { return script_; }
  /// Appends the whole request; with `whole_script` the source instead of its SHA1.
  void Encode(std::string& out, bool whole_script) const;
  /// Bytes of the arguments.
  size_t bytes() const { return arguments_.size(); }

 private:
  std::string name_;       // empty for a script
  std::string arguments_;  // encoded
  size_t count_ = 0;
  size_t keys_ = 0;  // of a script
  const Script* script_ = nullptr;
  int hash_slot_ = -1;
};

/// Of a Redis Cluster.
constexpr int kHashSlots = 16'384;

/// CRC16 of the key, or of its hash tag, modulo 16384.
int HashSlot(std::string_view key);

}  // namespace tocsin::redis
