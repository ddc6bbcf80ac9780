// Encodes and decodes AMQP 0-9-1 with the codec of rabbitmq-c. Its sockets are not used, because they block: a broker
// that reads nothing for a while (an alarm) would delay every topic. The transport is connection.h.
//
// Owned by a connection, on its thread. Types of the library appear in this folder only.
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
/// The frame type of a broker's answer "AMQP...", which means that it speaks another version.
constexpr uint8_t kProtocolHeaderFrame = 'A';

inline amqp_bytes_t BytesOf(std::string_view text) {
  return {.len = text.size(), .bytes = const_cast<char*>(text.data())};  // the codec only reads it
}
inline std::string_view TextOf(amqp_bytes_t bytes) { return {static_cast<const char*>(bytes.bytes), bytes.len}; }

/// The fields of a method that was received.
template <class T>
const T& As(const amqp_method_t& method) {
  return *static_cast<const T*>(method.decoded);
}

/// An entry of a table with a text.
amqp_table_entry_t TextField(std::string_view name, std::string_view value);
/// Empty if the table has no such text.
std::string_view FindText(const amqp_table_t& table, std::string_view name);

/// Appends frames to a buffer.
class Encoder {
 public:
  Encoder() { SetFrameMax(kSmallest); }
  /// As both sides agreed.
  void SetFrameMax(size_t bytes);

  void ProtocolHeader(std::string& out) const;
  void Heartbeat(std::string& out) const;
  /// A method without content, whose texts fit into a frame.
  template <class T>
  void Method(std::string& out, uint16_t channel, amqp_method_number_t id, T method) {
    TOCSIN_CHECK(AppendMethod(out, channel, id, &method));
  }
  /// A method with its content. kTooLarge, and nothing is written, if the properties need more than a frame.
  Status Publish(std::string& out, uint16_t channel, amqp_basic_publish_t method, amqp_basic_properties_t properties,
                 std::string_view body);

 private:
  static constexpr size_t kSmallest = 4096;  // what every peer accepts before the two agree on more

  bool AppendMethod(std::string& out, uint16_t channel, amqp_method_number_t id, void* method);
  bool AppendProperties(std::string& out, uint16_t channel, amqp_basic_properties_t& properties, uint64_t body_size);

  std::vector<char> frame_;  // the codec encodes the payload of one frame into this
};

/// Finds frames in received bytes.
class Decoder {
 public:
  Decoder();

  /// As both sides agreed; after the first frame.
  void SetFrameMax(size_t bytes);
  /// Calls `take` with each complete frame until it returns false; the frame is valid during the call. An error if the
  /// bytes are not AMQP.
  Status Feed(std::string_view bytes, const std::function<bool(const amqp_frame_t&)>& take);

 private:
  struct Destroy {
    void operator()(amqp_connection_state_t state) const { amqp_destroy_connection(state); }
  };
  std::unique_ptr<amqp_connection_state_t_, Destroy> state_;
};

}  // namespace tocsin::rabbitmq
