#include "cli/text/human_time.h"
#include "cli/verbs/parts.h"
#include "cli/verbs/verbs.h"

namespace tocsin::cli {
namespace {

Result<int> Run(Context& context, const Arguments& arguments) {
  const auto reply = context.api.Post("/v1/clock/advance", {{"ms", arguments.Duration("by")->count()}});
  const Code code = reply ? Code::kInternal : reply.error().code;
  if (code == Code::kNotFound || code == Code::kUnknownCommand) {
    return Fail(Code::kNotFound,
                "the server's clock is the real one: only that of tocsind --clock virtual can be moved");
  }
  if (!reply) return std::unexpected(reply.error());
  if (context.out.json()) {
    context.out.Json(*reply);
  } else {
    context.out.Print("it is {} now\n", ShowMoment(FromMs(IntegerOf(*reply, "now_ms"))));
  }
  return kExitOk;
}

}  // namespace

Command ClockAdvance() {
  return {
      .name = "clock advance",
      .summary = "moves the clock of a server that was started with --clock virtual",
      .details = "For tests. When it answers, all that became due can be reserved.",
      .flags = {{.name = "by", .kind = Kind::kDuration, .value = "DURATION", .doc = "How far.", .required = true}},
      .examples = {{"clock advance --by 30d", "thirty days later, in a second"}},
      .no = "the server's clock is the real one",
      .run = Run,
  };
}

}  // namespace tocsin::cli
