#include "cli/verbs/request.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/text/file.h"
#include "cli/text/human_time.h"
#include "cli/verbs/topic_flags.h"

namespace tocsin::cli {
namespace {

using api::Field;
using api::FieldKind;

constexpr Positional kTopic{"TOPIC", "Name of the topic."};
constexpr Positional kJobId{"ID", "The job's id, given by the server or by its submitter."};

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

/// The name of the argument that holds the field: of a flag, or of a positional.
std::string NameOf(const Field& field) {
  if (field.kind == FieldKind::kPayload) return "PAYLOAD";
  if (field.kind == FieldKind::kTokens) return "TOKEN";
  return field.flag.empty() ? Upper(field.name) : std::string(field.flag);
}

/// As messages write it.
std::string ShownName(const Field& field) {
  if (field.kind == FieldKind::kPayload) return "PAYLOAD or --file";
  return field.flag.empty() ? NameOf(field) : fmt::format("--{}", field.flag);
}

Kind KindOf(FieldKind kind) {
  switch (kind) {
    case FieldKind::kNumber:
      return Kind::kNumber;
    case FieldKind::kMillis:
      return Kind::kDuration;
    case FieldKind::kMoment:
      return Kind::kMoment;
    case FieldKind::kFlag:
      return Kind::kSwitch;
    case FieldKind::kChoice:
    case FieldKind::kBareChoice:
      return Kind::kChoice;
    default:
      return Kind::kText;
  }
}

std::string DocOf(const Field& field) {
  if (field.kind == FieldKind::kMoment) {  // the table's text names the unit of the wires
    return "Due at this moment: 2026-12-01T09:00+08:00, or \"2026-12-01 09:00\" in local time.";
  }
  if (field.fallback.empty() || field.kind == FieldKind::kFlag) return std::string(field.doc);
  std::string fallback(field.fallback);
  std::erase(fallback, '"');
  if (field.kind == FieldKind::kMillis) fallback = ExactDuration(Millis(std::stoll(fallback)));
  return fmt::format("{} Default: {}.", field.doc, fallback);
}

Flag FlagOf(const Field& field) {
  Flag flag{.name = field.flag, .kind = KindOf(field.kind), .doc = Keep(DocOf(field)), .required = field.required};
  flag.choices.assign(field.choices.begin(), field.choices.end());
  if (flag.kind == Kind::kText) flag.value = Keep(Upper(field.flag));
  if (field.kind == FieldKind::kHeaders) {
    flag.value = "NAME=VALUE";
    flag.repeated = true;
  }
  return flag;
}

/// Whether the command line has the field; it has no use for one that repeats another, or that is only for RESP.
bool IsOurs(const Field& field) { return field.kind != FieldKind::kBase64 && field.in != api::In::kResp; }

bool IsGiven(const Field& field, const Arguments& arguments) {
  return arguments.Has(NameOf(field)) || (field.kind == FieldKind::kPayload && arguments.Has("file"));
}

Result<json::value> HeadersOf(const Arguments& arguments) {
  json::object headers;
  for (const std::string& text : arguments.All("header")) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Fail(Code::kInvalidArgument, "--header: \"{}\" is not NAME=VALUE", text);
    }
    const std::string name = text.substr(0, equals);
    if (headers.contains(name)) return Fail(Code::kInvalidArgument, "--header: {} is given twice", name);
    headers[name] = text.substr(equals + 1);
  }
  return headers;
}

/// From PAYLOAD or --file; "-" is stdin.
Result<std::string> PayloadOf(const Arguments& arguments) {
  const auto text = arguments.Text("PAYLOAD");
  auto file = arguments.Text("file");
  if (text && file) return Fail(Code::kInvalidArgument, "PAYLOAD and --file contradict each other: give one of them");
  if (text == "-") file = "-";
  return file ? ReadAll(*file) : Result<std::string>(*text);
}

Result<json::value> ValueOf(const Field& field, const Arguments& arguments) {
  const std::string name = NameOf(field);
  if (field.kind == FieldKind::kHeaders) return HeadersOf(arguments);
  if (field.kind == FieldKind::kTokens) return json::value_from(arguments.All(name));
  if (field.kind == FieldKind::kFlag) return json::value(true);
  if (IsNumber(field.kind)) return json::value(*arguments.Number(name));
  return json::value(*arguments.Text(name));
}

Status PutField(const Field& field, const Arguments& arguments, Request& request) {
  if (field.kind == FieldKind::kPayload) {
    const auto payload = PayloadOf(arguments);
    if (!payload) return std::unexpected(payload.error());
    PutPayload(request.body, *payload);
    return {};
  }
  auto value = ValueOf(field, arguments);
  if (!value) return std::unexpected(std::move(value).error());
  if (field.in == api::In::kBody) {
    request.body[field.name] = *std::move(value);
    return {};
  }
  AppendQuery(request.target, field.name, value->is_string() ? std::string(value->get_string()) : serialize(*value));
  return {};
}

