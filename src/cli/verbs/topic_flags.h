// The settings of a topic and of its sink as flags of `tocsin topic set`, made from the tables of model/topic.h and
// model/delivery.h, so that a new setting needs no line here. Pure; the texts live as long as the program.
#pragma once

#include <span>
#include <string_view>

#include "cli/commands.h"

namespace tocsin::cli {

struct TopicFlag {
  Flag flag;
  std::string_view field;  // of the API, such as in_flight
  bool of_sink = false;    // a field of the object `delivery`
};

/// The topic's settings, then --sink, then each setting of any sink.
std::span<const TopicFlag> TopicFlags();

/// "in-flight": what the flag of a field is called, without its dashes; the field's own name if it has no flag.
std::string_view FlagNameOf(std::string_view field);

}  // namespace tocsin::cli
