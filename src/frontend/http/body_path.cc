#include "frontend/http/body_path.h"

#include <algorithm>
#include <functional>

#include "base/text.h"

namespace tocsin::http {

void BodyPath::Clear() {
  levels_.clear();
  keys_.clear();
  text_.clear();
  ended_ = 0;
}

void BodyPath::Enter(bool array) {
  levels_.push_back({.array = array, .elements = 0, .keys = keys_.size(), .text = ended_});
}

void BodyPath::Leave() {
  keys_.resize(levels_.back().keys);
  text_.resize(levels_.back().text);
  ended_ = text_.size();
  levels_.pop_back();
}

void BodyPath::EndKey(std::string_view rest) {
  text_.append(rest);
  const std::string_view key = std::string_view(text_).substr(ended_);
  keys_.push_back({.hash = static_cast<uint32_t>(std::hash<std::string_view>()(key)),
                   .size = static_cast<uint32_t>(key.size()),
                   .begin = ended_});
  ended_ = text_.size();
}

std::string_view BodyPath::key(size_t level) const {
  const size_t end = level + 1 < levels_.size() ? levels_[level + 1].keys : keys_.size();
  return end > levels_[level].keys ? TextOf(keys_[end - 1]) : std::string_view();
}

std::optional<std::string_view> BodyPath::KeyThatComesTwice() {
  const auto begin = keys_.begin() + static_cast<ptrdiff_t>(levels_.back().keys);
  if (keys_.end() - begin < 2) return std::nullopt;
  std::sort(begin, keys_.end(), [this](const Key& a, const Key& b) {
    if (a.hash != b.hash) return a.hash < b.hash;
    return a.size != b.size ? a.size < b.size : TextOf(a) < TextOf(b);
  });
  const auto same = [this](const Key& a, const Key& b) {
    return a.hash == b.hash && a.size == b.size && TextOf(a) == TextOf(b);
  };
  const auto twice = std::adjacent_find(begin, keys_.end(), same);
  if (twice == keys_.end()) return std::nullopt;
  return TextOf(*twice);
}

std::string BodyPath::Text(size_t levels) const {
  std::string text;
  for (size_t level = 0; level < levels; ++level) {
    if (levels_[level].array) {
      text += fmt::format("[{}]", levels_[level].elements == 0 ? 0 : levels_[level].elements - 1);
    } else {
      text += (text.empty() ? "" : ".") + Shown(key(level));
    }
  }
  return text;
}

}  // namespace tocsin::http
