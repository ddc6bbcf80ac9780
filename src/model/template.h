// Template: a text with marks that stand for what a job has, such as ready_{topic}. Sinks name topics, keys, exchanges
// and routing keys with it. A pure value; parsed once, used for every job.
//
//   {topic}        the topic's name
//   {key}          the job's key; nothing where it has none
//   {id}           the job's id
//   {header:NAME}  the value of the job's first header of that name; nothing where it has none
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

  /// The text for this job, behind what `out` holds.
  void Append(std::string& out, std::string_view topic, const JobView& job) const;

  /// Whether it is another text for other jobs of the same topic.
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
