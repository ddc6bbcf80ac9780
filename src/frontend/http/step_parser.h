// StepParser: parses a body in steps, so that large bodies take turns, and stops at the first limit that the body
// violates: a batch that is too long, a string or a payload that is larger than any payload, an object with too many
// keys, a key that comes twice, too many values, nesting too deep, no memory left.
//
// A payload that is an object or an array is checked, but nothing is made of it: it is delivered as the text that was
// sent (Document::PayloadSource). So it may have any number of keys. Other objects have kKeysMax at most, because their
// tables become slow if a client chooses keys that collide.
//
// Charges what the document takes beyond its text to the budget, before it takes it.
//
// Used by one thread at a time. The body outlives it.
#pragma once

#include <memory>
#include <string_view>

#include "frontend/http/decode.h"

namespace tocsin::http {

class StepParser {
 public:
  static constexpr size_t kStepBytes = 256 << 10;
  static constexpr size_t kKeysMax = 64;  // of an object; more than any object of a call has

  StepParser(std::string_view body, const BodyLimits& limits) : StepParser(MakeParser(), body, limits) {}
  StepParser(std::shared_ptr<BodyParser> parser, std::string_view body, const BodyLimits& limits);

  /// Parses the next kStepBytes. True when all is done; then Take has the document, or what is wrong.
  bool Step();
  Result<std::shared_ptr<Document>> Take();
  /// Bytes of the body that were parsed so far.
  size_t parsed() const { return parsed_; }

 private:
  Status Finish();

  const std::string_view body_;
  std::shared_ptr<Document> document_;
  std::shared_ptr<BodyParser> parser_;
  size_t parsed_ = 0;
  Status status_;
};

}  // namespace tocsin::http
