#include "base/check.h"
#include "frontend/http/handlers.h"
#include "frontend/shared/handlers.h"

namespace tocsin::http {
namespace {

using api::VerbId;

/// What is not here is served by a shared handler.
constexpr std::pair<VerbId, Handler> kOwnHandlers[] = {
    {VerbId::kSubmitJobs, SubmitJobs}, {VerbId::kReserveJobs, ReserveJobs}, {VerbId::kAckJobs, AckJobs},
    {VerbId::kNackJobs, NackJobs},     {VerbId::kExtendJobs, ExtendJobs},   {VerbId::kCancelJob, CancelJob},
    {VerbId::kAmendJob, AmendJob},     {VerbId::kFireJob, FireJob},         {VerbId::kCountJob, CountJob},
    {VerbId::kShowStats, ShowStats},   {VerbId::kShowOpenApi, ShowOpenApi}, {VerbId::kShowHealth, ShowHealth},
    {VerbId::kShowReady, ShowReady},   {VerbId::kShowMetrics, ShowMetrics},
};

Handler HandlerOf(VerbId verb) {
  const auto* const own = std::ranges::find(kOwnHandlers, verb, &std::pair<VerbId, Handler>::first);
  if (own != std::end(kOwnHandlers)) return own->second;
  TOCSIN_CHECK(shared::HandlerOf(verb) != nullptr);
  return RunShared;
}

}  // namespace

Route RouteOf(VerbId id) {
  const api::Verb& verb = VerbOf(id);
  std::vector<std::string_view> query;
  for (const api::Field& field : verb.fields) {
    if (field.in == api::In::kQuery) query.push_back(field.name);
  }
  return {
      boost::beast::http::string_to_verb(verb.Method()), verb.Path(), verb.access, HandlerOf(id), std::move(query), &verb};
}

Router MakeRouter(bool virtual_clock) {
  std::vector<Route> routes;
  for (const api::Verb& verb : api::Verbs()) {
    if (virtual_clock || !verb.needs_virtual_clock) routes.push_back(RouteOf(verb.id));
  }
  return Router(std::move(routes));
}

}  // namespace tocsin::http
