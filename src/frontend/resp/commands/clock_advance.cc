#include "frontend/resp/commands/commands.h"

namespace tocsin::resp {
namespace {

void Run(Call& call) {
  const Context& context = call.session.server().context();
  if (context.virtual_clock == nullptr) {
    return call.Fail({Code::kUnknownCommand, "CLOCK.ADVANCE needs a server with clock = \"virtual\"", {}});
  }
  const auto by = Number("ms", call.args[0], 0, kDelayMax.count());
  if (!by) return call.Fail(by.error());
  context.virtual_clock->Advance(Millis(*by));
  context.service.ClockMoved(LoopOf(call), call.session.pipeline().Hold(call).Then([&context](Answer& answer) mutable {
    answer.writer().Integer(ToMs(context.clock.Now().utc));
    answer.Done();
  }));
}

}  // namespace

const Command kClockAdvance = {
    .name = "CLOCK.ADVANCE",
    .syntax = "ms",
    .summary = "Moves a virtual clock on: for tests.",
    .args_min = 1,
    .args_max = 1,
    .access = auth::Access::kNodeAdmin,
    .holds = true,
    .waits = true,  // a submit that is on its way to another shard would see the new time
    .writes = true,
    .run = Run,
};

}  // namespace tocsin::resp
