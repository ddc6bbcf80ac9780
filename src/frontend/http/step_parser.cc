#include "frontend/http/step_parser.h"

#include <bit>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include "base/text.h"
#include "frontend/http/body_path.h"

namespace tocsin::http {
namespace {

namespace json = boost::json;
using boost::system::error_code;

constexpr size_t kBatchValuesMax = 128 << 10;
constexpr size_t kValuesMin = 1024;
constexpr size_t kBytesPerValue = 8;
constexpr size_t kStringMin = 64 << 10;   // headers and reasons are smaller
constexpr size_t kChargeStep = 16 << 10;  // less is not worth counting
constexpr size_t kStackMin = 16;          // values that the parser's stack has room for at first
constexpr size_t kTableBytes = 16;        // before the elements of an array or the members of an object
constexpr size_t kIndexBytes = 8;         // of the table of an object, for each member
constexpr size_t kShortText = 14;         // such a string takes no memory beyond its value
constexpr size_t kStringBytes = 24;       // of any other, without its text
constexpr size_t kSyntaxBytesOfKey = 3;   // its quotes and its colon
constexpr std::string_view kPayload = "payload";
constexpr std::string_view kJobs = "jobs";

/// The most characters that a payload may take once escapes are decoded: as Base64.
size_t StringMax(size_t payload_bytes) {
  return payload_bytes > SIZE_MAX / 2 ? SIZE_MAX : std::max(kStringMin, payload_bytes / 3 * 4 + 4);
}

/// Builds the document as Boost's own parser does, except what is inside a payload, and checks the limits on the way.
class Builder {
 public:
  // NOLINTBEGIN(readability-identifier-naming): Boost's parser asks for these names.
  static constexpr size_t max_object_size = json::object::max_size();
  static constexpr size_t max_array_size = json::array::max_size();
  static constexpr size_t max_key_size = json::string::max_size();
  static constexpr size_t max_string_size = json::string::max_size();
  // NOLINTEND(readability-identifier-naming)

  explicit Builder(json::storage_ptr memory) : stack_(std::move(memory)) {}

  /// `charge`: of the document; null if nothing is charged.
  void Begin(json::storage_ptr storage, net::Charge* charge, size_t body_bytes, const BodyLimits& limits) {
    stack_.reset(std::move(storage));
    charge_ = charge;
    limits_ = limits;
    body_bytes_ = body_bytes;
    values_max_ = body_bytes / kBytesPerValue + std::min(limits.batch, kBatchValuesMax) + kValuesMin;
    string_max_ = StringMax(limits.payload_bytes);
    violated_.reset();
    path_.Clear();
    values_ = built_ = pending_ = inside_ = inside_bytes_ = 0;
    stack_room_ = kStackMin;
    key_room_ = 0;
    charged_ = kChargeStep;
  }
  void End() {
    charge_ = nullptr;
    limits_ = {};
  }
  json::value Release() { return stack_.release(); }
  /// Bytes of memory that the document takes, without its text.
  size_t built() const { return built_; }
  std::optional<Error>& violated() { return violated_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& error) { return Enter(error, false); }
  bool on_object_end(size_t count, error_code& error) {
    if (const auto twice = path_.KeyThatComesTwice()) return RefuseTwice(*twice, error);
    if (!Leave(count)) return true;
    if (!Build(kTableBytes + count * (sizeof(json::key_value_pair) + kIndexBytes), 0, error)) return false;
    stack_.push_object(count);
    pending_ -= 2 * count;
    ++pending_;
    return true;
  }
  bool on_array_begin(error_code& error) { return Enter(error, true); }
  bool on_array_end(size_t count, error_code& error) {
    if (!Leave(count)) return true;
    if (!Build(kTableBytes + count * sizeof(json::value), 0, error)) return false;
    stack_.push_array(count);
    pending_ -= count;
    ++pending_;
    return true;
  }
  bool on_key_part(json::string_view text, size_t size, error_code& error) {
    if (!CheckPart(size, error)) return false;
    path_.AddToKey(text);
    if (inside_ == 0) stack_.push_chars(text);
    return true;
  }
  bool on_key(json::string_view text, size_t size, error_code& error) {
    if (!CheckText(size, error)) return false;
    path_.EndKey(text);
    if (inside_ > 0) return Inside(size + kSyntaxBytesOfKey, error);
    if (path_.keys() > StepParser::kKeysMax) return RefuseObject(error);
    if (!Build(0, 0, error)) return false;
    stack_.push_key(text);
    ++pending_;
    return true;
  }
  bool on_string_part(json::string_view text, size_t size, error_code& error) {
    if (!CheckPart(size, error)) return false;
    if (inside_ == 0) stack_.push_chars(text);
    return true;
  }
  bool on_string(json::string_view text, size_t size, error_code& error) {
    if (!CheckText(size, error)) return false;
    if (inside_ > 0 && !Inside(size, error)) return false;
    return Scalar(error, size > kShortText ? kStringBytes : 0, [&] { stack_.push_string(text); });
  }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(int64_t number, json::string_view, error_code& error) {
    return Scalar(error, 0, [&] { stack_.push_int64(number); });
  }
  bool on_uint64(uint64_t number, json::string_view, error_code& error) {
    return Scalar(error, 0, [&] { stack_.push_uint64(number); });
  }
  bool on_double(double number, json::string_view, error_code& error) {
    return Scalar(error, 0, [&] { stack_.push_double(number); });
  }
  bool on_bool(bool value, error_code& error) {
    return Scalar(error, 0, [&] { stack_.push_bool(value); });
  }
  bool on_null(error_code& error) {
    return Scalar(error, 0, [&] { stack_.push_null(); });
  }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }

