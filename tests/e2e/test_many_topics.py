"""What a call costs beside thousands of topics and jobs. Compares the CPU time of the server, which other load does not move."""

import os

import pytest

from resp_wire import Wire, pack

CALLS = 400
TOPICS = 9_000
FLAGS = ["--shards", "2", "--durability", "os", "--journal-segment-size", "64MiB"]


def cpu_s(server):
    with open(f"/proc/{server.process.pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost(server, calls):
    before = cpu_s(server)
    calls()
    return cpu_s(server) - before


def fill(server, commands):
    """Sends commands, a few hundred at a time."""
    with Wire(server) as wire:
        for at in range(0, len(commands), 500):
            some = commands[at:at + 500]
            wire.send_raw(b"".join(pack(*command) for command in some))
            for _ in some:
                wire.read()


def test_one_topic_costs_the_same_beside_thousands(start, client):
    server = start(*FLAGS)
    fill(server, [("JOB.SUBMIT", "one", "p", "DELAY", 3_600_000)])

    def ask():
        for _ in range(CALLS):
            answer = client.get(server.topic("one"))
            assert answer.json()["figures"]["scheduled"] == 1

    ask()
    alone = cost(server, ask)
    fill(server, [("JOB.SUBMIT", f"topic-{i}", "p", "DELAY", 3_600_000) for i in range(TOPICS)])
    assert len(client.get(server.url + "/v1/topics").json()["topics"]) == TOPICS + 1
    assert client.get(server.url + "/v1/stats").json()["topics"] == TOPICS + 1
    beside = cost(server, ask)
    assert beside < 2 * alone + 0.1, f"{alone} s without them"


def test_a_page_costs_the_same_beside_thousands_of_other_jobs(start, client):
    server = start(*FLAGS)
    few = [("JOB.SUBMIT", "few", "p", "ID", f"few-{i}", "DELAY", 3_600_000) for i in range(5)]
    fill(server, few)

    def ask():
        for _ in range(CALLS):
            answer = client.get(server.topic("few") + "/jobs", params={"state": "scheduled"})
            assert len(answer.json()["jobs"]) == 5
            assert "cursor" not in answer.json()

    ask()
    alone = cost(server, ask)
    batch = ["DELAY", 3_600_000, *["p"] * 1000]
    fill(server, [("JOB.MSUBMIT", "many", *batch) for _ in range(500)])
    beside = cost(server, ask)
    assert beside < 2 * alone + 0.1, f"{alone} s without them"


@pytest.mark.parametrize("door", ["http", "resp"])
def test_a_cursor_of_another_topic_is_refused(server, client, door):
    for topic in ("a", "b"):
        fill(server, [("JOB.SUBMIT", topic, "p", "DELAY", 3_600_000)] * 3)
    url = server.topic("a") + "/jobs"
    first = client.get(url, params={"state": "scheduled", "limit": 1}).json()
    assert len(client.get(url, params={"state": "scheduled", "cursor": first["cursor"]}).json()["jobs"]) == 2
    if door == "http":
        answer = client.get(server.topic("b") + "/jobs", params={"state": "scheduled", "cursor": first["cursor"]})
        assert answer.status_code == 400
        assert answer.json()["error"]["field"] == "cursor"
    else:
        with Wire(server) as wire:
            answer = wire.call("JOB.LIST", "b", "STATE", "scheduled", "CURSOR", first["cursor"])
            assert "cursor" in str(answer)
