"""Two nodes on one Redis that push one topic: each hands over what its slots hold, in order, and one goes on where the other
has died."""

import pytest
from conftest import now_ms
from histories import payload_of
from programs import wait_for
from push_world import outcomes

pytest_plugins = ["push_fixtures"]

KEYS = 12
JOBS = 600
TOPIC = {"slots": 16, "lease_ms": 3000, "backoff_base_ms": 50, "backoff_max_ms": 200, "max_attempts": 50}


FLAGS = ["--webhook-allow", "127.0.0.1", "--session-timeout", "2s"]


@pytest.fixture
def nodes(node, redis_single):
    return [node(name, redis_single, *FLAGS) for name in "ab"]


def push(client, server, receiver, **delivery):
    delivery = {"sink": "webhook", "url": receiver.url, **delivery}
    answer = client.put(server.topic("t"), json={**TOPIC, "delivery": delivery})
    assert answer.status_code in (200, 201), answer.text


def await_delivery(client, nodes):
    def known():
        answers = [client.get(node.topic("t")).json() for node in nodes]
        return all(answer.get("delivery", {}).get("sink") == "webhook" for answer in answers)

    wait_for(known, what="every node to know the sink")


def submit_all(client, nodes, count, lead_ms, first=0):
    """Through one node and the other; job N of all is due N ms after the first. They have their numbers for ids."""
    first_ms = now_ms() + lead_ms
    for begin in range(0, count, 50):
        jobs = [
            {"id": str(n), "key": f"key-{n % KEYS}", "payload": payload_of(str(n)), "due_ms": first_ms + n - first}
            for n in range(first + begin, first + begin + 50)
        ]
        server = nodes[begin // 50 % len(nodes)]
        answer = client.post(server.topic("t") + "/jobs", json={"jobs": jobs})
        assert answer.status_code == 201, answer.text


def confirmed(receiver):
    came, said, _ = receiver.record()
    tokens = {token for _, token, status in said if status == 204}
    return {job_id for _, job_id, token, *_ in came if token in tokens}


def test_each_node_pushes_its_slots_in_order(client, nodes, receiver):
    """All are due when they may go, so that each node takes whatever it is given as fast as it can."""
    push(client, nodes[0], receiver, in_flight=1)
    await_delivery(client, nodes)
    assert client.post(nodes[0].topic("t") + "/pause").is_success
    submit_all(client, nodes, JOBS, lead_ms=0)
    wait_for(lambda: client.get(nodes[0].topic("t")).json()["figures"]["ready"] == JOBS, what="every job to be due")
    assert client.post(nodes[1].topic("t") + "/resume").is_success
    wait_for(lambda: len(confirmed(receiver)) == JOBS, what="every job to be confirmed")
    came = [int(job_id) for _, job_id, *_ in receiver.record()[0]]
    assert len(came) == JOBS, "each came once"
    for key in range(KEYS):
        of_key = [number for number in came if number % KEYS == key]
        assert of_key == sorted(of_key)
    shares = [outcomes(client, node, "t", "confirmed") for node in nodes]
    assert sum(shares) == JOBS and min(shares) > 0, shares


def test_what_a_dead_node_had_in_flight_comes_back_through_another(client, nodes, receiver):
    push(client, nodes[0], receiver, in_flight=20, timeout_ms=5000)
    await_delivery(client, nodes)
    receiver.behave(after_s=None)
    submit_all(client, nodes, JOBS, lead_ms=0)
    wait_for(lambda: len(receiver.record()[0]) == 20 * len(nodes), what="both nodes to have all in flight that they may")
    nodes[0].kill()
    receiver.behave()
    wait_for(lambda: len(confirmed(receiver)) == JOBS, what="every job to be confirmed")
    came = receiver.record()[0]
    hung = {job_id for _, job_id, *_ in came[: 20 * len(nodes)]}
    again = {job_id for _, job_id, _, attempt, *_ in came if attempt > 1}
    assert again == hung, "what hung came again, and nothing else"
    assert all(attempt <= 2 for _, _, _, attempt, *_ in came)


def test_pushes_of_a_dead_node_go_on_while_zookeeper_is_away(client, node, redis_single, zookeeper, receiver):
    """Only the owner of a slot pushes its jobs: without ZooKeeper the other nodes have to take the slots all the same."""
    nodes = [node(name, redis_single, *FLAGS, zookeeper=zookeeper) for name in "abc"]
    push(client, nodes[0], receiver, in_flight=20)
    await_delivery(client, nodes)
    submit_all(client, nodes, JOBS, lead_ms=0)
    wait_for(lambda: len(confirmed(receiver)) == JOBS, what="every job to be confirmed")
    shares = [outcomes(client, each, "t", "confirmed") for each in nodes]
    assert min(shares) > 0, f"each node owns some of the slots: {shares}"
    zookeeper.kill()
    nodes[0].kill()
    submit_all(client, nodes[1:], JOBS, lead_ms=0, first=JOBS)
    wait_for(lambda: len(confirmed(receiver)) == 2 * JOBS, what="the jobs of all slots to be confirmed")
    came = [job_id for _, job_id, *_ in receiver.record()[0]]
    assert len(came) == len(set(came)), "each came once"
