// `tocsin dead list|redrive|purge`: jobs whose attempts are used up, or that were refused for good.
#include "cli/verbs/list.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

Result<int> RunList(Context& context, const Arguments& arguments) { return ListJobs(context, arguments, "dead"); }

Result<int> RunRedrive(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Call("POST", TopicPath(*arguments.Text("TOPIC"), "/dead/redrive"));
  if (!reply) return std::unexpected(reply.error());
  if (context.out.json()) {
    context.out.Json(*reply);
  } else {
    context.out.Print("{} jobs are due again, with all their attempts\n", IntegerOf(*reply, "redriven"));
  }
  return kExitOk;
}

Result<int> RunPurge(Context& context, const Arguments& arguments) {
  const std::string topic = *arguments.Text("TOPIC");
  const auto sure = Confirm(arguments.Has("yes"), fmt::format("Remove all dead letters of {}?", Printable(topic)));
  if (!sure) return std::unexpected(sure.error());
  if (!*sure) return kExitNo;
  const auto reply = context.api.Call("POST", TopicPath(topic, "/dead/purge"));
  if (!reply) return std::unexpected(reply.error());
  if (context.out.json()) {
    context.out.Json(*reply);
  } else {
    context.out.Print("{} dead letters are removed\n", IntegerOf(*reply, "purged"));
  }
  return kExitOk;
}

}  // namespace

Command DeadList() {
  std::vector<Flag> flags = PageFlags();
  flags.push_back({.name = "reason", .value = "TEXT", .doc = "Only those whose reason has this text within."});
  return {
      .name = "dead list",
      .summary = "shows the dead letters of a topic, and why they died",
      .positionals = {kTopic},
      .flags = std::move(flags),
      .examples = {{"dead list orders", "jobs whose attempts are used up"},
                   {"dead list orders --reason 410 --all", "what the receiver of a webhook answered with 410 Gone"}},
      .no = "there is no such topic",
      .run = RunList,
  };
}

Command DeadRedrive() {
  return {
      .name = "dead redrive",
      .summary = "makes all dead letters of a topic due again",
      .positionals = {kTopic},
      .examples = {{"dead redrive orders", "after what made them fail was mended"}},
      .no = "there is no such topic",
      .run = RunRedrive,
  };
}

Command DeadPurge() {
  return {
      .name = "dead purge",
      .summary = "removes all dead letters of a topic",
      .details = "Asks first, on a terminal.",
      .positionals = {kTopic},
      .flags = {YesFlag()},
      .examples = {{"dead purge orders --yes", "they are gone for good"}},
      .no = "there is no such topic, or the question was answered with no",
      .run = RunPurge,
  };
}

}  // namespace tocsin::cli
