"""What is measured: a server, set in one way, through one client. The rates are rough figures of a small machine (two cores); they
only size the runs, so that each lasts about as long as the others, and foretell how long the whole takes."""

import dataclasses
import os
import pathlib
import typing

import receivers
import servers

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = pathlib.Path(os.environ.get("TOCSIN_BIN_DIR", ROOT / "build/release/bin"))
OURS = ("tocsin-resp", "tocsin-http")  # on the embedded store
ON_REDIS = {sync: f"tocsin-redis-{sync}" for sync in ("always", "everysec")}
TWO_NODES = "tocsin-redis-two"
WITH_REPLICA = "tocsin-redis-replica"  # which has everything before it is answered
RECIPE_CONSUMERS = 4  # of the recipe (bench/load/redis.cc), and so of what is compared with it
WEBHOOK_BATCH = 100
PUSHED = {sink: f"tocsin-push-{sink}" for sink in ("kafka", "rabbitmq", "rabbitmq-ram", "webhook", "webhook-batch")}
REDIS_ALWAYS = "redis-hash-always"
REDIS_EVERYSEC = "redis-hash-everysec"


@dataclasses.dataclass(frozen=True)
class Subject:
    name: str
    title: str
    durability: str  # what a power cut may take
    settings: str
    client: str  # load_bench, node or go
    driver: str
    make: typing.Callable  # folder -> Server
    needs: str  # the key in what provision.find returns
    submit_per_s: int
    drain_per_s: int
    life_per_s: int
    door: str = "default"
    note: str = ""
    consumers: int = 0  # 0: as many as the driver does best with

    @property
    def ours(self):
        """Tocsin, on whichever store."""
        return self.embedded or self.on_redis

    @property
    def embedded(self):
        return self.name in OURS

    @property
    def pushes(self):
        return self.name in PUSHED.values()

    @property
    def on_redis(self):
        return self.name in (TWO_NODES, WITH_REPLICA, *ON_REDIS.values())


def _tocsin(door, submit, drain, life):
    return Subject(f"tocsin-{door}", f"Tocsin over {door.upper()}", "fsync", servers.Tocsind.settings, "load_bench",
                   f"tocsin-{door}", lambda folder: servers.Tocsind(folder, PROGRAMS), "tocsin", submit, drain, life, door)


def _tocsin_on_redis(name, sync, nodes, submit, drain, life, replica=False):
    told = {"always": "fsync"}.get(sync, sync)
    title = f"Tocsin on Redis{', two nodes' if nodes == 2 else ''}, {sync}{', waits for a replica' if replica else ''}"
    return Subject(name, title, told, servers.TocsinOnRedis.describe(sync, nodes, replica), "load_bench", "tocsin-resp",
                   lambda folder: servers.TocsinOnRedis(folder, PROGRAMS, sync, nodes, replica), "tocsin-redis", submit, drain,
                   life, "resp",
                   note="CPU, memory and bytes written are of tocsind and redis-server together", consumers=RECIPE_CONSUMERS)


def _pushed(sink, title, settings, make, drain):
    return Subject(PUSHED[sink], f"Tocsin to {title}", "fsync", settings, "load_bench", "tocsin-push",
                   lambda folder: receivers.Pushed(folder, PROGRAMS, make), "push-" + sink.split("-")[0], 700_000, drain, drain, "resp",
                   note=servers.Tocsind.settings)


def _webhook(batch):
    return lambda folder, programs: receivers.Webhook(folder, programs, batch)


def _rabbitmq(lazy):
    return lambda folder, programs: receivers.RabbitMq(folder, programs, lazy)


def _redis(layout, sync, submit, drain, life):
    told = {"always": "fsync", "everysec": "everysec", "none": "none"}[sync]
    what = {"hash": "a hash per job", "slot": "a hash per slot"}[layout]
    return Subject(f"redis-{layout}-{sync}", f"Redis recipe, {what}, {sync}", told, servers.Redis.describe(sync), "load_bench",
                   f"redis-{layout}", lambda folder: servers.Redis(folder, sync), "redis", submit, drain, life,
                   note="Lua scripts of our own, the usual recipe")


