#include "real/redis_servers.h"

namespace tocsin::real {

namespace {

constexpr size_t kKeysAtOnce = 100;

}  // namespace

Result<RedisCluster::Migration> RedisCluster::BeginMigration(int hash_slot, uint16_t to) {
  Result<uint16_t> from = MasterOf(hash_slot);
  if (!from) return std::unexpected(std::move(from).error());
  if (*from == to) return Fail(Code::kInvalidArgument, "{} serves the hash slot {} already", to, hash_slot);
  const Result<std::string> from_id = IdOf(*from);
  const Result<std::string> to_id = IdOf(to);
  if (!from_id || !to_id) return std::unexpected(from_id ? to_id.error() : from_id.error());
  const std::string slot = std::to_string(hash_slot);
  const Login login{.password = options_.password};
  TOCSIN_TRY(MustAsk(to, {"CLUSTER", "SETSLOT", slot, "IMPORTING", *from_id}, login));
  TOCSIN_TRY(MustAsk(*from, {"CLUSTER", "SETSLOT", slot, "MIGRATING", *to_id}, login));
  return Migration{.hash_slot = hash_slot, .from = *from, .to = to};
}

Result<size_t> RedisCluster::MoveKeys(const Migration& migration, size_t count) {
  const Login login{.password = options_.password};
  const std::string slot = std::to_string(migration.hash_slot);
  const Result<Answer> keys = MustAsk(migration.from, {"CLUSTER", "GETKEYSINSLOT", slot, std::to_string(count)}, login);
  if (!keys) return std::unexpected(keys.error());
  if (keys->elements.empty()) return 0;
  std::vector<std::string> command = {"MIGRATE", "127.0.0.1", std::to_string(migration.to), "", "0", "5000"};
  if (!options_.password.empty()) command.insert(command.end(), {"AUTH", options_.password});
  command.emplace_back("KEYS");
  for (const Answer& key : keys->elements) command.push_back(key.text);
  TOCSIN_TRY(MustAsk(migration.from, command, login));
  return keys->elements.size();
}

// The new master first: were it last, the old one would already send clients to a node that does not serve the slot
// yet. Then everybody has to know its epoch: a node that takes the slot next, and has not heard of that epoch, would
// give itself no higher one, and drop the slot with its keys when it hears of it.
Status RedisCluster::EndMigration(const Migration& migration) {
  const Result<std::string> to_id = IdOf(migration.to);
  if (!to_id) return std::unexpected(to_id.error());
  std::vector<uint16_t> told = {migration.to, migration.from};
  for (const uint16_t port : Masters()) {
    if (port != migration.to && port != migration.from) told.push_back(port);
  }
  for (const uint16_t port : told) {
    TOCSIN_TRY(MustAsk(port, {"CLUSTER", "SETSLOT", std::to_string(migration.hash_slot), "NODE", *to_id},
                       {.password = options_.password}));
  }
  return WaitUntilOk();
}

Status RedisCluster::MigrateSlot(int hash_slot, uint16_t to) {
  const Result<Migration> migration = BeginMigration(hash_slot, to);
  if (!migration) return std::unexpected(migration.error());
  Result<size_t> moved = MoveKeys(*migration, kKeysAtOnce);
  while (moved && *moved > 0) moved = MoveKeys(*migration, kKeysAtOnce);
  if (!moved) return std::unexpected(moved.error());
  return EndMigration(*migration);
}

}  // namespace tocsin::real
