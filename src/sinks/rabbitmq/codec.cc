#include "sinks/rabbitmq/codec.h"

namespace tocsin::rabbitmq {
namespace {

// type, channel, length; and the end mark.
constexpr size_t kHeadBytes = 7;
constexpr size_t kFrameBytes = kHeadBytes + 1;
constexpr size_t kMethodIdBytes = 4;
constexpr size_t kContentHeadBytes = 12;  // class, weight, size of the body

template <class T>
void AppendNumber(std::string& out, T number) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
    out += static_cast<char>(number >> shift & 0xff);
  }
}

void AppendHead(std::string& out, uint8_t type, uint16_t channel, size_t payload_bytes) {
  out += static_cast<char>(type);
  AppendNumber(out, channel);
  AppendNumber(out, static_cast<uint32_t>(payload_bytes));
}

void AppendEnd(std::string& out) { out += static_cast<char>(AMQP_FRAME_END); }

}  // namespace

amqp_table_entry_t TextField(std::string_view name, std::string_view value) {
  return {.key = BytesOf(name), .value = {.kind = AMQP_FIELD_KIND_UTF8, .value = {.bytes = BytesOf(value)}}};
}

std::string_view FindText(const amqp_table_t& table, std::string_view name) {
  for (int i = 0; i < table.num_entries; ++i) {
    const amqp_table_entry_t& entry = table.entries[i];
    if (TextOf(entry.key) == name && entry.value.kind == AMQP_FIELD_KIND_UTF8) return TextOf(entry.value.value.bytes);
  }
  return {};
}

void Encoder::SetFrameMax(size_t bytes) { frame_.resize(bytes - kFrameBytes); }

void Encoder::ProtocolHeader(std::string& out) const {
  out +=
      {'A', 'M', 'Q', 'P', 0, AMQP_PROTOCOL_VERSION_MAJOR, AMQP_PROTOCOL_VERSION_MINOR, AMQP_PROTOCOL_VERSION_REVISION};
}

void Encoder::Heartbeat(std::string& out) const {
  AppendHead(out, AMQP_FRAME_HEARTBEAT, 0, 0);
  AppendEnd(out);
}

bool Encoder::AppendMethod(std::string& out, uint16_t channel, amqp_method_number_t id, void* method) {
  const int bytes = amqp_encode_method(id, method, {.len = frame_.size() - kMethodIdBytes, .bytes = frame_.data()});
  if (bytes < 0) return false;
  AppendHead(out, AMQP_FRAME_METHOD, channel, kMethodIdBytes + static_cast<size_t>(bytes));
  AppendNumber(out, id);
  out.append(frame_.data(), static_cast<size_t>(bytes));
  AppendEnd(out);
  return true;
}

bool Encoder::AppendProperties(std::string& out, uint16_t channel, amqp_basic_properties_t& properties,
                               uint64_t body_size) {
  const int bytes = amqp_encode_properties(AMQP_BASIC_CLASS, &properties,
                                           {.len = frame_.size() - kContentHeadBytes, .bytes = frame_.data()});
  if (bytes < 0) return false;
  AppendHead(out, AMQP_FRAME_HEADER, channel, kContentHeadBytes + static_cast<size_t>(bytes));
  AppendNumber(out, static_cast<uint16_t>(AMQP_BASIC_CLASS));
  AppendNumber(out, uint16_t{0});
  AppendNumber(out, body_size);
  out.append(frame_.data(), static_cast<size_t>(bytes));
  AppendEnd(out);
  return true;
}

Status Encoder::Publish(std::string& out, uint16_t channel, amqp_basic_publish_t method,
                        amqp_basic_properties_t properties, std::string_view body) {
  const size_t before = out.size();
  const bool encoded = AppendMethod(out, channel, AMQP_BASIC_PUBLISH_METHOD, &method) &&
                       AppendProperties(out, channel, properties, body.size());
  if (!encoded) {
    out.resize(before);
    return Fail(Code::kTooLarge, "its headers do not fit into a frame of {} bytes", frame_.size() + kFrameBytes);
  }
  while (!body.empty()) {
    const std::string_view part = body.substr(0, frame_.size());
    AppendHead(out, AMQP_FRAME_BODY, channel, part.size());
    out += part;
    AppendEnd(out);
    body.remove_prefix(part.size());
  }
  return {};
}

Decoder::Decoder() : state_(amqp_new_connection()) { TOCSIN_CHECK(state_ != nullptr); }

void Decoder::SetFrameMax(size_t bytes) {
  TOCSIN_CHECK(amqp_tune_connection(state_.get(), 0, static_cast<int>(bytes), 0) == AMQP_STATUS_OK);
}

Status Decoder::Feed(std::string_view bytes, const std::function<bool(const amqp_frame_t&)>& take) {
  while (!bytes.empty()) {
    amqp_frame_t frame{};
    const int consumed = amqp_handle_input(state_.get(), BytesOf(bytes), &frame);
    if (consumed < 0) return Fail(Code::kUnavailable, "it does not speak AMQP 0-9-1: {}", amqp_error_string2(consumed));
    bytes.remove_prefix(static_cast<size_t>(consumed));
    if (frame.frame_type == 0) continue;  // not complete yet, or of a type that is to be ignored
    const bool go_on = take(frame);
    amqp_maybe_release_buffers_on_channel(state_.get(), frame.channel);
    if (!go_on) return {};
  }
  return {};
}

}  // namespace tocsin::rabbitmq
