#include "cli/verbs/verb_command.h"

#include <algorithm>

#include <unistd.h>

#include "base/result.h"
#include "base/text.h"
#include "cli/text/human.h"
#include "cli/verbs/topic_flags.h"
#include "cli/verbs/view.h"

namespace tocsin::cli {
namespace {

using api::Field;
using api::FieldKind;

constexpr Positional kTopic{"TOPIC", "Name of the topic."};
constexpr Positional kJobId{"ID", "The job's id, given by the server or by its submitter."};

/// The name of the argument that holds the field: of a flag, or of a positional.
std::string NameOf(const Field& field) {
  if (field.kind == FieldKind::kPayload) return "PAYLOAD";
  if (field.kind == FieldKind::kTokens) return "TOKEN";
  return field.flag.empty() ? Capitals(field.name) : std::string(field.flag);
}

/// As messages write it.
std::string ShownName(const Field& field) {
  if (field.kind == FieldKind::kPayload) return "PAYLOAD or --file";
  return field.flag.empty() ? NameOf(field) : fmt::format("--{}", field.flag);
}

Kind KindOf(FieldKind kind) {
  if (kind == FieldKind::kNumber) return Kind::kNumber;
  if (kind == FieldKind::kMillis) return Kind::kDuration;
  if (kind == FieldKind::kMoment) return Kind::kMoment;
  if (kind == FieldKind::kFlag) return Kind::kSwitch;
  return kind == FieldKind::kChoice || kind == FieldKind::kBareChoice ? Kind::kChoice : Kind::kText;
}

Kind KindOf(const Field& field) {
  return field.kind == FieldKind::kNames && !field.choices.empty() ? Kind::kChoice : KindOf(field.kind);
}

std::string DocOf(const Field& field) {
  if (field.kind == FieldKind::kMoment) {
    constexpr std::string_view kUnit = ", in milliseconds UTC";  // of the wires
    std::string doc(field.name == "due_ms" ? "When it is due." : field.doc);
    if (const size_t unit = doc.find(kUnit); unit != std::string::npos) doc.erase(unit, kUnit.size());
    return fmt::format("{} As 2026-12-01T09:00+08:00, or \"2026-12-01 09:00\" in local time.", doc);
  }
  if (field.kind == FieldKind::kNames) return fmt::format("{} May be given several times.", field.doc);
  if (field.fallback.empty() || field.kind == FieldKind::kFlag) return std::string(field.doc);
  std::string fallback(field.fallback);
  std::erase(fallback, '"');
  if (field.kind == FieldKind::kMillis) fallback = ExactDuration(Millis(std::stoll(fallback)));
  return fmt::format("{} Default: {}.", field.doc, fallback);
}

Flag FlagOf(const Field& field) {
  Flag flag{.name = field.flag, .kind = KindOf(field), .doc = Keep(DocOf(field)), .required = field.required};
  flag.choices.assign(field.choices.begin(), field.choices.end());
  if (flag.kind == Kind::kText) flag.value = Keep(Capitals(field.flag));
  flag.repeated = field.kind == FieldKind::kHeaders || field.kind == FieldKind::kNames;
  if (field.kind == FieldKind::kHeaders) flag.value = "NAME=VALUE";
  return flag;
}

/// Whether the command line has the field; it has no use for one that repeats another, or that is only for RESP. Copies
/// of jobs are what import is for.
bool IsOurs(const Field& field) {
  return field.kind != FieldKind::kBase64 && field.in != api::In::kResp && !IsOfCopy(field);
}

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
  if (field.kind == FieldKind::kNames) return json::value(fmt::format("{}", fmt::join(arguments.All(name), ",")));
  if (field.kind == FieldKind::kFlag) return json::value(true);
  if (IsNumber(field.kind)) return json::value(*arguments.Number(name));
  return json::value(*arguments.Text(name));
}

/// A text as it is, without quotes.
std::string PlainText(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

Status PutField(const api::Verb& verb, const Field& field, const Arguments& arguments, Request& request) {
  if (field.kind == FieldKind::kPayload) {
    TOCSIN_ASSIGN(const std::string payload, PayloadOf(arguments));
    PutPayload(request.body, payload);
    return {};
  }
  TOCSIN_ASSIGN(json::value value, ValueOf(field, arguments));
  if (field.in == api::In::kBody) {
    request.body[field.name] = std::move(value);
  } else if (verb.InWhere(field)) {
    json::value& where = request.body["where"];
    if (where.is_null()) where.emplace_object();
    where.get_object()[field.name] = std::move(value);
  } else {
    AppendQuery(request.target, field.name, PlainText(value));
  }
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

/// `text` with each {name} in it replaced: `append` adds what stands for it.
template <class Append>
std::string Filled(std::string_view text, Append append) {
  std::string filled;
  for (size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{')) {
    const size_t close = text.find('}');
    filled += text.substr(0, open);
    append(filled, text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
  return filled += text;
}

void PrintForPeople(Context& context, const VerbExtras& extras, const Arguments& arguments,
                    const json::object& answer) {
  Output& out = context.out;
  if (extras.print != nullptr) return extras.print(context, arguments, answer);
  for (const json::object& result : ObjectsOf(answer, extras.list)) {
    out.Print("{} {}\n", Printable(TextOf(result, "token")), OutcomeText(out, result));
  }
  if (!extras.list.empty()) return;
  if (answer.contains("outcome")) out.Print("{}\n", OutcomeText(out, answer));
  if (!extras.done.empty()) {
    const auto append = [&](std::string& text, std::string_view name) {
      if (arguments.Has(name)) {
        text += Printable(*arguments.Text(name));
      } else if (const size_t one = name.find('|'); one == std::string_view::npos) {
        text += std::to_string(IntegerOf(answer, name));
      } else {
        const size_t many = name.find('|', one + 1);
        const int64_t number = IntegerOf(answer, name.substr(0, one));
        text += Counted(number, name.substr(one + 1, many - one - 1), name.substr(many + 1));
      }
    };
    if (StatusOf(answer).value_or(kExitNo) == kExitOk) out.Print("{}\n", Filled(extras.done, append));
    return;
  }
  for (const auto& [name, value] : answer) {
    if (name != "outcome" && name != "due_ms") out.Print("{}: {}\n", Printable(name), Printable(PlainText(value)));
  }
}

Result<int> Run(const api::Verb& verb, const VerbExtras& extras, Context& context, const Arguments& arguments) {
  if (!extras.question.empty() && !arguments.Has("yes")) {
    const std::string topic = Printable(*arguments.Text("TOPIC"));
    TOCSIN_ASSIGN(const bool sure, Confirm(fmt::format(fmt::runtime(extras.question), topic)));
    if (!sure) return kExitNo;
  }
  TOCSIN_ASSIGN(const Request request, RequestOf(verb, arguments));
  TOCSIN_ASSIGN(const json::object answer, Send(context, verb, request));
  if (!context.out.json()) {
    PrintForPeople(context, extras, arguments, answer);
  } else if (extras.list.empty()) {
    context.out.Json(answer);
  } else {
    for (const json::value& one : ArrayOf(answer, extras.list)) context.out.Json(one);
  }
  return extras.list.empty() ? StatusOf(answer) : StatusOf(ArrayOf(answer, extras.list));
}

}  // namespace

Result<bool> Confirm(const std::string& question) {
  if (isatty(STDIN_FILENO) != 1) {
    return Fail(Code::kInvalidArgument, "{} Nobody can be asked here: add --yes to confirm", question);
  }
  PrintStderr("{} [y/N] ", question);
  char answer[16] = "";
  if (std::fgets(answer, sizeof(answer), stdin) == nullptr) return false;
  return answer[0] == 'y' || answer[0] == 'Y';
}

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
    flags.push_back({.name = "file", .doc = "Take the payload from this file; - is stdin.", .value = "FILE"});
  }
  if (verb.takes_settings) {
    for (const TopicFlag& each : TopicFlags()) flags.push_back(each.flag);
  }
  return flags;
}

Flag FlagOf(const api::Verb& verb, std::string_view field) {
  return FlagOf(*std::ranges::find(verb.fields, field, &Field::name));
}

Result<Request> RequestOf(const api::Verb& verb, const Arguments& arguments, std::string_view without) {
  Request request{.target = Filled(verb.Path(), [&](std::string& path, std::string_view name) {
                    AppendPercent(path, *arguments.Text(Capitals(name)));
                  })};
  for (size_t i = 0; i < verb.fields.size(); ++i) {
    const Field& field = verb.fields[i];
    if (field.name == without || !IsGiven(field, arguments)) continue;
    if (field.excludes_next && IsGiven(verb.fields[i + 1], arguments)) {
      return Fail(Code::kInvalidArgument, "{} and {} contradict each other: give one of them", ShownName(field),
                  ShownName(verb.fields[i + 1]));
    }
    TOCSIN_TRY(PutField(verb, field, arguments, request));
  }
  if (verb.takes_settings) PutSettings(arguments, request.body);
  const bool changes_something = verb.Method() == "PATCH" || verb.id == api::VerbId::kAdvanceClock;
  if (changes_something && request.body.empty()) {
    std::vector<std::string> names;
    for (const Field& field : verb.fields) {
      // A field with a default only says how another one is taken.
      if (field.in == api::In::kBody && IsOurs(field) && field.fallback.empty()) names.push_back(ShownName(field));
    }
    return Fail(Code::kInvalidArgument, "nothing to change: give {}", fmt::join(names, ", "));
  }
  return request;
}

Result<json::object> Send(Context& context, const api::Verb& verb, const Request& request,
                          std::optional<Millis> limit) {
  // The server wants a body wherever there may be a field, such as {} for a job without a payload.
  const bool has_body = !request.body.empty() || std::ranges::count(verb.fields, api::In::kBody, &Field::in) > 0;
  auto answer = context.api.Call(verb.Method(), request.target, has_body ? &request.body : nullptr, limit);
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

Command VerbCommand(std::string_view name, VerbExtras extras) {
  const api::Verb& verb = VerbNamed(name);
  std::string summary(verb.summary);
  summary[0] = static_cast<char>(std::tolower(summary[0]));
  Command command{.name = verb.cli,
                  .summary = Keep(std::move(summary)),
                  .details = extras.details,
                  .positionals = PositionalsOf(verb),
                  .flags = FlagsOf(verb),
                  .examples = extras.examples,
                  .no = extras.no};
  command.flags.insert(command.flags.end(), extras.flags.begin(), extras.flags.end());
  if (command.examples.empty()) {
    command.examples = {
        {Keep(fmt::format("{}{}{}", name, verb.HasTopic() ? " orders" : "", verb.HasId() ? " order-17" : "")),
         command.summary}};
  }
  if (!extras.question.empty()) {
    command.flags.push_back({"yes", Kind::kSwitch, "Do not ask. Needed if stdin is not a terminal."});
  }
  command.run = extras.run;
  if (command.run) return command;
  command.run = [&verb, extras = std::move(extras)](Context& context, const Arguments& arguments) {
    return Run(verb, extras, context, arguments);
  };
  return command;
}

}  // namespace tocsin::cli
