// The words after a command's name, by the fields of its verb: fixed arguments first, then DELAY 1000 KEEP HEADER name
// value in any order and case. An unknown word is answered with the nearest known one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/verbs.h"
#include "base/result.h"
#include "base/text.h"
#include "model/topic.h"

namespace tocsin::resp {

using Values = std::span<const std::string_view>;

/// `kind` is what the known ones are: an option, a subcommand.
std::unexpected<Error> UnknownWord(std::string_view kind, std::string_view word,
                                   std::span<const std::string_view> known);

std::unexpected<Error> MissingValue(std::string_view word, size_t needed, size_t given);
std::unexpected<Error> GivenTwice(std::string_view word);

/// Reads all words of `args`. Each is taken once, except HEADER.
Status ReadWords(Values args, std::span<const api::Field> fields, api::Arguments& to);
/// Reads what follows the topic: an id and other fixed arguments, then words, and checks them together. The
/// payload of a submit is a fixed argument; delivery tokens are not read here.
Status ReadArguments(Values args, const api::Verb& verb, api::Arguments& to);
/// Reads the settings of a topic.
Result<TopicChange> ReadSettings(Values args);

}  // namespace tocsin::resp