 private:
  bool Enter(error_code& error, bool array) {
    const bool payload = inside_ == 0 && IsPayload();
    if (!Value(error)) return false;
    path_.Enter(array);
    if (payload) {
      inside_ = path_.depth();
      inside_bytes_ = 0;
    }
    return true;
  }
  /// False if the object or array that ends is inside a payload. Sets `count` to 0 if it is the payload itself.
  bool Leave(size_t& count) {
    const bool is_payload = path_.depth() == inside_;
    path_.Leave();
    if (inside_ == 0) return true;
    if (!is_payload) return false;
    inside_ = count = 0;
    return true;
  }
  /// Whether the value that begins is what a job is delivered with: of the body, or of one of its jobs.
  bool IsPayload() const {
    const size_t depth = path_.depth();
    const bool of_job = depth == 3 && !path_.is_array(0) && path_.is_array(1) && path_.key(0) == kJobs;
    return (depth == 1 || of_job) && !path_.in_array() && path_.key(depth - 1) == kPayload;
  }
  /// A value begins or, if it is no object or array, has ended.
  bool Value(error_code& error) {
    if (path_.in_array() && path_.CountElement() > limits_.batch && path_.depth() == 2 && !path_.is_array(0) &&
        inside_ == 0) {
      return RefuseBatch(error);
    }
    if (inside_ > 0) return Inside(1, error);
    if (++values_ <= values_max_) return true;
    return Refuse({Code::kTooLarge, fmt::format("the body has more than {} values", values_max_), {}}, error);
  }
  template <class Push>
  bool Scalar(error_code& error, size_t bytes, Push push) {
    if (!Value(error)) return false;
    if (inside_ > 0) return true;
    if (!Build(bytes, 0, error)) return false;
    push();
    ++pending_;
    return true;
  }
  /// So many bytes more of the text of a payload, at least.
  bool Inside(size_t bytes, error_code& error) {
    inside_bytes_ += bytes;
    return inside_bytes_ > limits_.payload_bytes ? RefusePayload(inside_ - 1, error) : Build(0, 0, error);
  }
  bool CheckText(size_t size, error_code& error) { return size <= string_max_ || RefusePayload(path_.depth(), error); }
  /// The stack keeps the parts of a text until it ends; there are `size` bytes so far.
  bool CheckPart(size_t size, error_code& error) {
    return CheckText(size, error) && (inside_ > 0 || Build(0, size, error));
  }
  /// The document grows by `bytes`, and the stack by a value that has so much text.
  bool Build(size_t bytes, size_t text, error_code& error) {
    built_ += bytes;
    const size_t values = pending_ + 2 + text / sizeof(json::value);
    if (values > stack_room_) stack_room_ = std::bit_ceil(values);
    if (path_.all_keys() > key_room_) key_room_ = std::bit_ceil(path_.all_keys());
    // The stack may hold the text of a payload, which is charged as the body: a server that is idle takes any body.
    const size_t stack = stack_room_ * sizeof(json::value);
    const size_t all = built_ + stack - std::min(stack, body_bytes_) + key_room_ * BodyPath::kKeyBytes;
    return all <= charged_ || Charge(all, error);
  }
  bool Charge(size_t bytes, error_code& error) {
    charged_ = (bytes / kChargeStep + 1) * kChargeStep;
    if (charge_ == nullptr || charge_->Reach(charged_, limits_.account)) return true;
    return Refuse(limits_.budget->NoRoom(), error);
  }

