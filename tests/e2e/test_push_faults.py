"""Webhooks whose receiver dies, hangs, is slow, refuses or answers late, and a server that dies: nothing is lost, every
duplicate has its cause, no attempt is beyond the maximum, memory stays bounded, and a topic with a healthy receiver does
not notice."""

import re

import pytest
from conftest import Server
from programs import wait_for
from push_world import BEFORE_S, FLAGS, MS, Lives, World, outcomes, torture, tried_again, webhook

pytest_plugins = ["push_fixtures"]
pytestmark = pytest.mark.alone

WAITING = 120_000  # jobs
PAYLOAD = "x" * 500
GROWTH_MAX = 24 << 20


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("faults") / "data", *FLAGS)
    one = World(server)
    yield one
    one.close()
    assert server.stop() == 0, "".join(server.errors)


@tried_again
def test_a_receiver_that_is_killed(world, healthy, healthy_receiver, receiver, name):
    broken = webhook(receiver, name, impatient=True)
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault("receiver"):
            receiver.kill()
            load.hold(2)
            receiver.start()
    report = world.judge(load, [healthy], healthy_receiver)[name]
    assert outcomes(world.client, world.server, name, "retry") > 0, "the fault was met"
    assert report["dead"] == 0, "a receiver that cannot be reached costs no attempts"


@tried_again
def test_a_receiver_that_hangs(world, healthy, healthy_receiver, receiver, name):
    in_flight = 40
    broken = webhook(receiver, name, rate=20, impatient=True, delivery={"in_flight": in_flight})
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault():
            receiver.behave(after_s=None)
            load.hold(4.5)
            receiver.behave()
    report = world.judge(load, [healthy], healthy_receiver)[name]
    assert report["more than once"] > 0 and report["dead"] > 0
    assert all("no answer in time" in one.reason for one in broken.dead.values())
    [(began, ended)] = load.windows
    hung = [one for one in broken.arrivals(broken) if began <= one.at_ns < ended and one.confirmed_ns is None]
    assert most_at_once(hung, 1000 * MS) <= in_flight


