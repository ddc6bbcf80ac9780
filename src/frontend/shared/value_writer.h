// ValueWriter: how a handler writes an answer without knowing the wire. Each door implements it. Counts come before
// what is counted, because RESP needs them.
#pragma once

#include <cstdint>
#include <string_view>

namespace tocsin::shared {

class ValueWriter {
 public:
  virtual ~ValueWriter() = default;

  /// `members` times a Name and a value follow, then EndObject.
  virtual void Object(size_t members) = 0;
  virtual void EndObject() = 0;
  virtual void Name(std::string_view name) = 0;
  /// `items` values follow, then EndArray.
  virtual void Array(size_t items) = 0;
  virtual void EndArray() = 0;

  virtual void Text(std::string_view text) = 0;
  virtual void Number(int64_t number) = 0;
  virtual void Real(double number) = 0;
  virtual void Flag(bool flag) = 0;
  virtual void Null() = 0;
  /// The member that holds a job's payload, with its name: a wire of text alone may need another form.
  virtual void Payload(std::string_view payload) = 0;

  void Member(std::string_view name, std::string_view text) {
    Name(name);
    Text(text);
  }
  void Member(std::string_view name, int64_t number) {
    Name(name);
    Number(number);
  }
  void Member(std::string_view name, uint64_t number) { Member(name, static_cast<int64_t>(number)); }
  void Member(std::string_view name, uint32_t number) { Member(name, int64_t{number}); }
  void Member(std::string_view name, bool flag) {
    Name(name);
    Flag(flag);
  }
};

}  // namespace tocsin::shared
