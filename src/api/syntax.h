// How a verb is written as a command of RESP: fixed arguments, then words with their values. The RESP door reads
// commands by it, COMMAND DOCS and docs/resp.md show it. Also all tables of the documents as Markdown (docs.cc).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/verbs.h"

namespace tocsin::api {

constexpr size_t kAnyNumber = SIZE_MAX;

struct Syntax {
  std::string text;     // of what follows the command's name
  size_t args_min = 0;  // after the name
  size_t args_max = 0;
};
Syntax SyntaxOf(const Verb& verb);

/// Whether the field is a fixed argument of the command.
bool IsFixed(const Field& field);
/// How many values follow the field's word.
size_t ValuesOf(const Field& field);
/// The words of all fields, in capitals.
std::vector<std::string> RespWords(std::span<const Field> fields);
/// The names of all that `takes_settings` takes: the topic's settings, the sink, and the settings of sinks.
const std::vector<std::string>& SettingNames();
/// "pull" and the sinks.
std::vector<std::string_view> DeliveryNames();

/// One generated table, for `make docs`: `calls`; `commands JOB`, `commands TOPIC`, `commands` for the others;
/// `settings`; or `fields OPERATION` with the name of a verb.
Result<std::string> DocTable(std::string_view which);

}  // namespace tocsin::api
