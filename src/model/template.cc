#include "model/template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace tocsin {
namespace {

constexpr std::string_view kHeader = "header:";
constexpr std::array<std::string_view, 4> kMarks = {"topic", "key", "id", "header:NAME"};

std::string_view HeaderOf(const JobView& job, std::string_view name) {
  const auto at = std::ranges::find(job.headers, name, &HeaderView::name);
  return at == job.headers.end() ? std::string_view() : at->value;
}

}  // namespace

Result<Template> Template::Parse(std::string_view field, std::string_view text) {
  Template result;
  while (!text.empty()) {
    const size_t brace = std::min(text.find_first_of("{}"), text.size());
    result.AddText(text.substr(0, brace));
    text.remove_prefix(brace);
    if (text.empty()) break;
    if (text.starts_with("{{") || text.starts_with("}}")) {
      result.AddText(text.substr(0, 1));
      text.remove_prefix(2);
      continue;
    }
    const size_t end = text.find('}');
    if (text.front() == '}' || end == std::string_view::npos) {
      return FailField(Code::kInvalidArgument, std::string(field),
                       "{} has a {} alone: a mark is {{name}}, and {{{{ or }}}} stand for a brace", field,
                       text.front());
    }
    TOCSIN_ASSIGN(Part part, ParseMark(field, text.substr(1, end - 1)));
    result.parts_.push_back(std::move(part));
    text.remove_prefix(end + 1);
  }
  return result;
}

Result<Template::Part> Template::ParseMark(std::string_view field, std::string_view mark) {
  if (mark == "topic") return Part{.kind = Kind::kTopic};
  if (mark == "key") return Part{.kind = Kind::kKey};
  if (mark == "id") return Part{.kind = Kind::kId};
  if (mark.starts_with(kHeader) && mark.size() > kHeader.size()) {
    return Part{.kind = Kind::kHeader, .text = std::string(mark.substr(kHeader.size()))};
  }
  return FailField(Code::kInvalidArgument, std::string(field),
                   "{} has the unknown mark {{{}}}: there are {{topic}}, {{key}}, {{id}} and {{header:NAME}}{}", field,
                   mark, DidYouMean(mark, kMarks));
}

void Template::AddText(std::string_view text) {
  if (text.empty()) return;
  if (parts_.empty() || parts_.back().kind != Kind::kText) parts_.push_back({.kind = Kind::kText});
  parts_.back().text += text;
}

void Template::Append(std::string& out, std::string_view topic, const JobView& job) const {
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Kind::kText:
        out += part.text;
        break;
      case Kind::kTopic:
        out += topic;
        break;
      case Kind::kKey:
        out += job.key;
        break;
      case Kind::kId:
        out += job.Id();
        break;
      case Kind::kHeader:
        out += HeaderOf(job, part.text);
        break;
    }
  }
}

std::string Template::Beginning(std::string_view topic) const {
  std::string text;
  for (const Part& part : parts_) {
    if (part.kind != Kind::kText && part.kind != Kind::kTopic) break;
    text += part.kind == Kind::kText ? part.text : topic;
  }
  return text;
}

bool Template::DependsOnJob() const {
  return std::ranges::any_of(parts_,
                             [](const Part& part) { return part.kind != Kind::kText && part.kind != Kind::kTopic; });
}

}  // namespace tocsin
