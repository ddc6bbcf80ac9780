// Ends or prolongs deliveries: what ack, nack, extend and `reserve --ack` share.
#pragma once

#include "cli/context.h"

namespace tocsin::cli {

/// POSTs `body`, which holds the tokens, to the topic's /ack, /nack or /extend: the results.
Result<json::array> Settle(Context& context, const std::string& topic, std::string_view verb, const json::object& body);

/// 0 where every result was taken, 1 where one is stale, 3 where the server was too busy for one.
int StatusOf(const json::array& results);

}  // namespace tocsin::cli