def _beanstalkd(name, sync_ms, durability, submit, drain, life):
    return Subject(f"beanstalkd-{name}", f"beanstalkd, {name}", durability, servers.Beanstalkd.describe(sync_ms), "load_bench",
                   "beanstalkd", lambda folder: servers.Beanstalkd(folder, sync_ms), "beanstalkd", submit, drain, life,
                   note="resolution of one second")


def _bullmq(sync, submit, drain, life):
    return Subject(f"bullmq-{sync}", f"BullMQ on Redis, {sync}", {"always": "fsync"}.get(sync, sync), servers.Redis.describe(sync),
                   "node", "bullmq", lambda folder: servers.Redis(folder, sync), "bullmq", submit, drain, life,
                   note="addBulk of 1000 on 4 connections, 2 workers with concurrency 100")


def _asynq(sync, submit, drain, life):
    return Subject(f"asynq-{sync}", f"asynq on Redis, {sync}", {"always": "fsync"}.get(sync, sync), servers.Redis.describe(sync), "go",
                   "asynq", lambda folder: servers.Redis(folder, sync), "asynq", submit, drain, life,
                   note="one task a call from 50 goroutines (it has no bulk call), 50 workers, checks every 100 ms; whole seconds")


SUBJECTS = [
    _tocsin("resp", 700_000, 500_000, 400_000),
    _tocsin("http", 500_000, 400_000, 200_000),
    _tocsin_on_redis(ON_REDIS["always"], "always", 1, 120_000, 90_000, 50_000),
    _tocsin_on_redis(ON_REDIS["everysec"], "everysec", 1, 140_000, 110_000, 60_000),
    _tocsin_on_redis(TWO_NODES, "everysec", 2, 140_000, 110_000, 60_000),
    _tocsin_on_redis(WITH_REPLICA, "everysec", 1, 100_000, 80_000, 40_000, replica=True),
    _pushed("kafka", "Kafka", receivers.Kafka.settings, receivers.Kafka, 200_000),
    _pushed("rabbitmq", "RabbitMQ, lazy queue", receivers.RabbitMq.describe(True), _rabbitmq(True), 20_000),
    _pushed("rabbitmq-ram", "RabbitMQ, queue in memory", receivers.RabbitMq.describe(False), _rabbitmq(False), 12_000),
    _pushed("webhook", "a webhook", receivers.Webhook.describe(1), _webhook(1), 90_000),
    _pushed("webhook-batch", "a webhook, batches", receivers.Webhook.describe(WEBHOOK_BATCH), _webhook(WEBHOOK_BATCH), 200_000),
    _redis("hash", "always", 70_000, 70_000, 35_000),
    _redis("hash", "everysec", 120_000, 120_000, 60_000),
    _redis("hash", "none", 140_000, 140_000, 70_000),
    _redis("slot", "always", 70_000, 70_000, 35_000),
    _redis("slot", "everysec", 120_000, 120_000, 60_000),
    _beanstalkd("f0", 0, "fsync", 4_000, 3_000, 2_000),
    _beanstalkd("f1000", 1000, "everysec", 60_000, 40_000, 20_000),
    _beanstalkd("memory", None, "none", 80_000, 50_000, 25_000),
    _bullmq("always", 9_000, 5_000, 4_000),
    _bullmq("everysec", 12_000, 7_000, 5_000),
    Subject("graphile", "graphile-worker on PostgreSQL", "fsync", servers.Postgres.settings, "node", "graphile", servers.Postgres,
            "graphile", 60_000, 12_000, 7_000,
            note="add_jobs in SQL, 1000 a call on 4 connections; local queue of 500, concurrency 24, polls every 50 ms"),
    Subject("rabbitmq", "RabbitMQ, TTL queues", "fsync", servers.RabbitMq.settings, "node",
            "rabbitmq", servers.RabbitMq, "rabbitmq", 15_000, 20_000, 7_000,
            note="confirms for 1000 at a time on 4 channels, prefetch 2000, acks for up to 100; delays of whole seconds; "
                 "moving a due message to the work queue is not confirmed"),
    _asynq("always", 6_000, 1_500, 1_000),
    _asynq("everysec", 25_000, 6_000, 5_000),
    # Never measured so far: its module could not be had. Listed, so that the gap can be seen.
    Subject("lmstfy", "lmstfy on Redis", "everysec", "lmstfy-server", "go", "lmstfy", None, "lmstfy", 1, 1, 1),
]

BY_NAME = {subject.name: subject for subject in SUBJECTS}
