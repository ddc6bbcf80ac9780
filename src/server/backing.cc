#include "server/backing.h"

#include <utility>

#include "server/journal_backing.h"
#include "server/redis_backing.h"

namespace tocsin {

std::unique_ptr<Backing> MakeBacking(BackingParts parts) {
  if (parts.config.store == StoreKind::kRedis) return std::make_unique<RedisBacking>(std::move(parts));
  return std::make_unique<JournalBacking>(std::move(parts));
}

}  // namespace tocsin
