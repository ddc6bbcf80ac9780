// Template: a text with placeholders for parts of a job, such as ready_{topic}. Sinks use it for the names of topics,
// keys, exchanges and routing keys. A plain value; parsed once, used for every job.
//
//   {topic}        the topic's name
//   {key}          the job's key; nothing if it has none
//   {id}           the job's id
//   {header:NAME}  the value of the job's first header of that name; nothing if it has none
//   {{ and }}      a brace
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/job.h"

namespace tocsin {

class Template {
 public:
  /// `field` is what an error names: "delivery.kafka_topic".
  static Result<Template> Parse(std::string_view field, std::string_view text);

  /// Appends the text for this job to `out`.
  void Append(std::string& out, std::string_view topic, const JobView& job) const;

  /// What the text begins with for every job of the topic: all of it, if it does not depend on the job.
  std::string Beginning(std::string_view topic) const;

  /// Whether jobs of the same topic can have different texts.
  bool DependsOnJob() const;

 private:
  enum class Kind : uint8_t { kText, kTopic, kKey, kId, kHeader };
  struct Part {
    Kind kind = Kind::kText;
    std::string text;  // of kText; of kHeader its name
  };

  static Result<Part> ParseMark(std::string_view field, std::string_view mark);
  void AddText(std::string_view text);

  std::vector<Part> parts_;
};

}  // namespace tocsin
