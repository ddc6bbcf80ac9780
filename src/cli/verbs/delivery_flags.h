// The settings of sinks as flags of `tocsin topic set`: made from the one table of model/delivery.h, so that a new
// setting needs no line here. Pure; the texts live as long as the program.
#pragma once

#include <span>
#include <string_view>

#include "cli/command.h"

namespace tocsin::cli {

struct DeliveryFlag {
  Flag flag;
  std::string_view field;  // of the API, such as in_flight
};

/// --sink first, then each setting of any sink.
std::span<const DeliveryFlag> DeliveryFlags();

/// "in-flight": what the flag of a field is called, without its dashes. A field that has none is called as it is.
std::string_view FlagNameOf(std::string_view field);

}  // namespace tocsin::cli
