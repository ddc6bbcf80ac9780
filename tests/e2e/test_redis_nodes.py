"""Three nodes on one Redis: whatever is done through one of them is done for all."""

import itertools
import threading

import pytest
import zookeeper_server
from cluster_monitor import CommandCount
from cluster_world import GROUPS, PREFIX, Rig, poll
from conftest import now_ms, run
from doors import DOORS
from programs import hold
from resp_doors import RESP_DOORS
from torture_wires import RespWire

DAY_MS = 86_400_000
LONG_SESSION_S = 10  # whatever is faster than that was not waited for


@pytest.fixture(scope="module")
def rig(tmp_path_factory):
    one = Rig(tmp_path_factory.mktemp("nodes"), cut=False)
    yield one
    one.close()


@pytest.fixture(scope="module")
def world(rig):
    return rig.world(rig.single(), session_s=LONG_SESSION_S)


@pytest.fixture(scope="module")
def doors(world):
    """Two ways into each node."""
    return [kind(seat.server) for seat in world.seats.values() for kind in (DOORS["httpx"], RESP_DOORS["redis-py"])]


@pytest.fixture
def topic(request, world):
    name = request.node.name
    world.await_topic(name, slots=4)
    return name


def test_a_job_of_any_node_reaches_a_consumer_of_any_node(doors, topic):
    for number, (here, there) in enumerate(itertools.product(doors, doors)):
        job = here.submit(topic, payload=str(number))
        delivered = there.reserve(topic, wait_ms=5000)
        assert [(one["id"], one["payload"], one["attempt"]) for one in delivered] == [(job["id"], str(number), 1)]
        assert here.ack(topic, delivered[0]["token"]) == ["ok"], "settled through another node than it came from"
        assert there.ack(topic, delivered[0]["token"]) == ["stale"]


def test_a_parked_reserve_hears_of_a_job_of_another_node_at_its_time(world, topic):
    """Late by more than some ms would mean that it came with the scan of each second."""
    a, b, _ = world.seats.values()
    lateness_ms = []
    for _ in range(12):
        arrived = []

        def park():
            wire = RespWire(b.server, topic)
            arrived.append((wire.reserve(max=1, wait_ms=10_000, lease_ms=5000), now_ms()))
            wire.settle("ack", [job["token"] for job in arrived[0][0]])
            wire.close()

        parked = threading.Thread(target=park)
        parked.start()
        due_ms = a.call("POST", f"/topics/{topic}/jobs", {"payload": "x", "delay_ms": 300})["jobs"][0]["due_ms"]
        parked.join(15)
        [(jobs, at_ms)] = arrived
        assert jobs[0]["due_ms"] == due_ms
        assert at_ms >= due_ms, "early"
        lateness_ms.append(at_ms - due_ms)
    print(f"\n  late by {sorted(lateness_ms)} ms")
    assert max(lateness_ms) < 1000
    assert sum(late < 250 for late in lateness_ms) >= 10, "the others found it with the scan of each second"


def test_jobs_can_be_looked_up_and_changed_through_any_node(doors, topic):
    for here, there in zip(doors, doors[1:] + doors[:1]):
        for own in ({"id": "own"}, {"id": "keyed", "key": "k"}, {}):
            job_id = here.submit(topic, payload="x", delay_ms=DAY_MS, **own)["id"]
            key = own.get("key")
            assert there.get(topic, job_id, key=key)["state"] == "scheduled"
            assert there.amend(topic, job_id, key=key, payload="y")["outcome"] == "amended"
            assert here.get(topic, job_id, key=key)["payload"] == "y"
            assert there.cancel(topic, job_id, key=key) == "cancelled"
            assert here.cancel(topic, job_id, key=key) == "unknown"
        here.submit(topic, id="fired", delay_ms=DAY_MS)
        assert there.fire(topic, "fired") == "fired"
        here.submit(topic, id="counted", trigger="count", count=2)
        assert there.count(topic, "counted", "1") == {"outcome": "counted", "left": 1}
        assert here.count(topic, "counted", "1") == {"outcome": "repeated", "left": 1}
        assert here.count(topic, "counted", "2") == {"outcome": "fired", "left": 0}
        got = []
        while len(got) < 2:
            got += there.reserve(topic, max=2, wait_ms=5000)
        assert sorted(job["id"] for job in got) == ["counted", "fired"]
        assert here.ack(topic, *[job["token"] for job in got]) == ["ok", "ok"]


