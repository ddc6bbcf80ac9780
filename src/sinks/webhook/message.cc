#include "sinks/webhook/message.h"

#include <algorithm>
#include <array>

#include <fmt/compile.h>

#include "sinks/webhook/batch.h"
#include "spi/delivery_headers.h"

namespace tocsin::webhook {
namespace {

void AppendEscaped(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
}

bool IsPlain(char c) { return c >= 0x20 && c <= 0x7e; }

constexpr std::array<bool, 256> kNameBytes = [] {
  std::array<bool, 256> good{};
  // What the name of a header may have (RFC 9110), except %.
  constexpr std::string_view kGood = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$&'*+-.^_`|~";
  for (const char c : kGood) good[static_cast<unsigned char>(c)] = true;
  return good;
}();

void AppendHeaderName(std::string& out, std::string_view name) {
  for (const char c : name) {
    if (kNameBytes[static_cast<unsigned char>(c)]) {
      out += c;
    } else {
      AppendEscaped(out, c);
    }
  }
}

/// Empty if the job has none, or one that cannot be the value of a header.
std::string_view ContentType(const JobView& job) {
  for (const HeaderView& header : job.headers) {
    const std::string_view value = header.value;
    const bool good =
        !value.empty() && std::ranges::all_of(value, IsPlain) && value.front() != ' ' && value.back() != ' ';
    if (delivery_header::IsContentType(header.name)) return good ? value : "";
  }
  return "";
}

/// Escaped for the value of a header.
void AppendHeaderText(std::string& out, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool at_end = i == 0 || i + 1 == text.size();
    if (!IsPlain(c) || c == '%' || (c == ' ' && at_end)) {
      AppendEscaped(out, c);
    } else {
      out += c;
    }
  }
}

void AppendField(std::string& head, std::string_view name, std::string_view text) {
  head += name;
  head += ": ";
  AppendHeaderText(head, text);
  head += "\r\n";
}

}  // namespace

MessageWriter::MessageWriter(const Target& target, std::string topic, std::string_view user_agent,
                             std::unique_ptr<const Signer> signer)
    : topic_(std::move(topic)),
      begin_(fmt::format("POST {} HTTP/1.1\r\nhost: {}\r\nuser-agent: {}\r\ncontent-type: ", target.resource,
                         target.authority, user_agent)),
      signer_(std::move(signer)) {
  AppendHeaderText(topic_text_, topic_);
}

void MessageWriter::Begin(std::string& head, std::string_view content_type, size_t bytes) const {
  head.assign(begin_);
  head += content_type;
  fmt::format_to(std::back_inserter(head), FMT_COMPILE("\r\ncontent-length: {}\r\n"), bytes);
}

void MessageWriter::Identify(std::string& head, std::string_view id, std::string_view body, int64_t now_s) const {
  fmt::format_to(std::back_inserter(head), FMT_COMPILE("webhook-id: {}/{}\r\nwebhook-timestamp: {}\r\n"), topic_text_,
                 id, now_s);
  if (signer_ != nullptr) {
    head += "webhook-signature: ";
    signer_->Append(head, fmt::format(FMT_COMPILE("{}/{}.{}."), topic_text_, id, now_s), body);
    head += "\r\n";
  }
}

void MessageWriter::WriteHead(std::string& head, const JobView& job, int64_t now_s) const {
  const std::string_view type = ContentType(job);
  Begin(head, type.empty() ? "application/octet-stream" : type, job.payload.size());
  Identify(head, UidText(job.uid), job.payload, now_s);
  delivery_header::ForEach(topic_, job,
                           [&](std::string_view name, std::string_view value) { AppendField(head, name, value); });
  for (const HeaderView& header : job.headers) {
    if (!type.empty() && delivery_header::IsContentType(header.name)) continue;
    // The prefix keeps the job's own headers from having a meaning for HTTP, or looking like ours.
    if (header.name != delivery_header::kProbe) head += "tocsin-header-";
    AppendHeaderName(head, header.name);
    AppendField(head, {}, header.value);
  }
  head += "\r\n";
}

void MessageWriter::WriteBatch(std::string& head, std::string& body, std::span<const JobView* const> jobs,
                               int64_t now_s) const {
  body.clear();
  AppendBatch(body, topic_, jobs);
  Begin(head, "application/json", body.size());
  // Each delivery has a delivery token of its own, so no two requests have the same id.
  Identify(head, "batch-" + TokenText(jobs.front()->token), body, now_s);
  fmt::format_to(std::back_inserter(head), FMT_COMPILE("{}: {}\r\ntocsin-batch: {}\r\n\r\n"), delivery_header::kTopic,
                 topic_text_, jobs.size());
}

}  // namespace tocsin::webhook
