// MessageWriter: the bytes of a webhook's requests. One for a sink, on its thread.
//
// Texts of users cannot end a header or begin another one. In the values of tocsin-* headers and in webhook-id, every
// byte except printable ASCII, every % and a blank at either end are written as %XX; so are the bytes that the name of
// a header may not have, in the names of the job's own headers. A receiver that decodes %XX has the original value.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/job.h"
#include "sinks/webhook/signer.h"
#include "sinks/webhook/target.h"

namespace tocsin::webhook {

class MessageWriter {
 public:
  /// `signer` may be null.
  MessageWriter(const Target& target, std::string topic, std::string_view user_agent,
                std::unique_ptr<const Signer> signer);

  void SetSigner(std::unique_ptr<const Signer> signer) { signer_ = std::move(signer); }

  /// The head of the request whose body is the job's payload. `now_s`: seconds since 1970.
  void WriteHead(std::string& head, const JobView& job, int64_t now_s) const;
  /// The head of the request with these jobs, and its body (batch.h).
  void WriteBatch(std::string& head, std::string& body, std::span<const JobView* const> jobs, int64_t now_s) const;

 private:
  void Begin(std::string& head, std::string_view content_type, size_t bytes) const;
  void Identify(std::string& head, std::string_view id, std::string_view body, int64_t now_s) const;

  std::string topic_;
  std::string begin_;       // the request line and what all requests have
  std::string topic_text_;  // as headers have it
  std::unique_ptr<const Signer> signer_;
};

}  // namespace tocsin::webhook
