// AMQP 0-9-1 as bytes, by the codec of rabbitmq-c. Its sockets are not used: they block, and a broker that reads
// nothing for a while (an alarm) would hold up every topic. The transport is connection.h.
//
// Owned by a connection, on its thread. A type of the library appears in this folder alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <amqp.h>
#include <amqp_framing.h>

#include "base/result.h"

namespace tocsin::rabbitmq {

constexpr size_t kShortTextMax = 255;
/// The type of the frame that the decoder makes of a broker's "AMQP": it speaks another version.
constexpr uint8_t kProtocolHeaderFrame = 'A';

inline amqp_bytes_t BytesOf(std::string_view text) {
  return {.len = text.size(), .bytes = const_cast<char*>(text.data())};  // the codec only reads it
}
inline std::string_view TextOf(amqp_bytes_t bytes) { return {static_cast<const char*>(bytes.bytes), bytes.len}; }

/// A field of a table that is a text.
amqp_table_entry_t TextField(std::string_view name, std::string_view value);
/// Empty where the table has no such text.
std::string_view FindText(const amqp_table_t& table, std::string_view name);

/// Writes frames behind what a buffer holds.
class Encoder {
 public:
  Encoder() { SetFrameMax(kSmallest); }
  /// What both sides agreed on.
  void SetFrameMax(size_t bytes);

  void ProtocolHeader(std::string& out) const;
  void Heartbeat(std::string& out) const;
  /// A method without content. Its texts fit: they are ours, or were checked.
  template <class T>
  void Method(std::string& out, uint16_t channel, amqp_method_number_t id, T method) {
    Check(AppendMethod(out, channel, id, &method));
  }
  /// A method with its content. kTooLarge, and nothing is written, where the properties need more than a frame.
  Status Publish(std::string& out, uint16_t channel, amqp_basic_publish_t method, amqp_basic_properties_t properties,
                 std::string_view body);

 private:
  static constexpr size_t kSmallest = 4096;  // what every peer takes before anything is agreed on

  bool AppendMethod(std::string& out, uint16_t channel, amqp_method_number_t id, void* method);
  bool AppendProperties(std::string& out, uint16_t channel, amqp_basic_properties_t& properties, uint64_t body_size);
  static void Check(bool encoded);

  std::vector<char> frame_;  // one frame's payload is encoded here: the codec needs to know its room
};

/// Finds frames in what arrives.
class Decoder {
 public:
  Decoder();

  /// What both sides agreed on; after the first frame.
  void SetFrameMax(size_t bytes);
  /// Calls `take` with each frame that is complete, until it says false; the frame is valid during the call. An Error
  /// where the bytes are not AMQP.
  Status Feed(std::string_view bytes, const std::function<bool(const amqp_frame_t&)>& take);

 private:
  struct Destroy {
    void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
  };
  std::unique_ptr<amqp_connection_state_t_, Destroy> state_;
};

}  // namespace tocsin::rabbitmq