  bool RefuseBatch(error_code& error) {
    const std::string name = path_.Text(1);
    return Refuse(
        {Code::kInvalidArgument,
         fmt::format("{} has more than {} elements: the range is 1 to {}", name, limits_.batch, limits_.batch), name},
        error);
  }
  bool RefuseObject(error_code& error) {
    std::string path = path_.Text(path_.depth() - 1);
    std::string message = fmt::format("{} has more than {} keys; only a payload may have more",
                                      path.empty() ? "the body" : path, StepParser::kKeysMax);
    return Refuse({Code::kTooLarge, std::move(message), std::move(path)}, error);
  }
  /// What is at the first `levels` of the path is too large.
  bool RefusePayload(size_t levels, error_code& error) {
    const std::string path = path_.Text(levels);
    return Refuse(
        {Code::kTooLarge,
         fmt::format("{} has more bytes than any payload: the most is {}", path, limits_.payload_bytes), path},
        error);
  }
  bool RefuseTwice(std::string_view key, error_code& error) {
    std::string path = path_.Text(path_.depth() - 1);
    path += (path.empty() ? "" : ".") + Shown(key);
    return Refuse({Code::kInvalidArgument, fmt::format("{} is there twice", path), path}, error);
  }
  bool Refuse(Error violated, error_code& error) {
    violated_ = std::move(violated);
    error = boost::system::errc::make_error_code(boost::system::errc::operation_canceled);
    return false;
  }

  json::value_stack stack_;
  net::Charge* charge_ = nullptr;
  BodyLimits limits_;
  size_t body_bytes_ = 0;
  size_t values_max_ = 0;
  size_t string_max_ = 0;
  std::optional<Error> violated_;
  BodyPath path_;
  size_t values_ = 0;
  size_t built_ = 0;
  size_t pending_ = 0;       // values and keys on the stack
  size_t stack_room_ = 0;    // values that the stack has room for
  size_t key_room_ = 0;      // the same for the keys of path_
  size_t charged_ = 0;       // bytes that are charged, or not worth it
  size_t inside_ = 0;        // if the parser is inside a payload: the depth of it; otherwise 0
  size_t inside_bytes_ = 0;  // of the text of that payload, at least
};

json::parse_options Options() {
  json::parse_options options;
  options.max_depth = Document::kDepthMax;
  return options;
}

}  // namespace

class BodyParser : public json::basic_parser<Builder> {
 public:
  explicit BodyParser(json::storage_ptr memory) : basic_parser(Options(), std::move(memory)) {}
};

std::shared_ptr<BodyParser> MakeParser(json::storage_ptr memory) {
  return std::make_shared<BodyParser>(std::move(memory));
}

StepParser::StepParser(std::shared_ptr<BodyParser> parser, std::string_view body, const BodyLimits& limits)
    : body_(body), document_(std::make_shared<Document>(body, limits.budget)), parser_(std::move(parser)) {
  auto& charge = document_->charge_;
  parser_->reset();
  parser_->handler().Begin(&document_->arena_, charge ? &*charge : nullptr, body.size(), limits);
}

bool StepParser::Step() {
  const std::string_view text = body_.substr(parsed_, kStepBytes);
  const bool last = parsed_ + text.size() == body_.size();
  error_code error;
  const size_t used = parser_->write_some(!last, text.data(), text.size(), error);
  parsed_ += used;
  if (!error && used < text.size()) error = json::error::extra_data;
  if (auto& violated = parser_->handler().violated()) {
    status_ = std::unexpected(*std::move(violated));
  } else if (error) {
    status_ = Document::NotJson(error, parsed_);
  } else if (last) {
    status_ = Finish();
  }
  if (!last && status_) return false;
  if (!status_) document_.reset();
  parser_->handler().End();
  parser_.reset();
  return true;
}

Status StepParser::Finish() {
  Builder& builder = parser_->handler();
  document_->root_.emplace(builder.Release());
  if (document_->charge_) document_->charge_->Lower(builder.built());  // the parser's stack is given back
  if (!document_->root_->is_object()) return Fail(Code::kInvalidArgument, "the body is not a JSON object");
  return {};
}

Result<std::shared_ptr<Document>> StepParser::Take() {
  if (!status_) return std::unexpected(std::move(status_).error());
  return std::move(document_);
}

}  // namespace tocsin::http
