#include "sinks/webhook/outcome_list.h"

#include <cmath>

#include <boost/json/basic_parser_impl.hpp>

namespace tocsin::webhook {
namespace {

namespace json = boost::json;
using boost::system::error_code;

constexpr size_t kNameMax = 16;  // no name that matters is longer
constexpr std::string_view kList = "outcomes";

/// Follows Boost's parser through the body. Depth 1 is inside the body, 2 inside the list, 3 inside an entry.
class Reader {
 public:
  // NOLINTBEGIN(readability-identifier-naming): Boost's parser asks for these names.
  static constexpr size_t max_object_size = SIZE_MAX;
  static constexpr size_t max_array_size = SIZE_MAX;
  static constexpr size_t max_key_size = SIZE_MAX;
  static constexpr size_t max_string_size = SIZE_MAX;
  // NOLINTEND(readability-identifier-naming)

  explicit Reader(const std::function<void(const ListedOutcome&)>& take) : take_(take) {}

  bool found() const { return found_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& error) {
    if (!Other(error)) return false;
    if (depth_ == 0) is_object_ = true;
    if (depth_ == 2 && in_list_) {
      in_entry_ = true;
      entry_ = {};
    }
    ++depth_;
    return true;
  }
  bool on_object_end(size_t, error_code&) {
    if (--depth_ != 2 || !in_list_) return true;
    in_entry_ = false;
    take_(entry_);
    return true;
  }
  bool on_array_begin(error_code& error) {
    if (IsList()) {
      if (found_) return Stop(error);
      found_ = in_list_ = true;
    } else if (!Other(error)) {
      return false;
    }
    ++depth_;
    return true;
  }
  bool on_array_end(size_t, error_code&) {
    if (--depth_ == 1) in_list_ = false;
    return true;
  }
  bool on_key_part(json::string_view text, size_t, error_code&) {
    AddToName(text);
    return true;
  }
  bool on_key(json::string_view text, size_t, error_code&) {
    AddToName(text);
    name_ = std::exchange(next_name_, {});
    return true;
  }
  bool on_string_part(json::string_view text, size_t, error_code&) {
    if (Member() != nullptr) text_.append(text.data(), text.size());
    return true;
  }
  bool on_string(json::string_view text, size_t, error_code& error) {
    if (!Other(error)) return false;
    if (std::string* const member = Member()) {
      text_.append(text.data(), text.size());
      *member = std::exchange(text_, {});
    }
    return true;
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(int64_t number, json::string_view, error_code& error) { return Number(number, error); }
  bool on_uint64(uint64_t, json::string_view, error_code& error) { return Other(error); }  // over int64_t
  bool on_double(double number, json::string_view, error_code& error) {
    constexpr double kEnd = 0x1p63;
    const bool whole = number >= -kEnd && number < kEnd && std::trunc(number) == number;
    return whole ? Number(static_cast<int64_t>(number), error) : Other(error);
  }
  bool on_bool(bool, error_code& error) { return Other(error); }
  bool on_null(error_code& error) { return Other(error); }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  bool IsList() const { return depth_ == 1 && is_object_ && name_ == kList; }
  bool IsMember() const { return depth_ == 3 && in_entry_; }
  /// Null if the value at hand is not a text that matters.
  std::string* Member() {
    if (!IsMember()) return nullptr;
    if (name_ == "id") return &entry_.id;
    if (name_ == "token") return &entry_.token;
    if (name_ == "outcome") return &entry_.outcome;
    if (name_ == "reason") return &entry_.reason;
    return nullptr;
  }
  bool Number(int64_t number, error_code& error) {
    if (!Other(error)) return false;
    if (IsMember() && name_ == "delay_ms") entry_.delay_ms = number;
    return true;
  }
  /// A value begins that is not the list. Of two members with the same name the last one counts.
  bool Other(error_code& error) {
    if (IsList()) return Stop(error);
    if (std::string* const member = Member()) member->clear();
    if (IsMember() && name_ == "delay_ms") entry_.delay_ms.reset();
    return true;
  }
  bool Stop(error_code& error) {
    error = boost::system::errc::make_error_code(boost::system::errc::invalid_argument);
    return false;
  }
  void AddToName(json::string_view text) {
    if (next_name_.size() < kNameMax) next_name_.append(text.data(), std::min(text.size(), kNameMax));
  }

  const std::function<void(const ListedOutcome&)>& take_;
  ListedOutcome entry_;
  size_t depth_ = 0;
  bool is_object_ = false;
  bool found_ = false;
  bool in_list_ = false;
  bool in_entry_ = false;
  std::string next_name_;
  std::string name_;
  std::string text_;
};

}  // namespace

bool ReadOutcomeList(std::string_view body, const std::function<void(const ListedOutcome&)>& take) {
  json::basic_parser<Reader> parser(json::parse_options(), take);
  error_code error;
  const size_t used = parser.write_some(false, body.data(), body.size(), error);
  return !error && used == body.size() && parser.handler().found();
}

}  // namespace tocsin::webhook