def test_settings_take_effect_everywhere_within_two_seconds(world, doors, topic):
    here, *others = doors[0], *doors[2::2]
    here.submit(topic, payload="x")

    def all_say(**fields):
        def said():
            return all(all(door.topic(topic)[name] == value for name, value in fields.items()) for door in others)

        return poll(said, 2, f"{fields} on every node")[1]

    here.pause(topic)
    took = [all_say(paused=True)]
    assert all(door.reserve(topic) == [] for door in others), "paused everywhere"
    here.set_topic(topic, lease_ms=4321, max_attempts=3)
    took.append(all_say(lease_ms=4321, max_attempts=3))
    others[0].resume(topic)
    took.append(poll(lambda: here.topic(topic)["paused"] is False, 2, "the resume")[1])
    [job] = others[1].reserve(topic, wait_ms=2000)
    assert 0 < job["lease_deadline_ms"] - now_ms() <= 4321
    others[1].ack(topic, job["token"])
    others[1].drop(topic)
    took.append(poll(lambda: topic not in [one["topic"] for one in here.topics()], 2, "the drop")[1])
    print(f"\n  seen everywhere after {', '.join(f'{s * 1000:.0f}' for s in took)} ms")


def test_two_nodes_that_change_one_topic_at_once_both_succeed(doors, topic):
    def change(door, **settings):
        for _ in range(20):
            door.set_topic(topic, **settings)

    changes = [dict(max_attempts=7), dict(lease_ms=7777), dict(backoff_base_ms=77)]
    threads = [threading.Thread(target=change, args=(door,), kwargs=one) for door, one in zip(doors[::2], changes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    wanted = {name: value for one in changes for name, value in one.items()}
    poll(lambda: all({name: door.topic(topic)[name] for name in wanted} == wanted for door in doors), 3, "all changes")


def test_capacity_holds_over_all_nodes(world, doors, topic):
    capacity = 40
    doors[0].set_topic(topic, capacity_jobs=capacity)
    poll(lambda: all(door.topic(topic)["capacity_jobs"] == capacity for door in doors), 3, "the capacity on every node")
    outcomes = []

    def fill(door):
        for _ in range(30):
            outcomes.append(door.submit(topic, payload="x", delay_ms=DAY_MS)["outcome"])

    threads = [threading.Thread(target=fill, args=(door,)) for door in doors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(outcomes) == 30 * len(doors) and set(outcomes) <= {"accepted", "over_capacity"}
    assert outcomes.count("accepted") <= capacity, "never exceeded"

    def full():
        """What a slot may hold and does not use goes to the others: in the end all of the capacity is there."""
        doors[1].submit(topic, delay_ms=DAY_MS)
        stored = len(doors[0].list(topic))
        assert stored <= capacity
        return stored == capacity

    poll(full, 10, "a topic that is full to the last job")
    for job in doors[2].list(topic)[:5]:
        assert doors[3].cancel(topic, job["id"]) == "cancelled"
    poll(full, 10, "the room of those that were cancelled")
    assert all(door.submit(topic, delay_ms=DAY_MS)["outcome"] == "over_capacity" for door in doors)


def test_all_nodes_say_the_same_of_the_cluster(world, doors):
    (members, owners), _ = world.await_settled(10)
    assert len(members) == 3 and len(owners) == GROUPS
    assert owners == world.owners_in_redis()
    shares = [sum(owner == member for owner, _ in owners.values()) for member in members]
    assert min(shares) > 0, "everyone looks after something"
    for door in doors:
        report = door.cluster()
        assert report["store"] == "redis"
        assert [member["id"] for member in report["members"] if member["self"]] == [report["node"]]
        assert report["coordinator"]["connected"] and all(server["connected"] for server in report["servers"])
        assert [server["endpoint"] for server in report["servers"]] == [world.redis.address]


def metrics_of(world, name):
    """Of each node that serves."""
    return {seat.name: seat.metric(f"tocsin_{name}") for seat in world.serving()}


def test_a_node_that_stops_hands_over_at_once(world):
    """And one that joins takes no groups but its own."""
    (_, before), _ = world.await_settled(10)
    assert sum(metrics_of(world, "owned_groups").values()) == GROUPS
    taken = metrics_of(world, "takeovers_total")
    leaver = world.seats["c"]
    gone = leaver.cluster()["node"]
    leaver.serving = False
    assert leaver.server.stop() == 0, leaver.errors()
    (members, between), took = world.await_settled(LONG_SESSION_S / 2)
    assert gone not in members
    moved = {group for group in between if between[group] != before[group]}
    assert moved == {group for group, (owner, _) in before.items() if owner == gone}, "only what the leaver had"
    assert all(between[group][1] > before[group][1] for group in moved)
    assert sum(metrics_of(world, "owned_groups").values()) == GROUPS
    taken_between = metrics_of(world, "takeovers_total")
    assert sum(taken_between[name] - taken[name] for name in taken_between) == len(moved)
    leaver.start()
    (members, after), took_back = world.await_settled(LONG_SESSION_S / 2)
    joined = leaver.cluster()["node"]
    changed = {group for group in after if after[group] != between[group]}
    assert changed and changed == {group for group, (owner, _) in after.items() if owner == joined}
    assert sum(metrics_of(world, "owned_groups").values()) == GROUPS
    assert metrics_of(world, "takeovers_total") == {**taken_between, "c": len(changed)}
    print(f"\n  {len(moved)} groups handed over within {took:.2f} s, {len(changed)} to the new one in {took_back:.2f} s")


def test_a_node_whose_registration_is_lost_takes_all_its_groups_anew(rig):
    """And its metrics say so."""
    world = rig.world(rig.single("redis-lost"), "lost", names="l", session_s=LONG_SESSION_S)
    [seat] = world.seats.values()
    before = world.owners_in_redis()
    assert (seat.metric("tocsin_owned_groups"), seat.metric("tocsin_takeovers_total")) == (GROUPS, GROUPS)
    members = f"{{{PREFIX}:members}}"
    world.redis.ask("DEL", f"{members}:lease", f"{members}:record")
    world.redis.ask("PUBLISH", members, "a test")
    poll(lambda: seat.metric("tocsin_takeovers_total") == 2 * GROUPS, 10, "a second takeover of every group")
    poll(lambda: all(world.owners_in_redis()[group] == (node, epoch + 1) for group, (node, epoch) in before.items()), 10,
         "new epochs of all groups")
    assert seat.metric("tocsin_owned_groups") == GROUPS


def test_the_metrics_of_a_node_tell_of_its_slots_and_of_redis(world, topic):
    jobs = [{"payload": "x", "key": str(number), "delay_ms": DAY_MS} for number in range(100)]  # in all of its slots
    world.call("POST", f"/topics/{topic}/jobs", {"jobs": jobs})

    def owned_slots(seat):
        return sum(seat.metric(f'tocsin_owned_slots{{shard="{shard}"}}') for shard in range(2))

    def same():
        """Each node's own figure, and what it says of itself in the report: both from the scans of a second."""
        reports = {seat: seat.cluster() for seat in world.serving()}
        said = {seat: next(one["slots"] for one in report["members"] if one["self"]) for seat, report in reports.items()}
        return sum(said.values()) >= 4 and all(owned_slots(seat) == slots for seat, slots in said.items())

    poll(same, 10, "the slots of every node in its metrics")
    for seat in world.serving():
        assert all(seat.metric(f"tocsin_redis_round_trip_seconds_{part}") > 0 for part in ("count", "sum"))


def idle_world(rig, name, **options):
    """One node, 1,000 slots over 100 topics, a job for tomorrow in each slot or so."""
    world = rig.world(rig.single(f"redis-{name}"), name, names=name[0], session_s=6, **options)
    [seat] = world.seats.values()
    for number in range(100):
        slots = 16 if number % 2 else 4
        seat.call("PUT", f"/topics/idle-{number}", {"slots": slots})
        jobs = [{"payload": "x", "key": str(key), "delay_ms": DAY_MS} for key in range(slots)]
        seat.call("POST", f"/topics/idle-{number}/jobs", {"jobs": jobs})
    return world


def commands_a_second(worlds, within_s=10):
    """What the nodes of each world send to Redis."""
    watches = {name: CommandCount(world.redis).start() for name, world in worlds.items()}
    hold(within_s)
    for name, watch in watches.items():
        watch.close()
        print(f"\n  {name}: {dict(watch.counts)} in {within_s} s")
    return {name: sum(watch.counts.values()) / within_s for name, watch in watches.items()}


def test_an_idle_node_sends_at_most_100_commands_a_second(rig):
    """With members in Redis and in ZooKeeper, and with as many shards as there may be."""
    worlds = {"redis": idle_world(rig, "redis"), "shards": idle_world(rig, "shards", flags=["--shards", "64"])}
    if not zookeeper_server.why_not():
        worlds["zookeeper"] = idle_world(rig, "zookeeper", zookeeper=rig.zookeeper())
    for _ in range(3):  # what was submitted is told to other nodes for some seconds: it is not idle at once
        rates = commands_a_second(worlds)
        if max(rates.values()) <= 100:
            break
    assert 0 < min(rates.values()) and max(rates.values()) <= 100
    assert "zookeeper" in worlds, zookeeper_server.why_not()


def test_a_node_that_dies_is_remembered_as_lost_and_one_that_leaves_is_not(node, redis_single, client):
    flags = ["--session-timeout", "2s"]
    stays, leaves, dies = (node(name, redis_single, *flags) for name in ("stays", "leaves", "dies"))
    url = stays.url + "/v1/cluster"
    names = lambda: {member["id"].rsplit("-", 1)[0] for member in client.get(url).json()["members"]}
    poll(lambda: names() == {"stays", "leaves", "dies"}, 20, lambda: f"{names()}")
    assert leaves.stop() == 0
    poll(lambda: names() == {"stays", "dies"}, 20, lambda: f"{names()}")
    assert client.get(url).json()["lost"] == []
    killed_ms = now_ms()
    dies.kill()
    poll(lambda: names() == {"stays"}, 20, lambda: f"{names()}")
    [lost] = client.get(url).json()["lost"]
    assert lost["id"].startswith("dies-") and lost["http"].endswith(str(dies.port))
    assert killed_ms - 3000 <= lost["heard_ms"] <= killed_ms + 1000
    shown = run("tocsin", "cluster", "--server", stays.url).stdout
    assert "LOST NODE" in shown and lost["id"] in shown and " ago" in shown