def most_at_once(arrivals, lasts_ns):
    changes = sorted([(one.at_ns, 1) for one in arrivals] + [(one.at_ns + lasts_ns * 9 // 10, -1) for one in arrivals])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


@tried_again
def test_a_receiver_that_is_ten_times_slower(world, healthy, healthy_receiver, receiver, name):
    receiver.behave(after_s=0.01)
    broken = webhook(receiver, name, delivery={"in_flight": 8})
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault():
            receiver.behave(after_s=0.1)  # 80 a second: they pile up
            load.hold(3)
            assert world.figures(broken)["ready"] > 100, "the fault was met"
            receiver.behave(after_s=0.01)
    report = world.judge(load, [healthy], healthy_receiver)[name]
    assert report["arrivals"] == report["jobs"], "being slow is no reason to send anything twice"
    assert report["most attempts"] == 1


@tried_again
def test_a_receiver_that_answers_500(world, healthy, healthy_receiver, receiver, name):
    broken = webhook(receiver, name, impatient=True)
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault():
            receiver.behave(status=500)
            load.hold(2.5)
            receiver.behave()
    report = world.judge(load, [healthy], healthy_receiver)[name]
    assert report["more than once"] > 100 and report["dead"] > 10
    came = broken.arrivals(broken)
    for job_id, letter in broken.dead.items():
        assert letter.reason == "the receiver answered 500 As Told"
        assert [one.attempt for one in came if one.id == job_id] == [1, 2, 3], "each attempt was seen"


@tried_again
def test_a_receiver_that_answers_after_the_lease(world, healthy, healthy_receiver, receiver, name):
    broken = webhook(receiver, name, lease_ms=3000, delivery={"timeout_ms": 10_000, "in_flight": 1000})
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault():
            receiver.behave(after_s=4)
            load.hold(1)
            receiver.behave()
            load.hold(4.5)
    report = world.judge(load, [healthy], healthy_receiver)[name]
    late = [one for one in broken.arrivals(broken) if one.confirmed_ns and one.confirmed_ns - one.at_ns > 3500 * MS]
    assert len(late) > 50, "the fault was met"
    assert report["arrivals"] == report["jobs"], "a lease is extended for as long as the receiver may answer"


@tried_again
def test_a_receiver_that_answers_after_the_time_out(world, healthy, healthy_receiver, receiver, name):
    broken = webhook(receiver, name, impatient=True, delivery={"in_flight": 100})
    with world.load(healthy, broken) as load:
        load.hold(BEFORE_S)
        with load.fault():
            receiver.behave(after_s=1.2)
            load.hold(4)
            receiver.behave()
    report = world.judge(load, [healthy], healthy_receiver)[name]
    assert report["more than once"] > 50


@pytest.fixture
def lives(tmp_path):
    one = Lives(tmp_path / "data")
    yield one
    one.close()


def test_a_server_that_is_killed_with_jobs_in_flight(lives, receiver, name):
    receiver.behave(after_s=0.3)
    pushed = webhook(receiver, name, delivery={"in_flight": 60})
    with lives.world.load(pushed) as load:
        for _ in range(3):
            load.hold(1)
            with load.fault("server"):
                lives.kill()
    report = lives.world.judge(load)[name]
    assert report["more than once"] >= 30, "what was in flight came back"
    assert report["more than once"] <= 3 * 60 + 3 * 60, "and hardly anything else"


def test_a_server_that_stood_still_past_its_leases(lives, receiver, name):
    """The receiver answers only when the leases have ended: what it says then is stale, and the jobs come once more."""
    world, in_flight = lives.world, 60
    receiver.behave(after_s=8)
    pushed = webhook(receiver, name, lease_ms=3000, delivery={"in_flight": in_flight, "timeout_ms": 20_000})
    with world.load(pushed) as load:
        wait_for(lambda: world.figures(pushed)["leased"] == in_flight, 3, "as many requests as may be in flight")
        with load.fault("server"):
            lives.server.pause()
            load.hold(4)
            lives.server.resume()
            wait_for(lambda: world.figures(pushed)["expired"] > 0, 3, "a lease that has run out")
        receiver.behave()
    report = world.judge(load)[name]
    expired = pushed.figures["expired"]
    assert expired == in_flight, "every lease had run out, and no other"
    assert report["more than once"] == expired and report["most attempts"] == 2
    wait_for(lambda: outcomes(world.client, world.server, name, "stale") == expired, 10, "first answers that all came too late")


def rss(server):
    text = open(f"/proc/{server.process.pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) << 10


def submit_due(world, topic, count):
    for begin in range(0, count, 1000):
        jobs = [{"id": f"{topic}.{begin + i}", "payload": PAYLOAD} for i in range(1000)]
        answer = world.client.post(world.server.topic(topic) + "/jobs", json={"jobs": jobs})
        assert answer.status_code == 201, answer.text


def test_memory_does_not_grow_while_many_due_jobs_wait_for_a_dead_receiver(lives, receiver, name):
    world, in_flight = lives.world, 200
    delivery = {"sink": "webhook", "url": receiver.url, "timeout_ms": 1000, "in_flight": in_flight, "outage_ms": 0}
    backoff = {"max_attempts": 1000, "backoff_base_ms": 1000, "backoff_max_ms": 1000}
    answer = world.client.put(world.server.topic(name), json={"delivery": delivery, "paused": True, **backoff})
    assert answer.status_code == 201, answer.text
    submit_due(world, name, WAITING)
    topic = webhook(receiver, name)
    full = rss(lives.server)
    receiver.behave(after_s=None)
    assert world.client.post(world.server.topic(name) + "/resume").status_code == 200
    most = [full]

    def nacked(count):
        most.append(rss(lives.server))
        return world.figures(topic)["nacked"] >= count

    wait_for(lambda: nacked(5 * in_flight), 30, "five rounds of requests that hang")
    hung = [ns for ns, *_ in receiver.record()[0]]
    receiver.kill()
    refused = world.figures(topic)["nacked"]
    wait_for(lambda: nacked(refused + 10_000), 30, "ten thousand attempts without a receiver")
    left = world.figures(topic)
    assert left["scheduled"] + left["leased"] + left["dead"] == WAITING, left
    assert left["acked"] == 0
    print(f"\n{WAITING} due jobs in {full >> 20} MiB, at most {max(most) >> 20} MiB with a dead receiver; {len(hung)} requests hung")
    assert max(most) - full <= GROWTH_MAX


@pytest.mark.torture
def test_faults_again_and_again(lives, healthy, receiver, name):
    broken = webhook(receiver, name, impatient=True)

    def misbehave(choose, **how):
        receiver.behave(**how)
        load.hold(choose.uniform(0.2, 3))
        receiver.behave()

    def kill(choose):
        receiver.kill()
        load.hold(choose.uniform(0, 2))
        receiver.start()

    faults = [
        ("receiver", kill),
        (None, lambda choose: misbehave(choose, after_s=None)),
        (None, lambda choose: misbehave(choose, status=choose.choice((500, 503, 429)))),
        (None, lambda choose: misbehave(choose, after_s=choose.uniform(0.1, 1.5))),
    ]
    with lives.world.load(healthy, broken) as load:
        torture(load, lives, faults)
    lives.world.judge(load)
