// Answers of the service -> JSON bodies, written by hand into one string: this is where the server's time goes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/job.h"

namespace tocsin::http {

/// `own_ids`: for each job its own id, empty where the server gave one.
std::string EncodeSubmitted(std::span<const Submitted> jobs, std::span<const std::string_view> own_ids);
std::string EncodeDelivered(const JobBatch& batch);
std::string EncodeSettled(std::span<const Token> tokens, std::span<const SettleOutcome> outcomes);
std::string EncodeCancelled(AmendOutcome outcome);
std::string EncodeError(const Error& error);

/// Accepted, or stored already.
bool IsStored(SubmitOutcome outcome);
/// The error that stands for an outcome which is not stored.
Code CodeOf(SubmitOutcome outcome);

}  // namespace tocsin::http
