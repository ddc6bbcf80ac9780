// `tocsin topic pause|resume|purge|drop`.
#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

Result<int> Switch(Context& context, const Arguments& arguments, std::string_view verb, std::string_view text) {
  const std::string topic = *arguments.Text("TOPIC");
  const auto reply = context.api.Call("POST", TopicPath(topic, fmt::format("/{}", verb)));
  if (!reply) return std::unexpected(reply.error());
  if (context.out.json()) {
    context.out.Json(*reply);
  } else {
    context.out.Print("{} {}\n", Printable(topic), text);
  }
  return kExitOk;
}

Result<int> RunPause(Context& context, const Arguments& arguments) {
  return Switch(context, arguments, "pause", "is paused: nothing is delivered until tocsin topic resume");
}

Result<int> RunResume(Context& context, const Arguments& arguments) {
  return Switch(context, arguments, "resume", "delivers again");
}

Result<int> RunPurge(Context& context, const Arguments& arguments) {
  const std::string topic = *arguments.Text("TOPIC");
  const auto sure =
      Confirm(arguments.Has("yes"), fmt::format("Remove all scheduled and dead jobs of {}?", Printable(topic)));
  if (!sure) return std::unexpected(sure.error());
  if (!*sure) return kExitNo;
  const auto reply = context.api.Call("POST", TopicPath(topic, "/purge"));
  if (!reply) return std::unexpected(reply.error());
  if (context.out.json()) {
    context.out.Json(*reply);
  } else {
    context.out.Print("{} jobs are removed; what consumers have at the moment stays\n", IntegerOf(*reply, "purged"));
  }
  return kExitOk;
}

Result<int> RunDrop(Context& context, const Arguments& arguments) {
  const std::string topic = *arguments.Text("TOPIC");
  const auto sure = Confirm(arguments.Has("yes"), fmt::format("Remove {} with all its jobs?", Printable(topic)));
  if (!sure) return std::unexpected(sure.error());
  if (!*sure) return kExitNo;
  const auto reply = context.api.Call("DELETE", TopicPath(topic));
  if (!reply) return std::unexpected(reply.error());
  if (context.out.json()) {
    context.out.Json(*reply);
  } else {
    context.out.Print("{} is removed\n", Printable(topic));
  }
  return kExitOk;
}

}  // namespace

Command TopicPause() {
  return {
      .name = "topic pause",
      .summary = "stops delivering the jobs of a topic",
      .details = "All else goes on: jobs are accepted, become due, and wait.",
      .positionals = {kTopic},
      .examples = {{"topic pause orders", "while the database behind the consumers is being moved"}},
      .no = "there is no such topic",
      .run = RunPause,
  };
}

Command TopicResume() {
  return {
      .name = "topic resume",
      .summary = "delivers the jobs of a paused topic again",
      .positionals = {kTopic},
      .examples = {{"topic resume orders", "what became due meanwhile leaves at once"}},
      .no = "there is no such topic",
      .run = RunResume,
  };
}

Command TopicPurge() {
  return {
      .name = "topic purge",
      .summary = "removes the scheduled and dead jobs of a topic",
      .details = "Jobs that consumers have at the moment stay. Asks first, on a terminal.",
      .positionals = {kTopic},
      .flags = {YesFlag()},
      .examples = {{"topic purge orders --yes", "all that was still to come is gone for good"}},
      .no = "there is no such topic, or the question was answered with no",
      .run = RunPurge,
  };
}

Command TopicDrop() {
  return {
      .name = "topic drop",
      .summary = "removes a topic with all its jobs",
      .details = "Asks first, on a terminal.",
      .positionals = {kTopic},
      .flags = {YesFlag()},
      .examples = {{"topic drop orders --yes", "jobs, settings and figures are gone for good"}},
      .no = "there is no such topic, or the question was answered with no",
      .run = RunDrop,
  };
}

}  // namespace tocsin::cli
