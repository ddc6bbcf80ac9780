// BodyPath: where a parser is in a JSON body, with the keys of the objects around it. Errors name their places by it,
// and it finds a key that an object has twice. It sorts the keys: hashes decide only in which order they are compared,
// so keys that are chosen to collide cost little more than others.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::http {

class BodyPath {
 public:
  static constexpr size_t kKeyBytes = 16;  // of memory for a key, without its text

  void Clear();
  void Enter(bool array);
  void Leave();
  size_t depth() const { return levels_.size(); }
  bool in_array() const { return !levels_.empty() && levels_.back().array; }
  bool is_array(size_t level) const { return levels_[level].array; }
  /// The next element of the innermost array begins. Returns how many it has so far.
  size_t CountElement() { return ++levels_.back().elements; }

  void AddToKey(std::string_view part) { text_.append(part); }
  void EndKey(std::string_view rest);
  /// How many keys the innermost object has so far.
  size_t keys() const { return keys_.size() - levels_.back().keys; }
  /// How many keys all objects around this place have so far.
  size_t all_keys() const { return keys_.size(); }
  /// The key of the object at this level whose value the parser is in or has just passed.
  std::string_view key(size_t level) const;
  /// At the end of the innermost object. Changes the order of its keys.
  std::optional<std::string_view> KeyThatComesTwice();

  /// jobs[3].headers.a: of the place at hand, or of the first `levels` of it.
  std::string Text(size_t levels) const;
  std::string Text() const { return Text(levels_.size()); }

 private:
  struct Level {
    bool array;
    size_t elements;  // so far, of an array
    size_t keys;      // index of its first key
    size_t text;      // where the text of its keys begins
  };
  struct Key {
    uint32_t hash;
    uint32_t size;
    size_t begin;  // in text_
  };
  static_assert(sizeof(Key) == kKeyBytes);

  std::string_view TextOf(const Key& key) const { return std::string_view(text_).substr(key.begin, key.size); }

  std::vector<Level> levels_;
  std::vector<Key> keys_;  // of the objects around this place, one after the other
  std::string text_;       // of these keys, and of one that has not ended yet
  size_t ended_ = 0;       // bytes of text_ without that one
};

}  // namespace tocsin::http