/// The value of a flag that is given, as the API takes it.
json::value SettingOf(const Flag& flag, const Arguments& arguments) {
  const std::string text = *arguments.Text(flag.name);
  if (flag.kind == Kind::kText) return json::value(text);
  if (flag.kind != Kind::kChoice) return *arguments.Number(flag.name);
  if (text == "yes" || text == "no") return text == "yes";
  return json::value(text);
}

void PutSettings(const Arguments& arguments, json::object& body) {
  json::object delivery;
  for (const TopicFlag& each : TopicFlags()) {
    if (!arguments.Has(each.flag.name)) continue;
    (each.of_sink ? delivery : body)[each.field] = SettingOf(each.flag, arguments);
  }
  if (!delivery.empty()) body["delivery"] = std::move(delivery);
}

/// The path with its {topic} and {id} filled in.
std::string PathOf(const api::Verb& verb, const Arguments& arguments) {
  std::string path;
  std::string_view rest = verb.Path();
  for (size_t open = rest.find('{'); open != std::string_view::npos; open = rest.find('{')) {
    const size_t close = rest.find('}');
    path += rest.substr(0, open);
    AppendPercent(path, *arguments.Text(Upper(rest.substr(open + 1, close - open - 1))));
    rest.remove_prefix(close + 1);
  }
  return path += rest;
}

}  // namespace

const api::Verb& VerbNamed(std::string_view command) {
  const auto found = std::ranges::find(api::Verbs(), command, &api::Verb::cli);
  TOCSIN_CHECK(found != api::Verbs().end());
  return *found;
}

std::vector<Positional> PositionalsOf(const api::Verb& verb) {
  std::vector<Positional> positionals;
  if (verb.HasTopic()) positionals.push_back(kTopic);
  if (verb.HasId()) positionals.push_back(kJobId);
  for (const Field& field : verb.fields) {
    if (field.kind == FieldKind::kPayload) {
      positionals.push_back({"PAYLOAD", "What to deliver: any text; - reads it from stdin.", false});
    } else if (IsOurs(field) && field.flag.empty()) {
      positionals.push_back({.name = Keep(NameOf(field)),
                             .doc = field.doc,
                             .required = field.required,
                             .repeated = field.kind == FieldKind::kTokens});
    }
  }
  return positionals;
}

std::vector<Flag> FlagsOf(const api::Verb& verb) {
  std::vector<Flag> flags;
  for (const Field& field : verb.fields) {
    if (!field.flag.empty()) flags.push_back(FlagOf(field));
    if (field.kind != FieldKind::kPayload) continue;
    flags.push_back({.name = "file", .value = "FILE", .doc = "Take the payload from this file; - is stdin."});
  }
  if (verb.takes_settings) {
    for (const TopicFlag& each : TopicFlags()) flags.push_back(each.flag);
  }
  return flags;
}

Flag FlagOf(const api::Verb& verb, std::string_view field) {
  return FlagOf(*std::ranges::find(verb.fields, field, &Field::name));
}

Result<Request> RequestOf(const api::Verb& verb, const Arguments& arguments) {
  Request request{.target = PathOf(verb, arguments)};
  for (size_t i = 0; i < verb.fields.size(); ++i) {
    const Field& field = verb.fields[i];
    if (!IsGiven(field, arguments)) continue;
    if (field.excludes_next && IsGiven(verb.fields[i + 1], arguments)) {
      return Fail(Code::kInvalidArgument, "{} and {} contradict each other: give one of them", ShownName(field),
                  ShownName(verb.fields[i + 1]));
    }
    TOCSIN_TRY(PutField(field, arguments, request));
  }
  if (verb.takes_settings) PutSettings(arguments, request.body);
  if (verb.Method() == "PATCH" && request.body.empty()) {
    std::vector<std::string> names;
    for (const Field& field : verb.fields) {
      if (field.in == api::In::kBody && IsOurs(field)) names.push_back(ShownName(field));
    }
    return Fail(Code::kInvalidArgument, "nothing to change: give {}", fmt::join(names, ", "));
  }
  return request;
}

Result<json::object> Send(Context& context, const api::Verb& verb, const Request& request,
                          std::optional<Millis> limit) {
  auto answer = context.api.Call(verb.Method(), request.target, request.body.empty() ? nullptr : &request.body, limit);
  if (!answer && verb.needs_virtual_clock && answer.error().code == Code::kNotFound) {
    return Fail(Code::kNotFound,
                "the server's clock is the real one: only that of tocsind --clock virtual can be moved");
  }
  if (!answer) return answer;
  if (verb.AnswersOutcome() && !answer->contains("outcome")) {
    return Fail(Code::kInternal, "the answer does not say what became of it: is this a Tocsin server?");
  }
  const size_t tokens = ArrayOf(request.body, "tokens").size();
  if (const size_t results = ArrayOf(*answer, "results").size(); results != tokens) {
    return Fail(Code::kInternal, "the server was sent {} delivery tokens and answered for {}", tokens, results);
  }
  return answer;
}

}  // namespace tocsin::cli
