"""Redis loses or refuses a part of what it holds: the rest lives on, and nobody is told what is not so."""

import http.server
import threading

import redis
from conftest import DEADLINE_S, ack, reserve, submit
from programs import wait_for

MIB = 1 << 20
JOBS = 500
PATIENT = ["--redis-timeout", "1m"]  # thousands of jobs at once keep Redis busy for seconds on a busy machine
TOPICS_KEY = "{tocsin}topics"


def submit_many(client, server, count, **fields):
    jobs = [{"key": f"key-{number}", "payload": "x", **fields} for number in range(count)]
    answer = client.post(server.topic("t") + "/jobs", json={"jobs": jobs})
    assert answer.status_code == 201, answer.text


def drain(client, server, count):
    got = 0
    while got < count:
        jobs = reserve(client, server, max=500, wait_ms=DEADLINE_S * 1000)
        assert jobs, f"{got} of {count} jobs"
        assert set(ack(client, server, *jobs)) == {"ok"}
        got += len(jobs)
    assert reserve(client, server, max=1) == [], "one too many"


def test_a_lost_topics_key_costs_no_job_while_nodes_know_the_topics(node, redis_single, client):
    one, other = node("a", redis_single), node("b", redis_single)
    assert client.put(one.topic("t"), json={"slots": 16, "lease_ms": 4321}).status_code == 201
    wait_for(lambda: client.get(other.topic("t")).status_code == 200, DEADLINE_S, "both know it")
    submit_many(client, one, JOBS)
    redis_single.ask("DEL", TOPICS_KEY, TOPICS_KEY + ":version")
    wait_for(lambda: redis_single.ask("HLEN", TOPICS_KEY) == 1, DEADLINE_S, "the topic is put back")
    for server in (one, other):
        assert client.get(server.topic("t")).json()["lease_ms"] == 4321
    drain(client, other, JOBS)


def test_a_lost_topics_key_costs_no_job_though_nobody_knows_the_topics(node, redis_single, client):
    """A topic of the name is created again before its slots are looked at, or after it: both keep the jobs."""
    first = node("a", redis_single)
    assert client.put(first.topic("t"), json={"slots": 16, "lease_ms": 4321}).status_code == 201
    submit_many(client, first, JOBS)
    first.kill()
    redis_single.ask("DEL", TOPICS_KEY, TOPICS_KEY + ":version")
    second = node("b", redis_single)
    submit(client, second, payload="made again")
    shown = client.get(second.topic("t")).json()
    assert (shown["slots"], shown["lease_ms"]) == (16, 4321)
    drain(client, second, JOBS + 1)
    submit_many(client, second, JOBS)
    second.kill()
    redis_single.ask("DEL", TOPICS_KEY, TOPICS_KEY + ":version")
    third = node("c", redis_single)
    wait_for(lambda: client.get(third.topic("t")).status_code == 200, DEADLINE_S, "the topic is found from its slots")
    drain(client, third, JOBS)


def test_a_dropped_topic_stays_dropped_for_nodes_that_knew_it(node, redis_single, client):
    one, other = node("a", redis_single), node("b", redis_single)
    submit(client, one, payload="x", delay_ms=60_000)
    wait_for(lambda: client.get(other.topic("t")).status_code == 200, DEADLINE_S, "both know it")
    assert client.delete(one.topic("t")).status_code in (200, 204)
    wait_for(lambda: client.get(other.topic("t")).status_code == 404, DEADLINE_S, "neither knows it")
    assert redis_single.ask("HLEN", TOPICS_KEY) == 0
    submit(client, other, payload="y")
    assert [job["payload"] for job in reserve(client, one, max=10, wait_ms=DEADLINE_S * 1000)] == ["y"]


def fill_until(redis_single, send):
    """Lets Redis have little memory left, somewhat more each time, until it takes a part of what `send` sends."""
    for more in range(1, 65):
        redis_single.ask("CONFIG", "SET", "maxmemory", int(redis_single.info("memory")["used_memory"]) + more * MIB // 2)
        sent = send(more)
        redis_single.ask("CONFIG", "SET", "maxmemory", 0)
        if sent is not None:
            return sent
    raise AssertionError("Redis took all or nothing each time")


def test_a_batch_of_which_redis_takes_a_part_has_an_outcome_for_each_job(node, redis_single, client):
    server = node("a", redis_single, *PATIENT)
    assert client.put(server.topic("t"), json={"slots": 8}).status_code == 201
    path = server.topic("t") + "/jobs"
    nothing_done = []

    def send(number):
        jobs = [{"id": f"{number}-{each}", "payload": "x" * 500, "delay_ms": 3_600_000} for each in range(8000)]
        answer = client.post(path, json={"jobs": jobs})
        if answer.status_code == 507:
            nothing_done.append(number)
            return None
        assert answer.status_code == 201, answer.text
        outcomes = [one["outcome"] for one in answer.json()["jobs"]]
        return (jobs, outcomes) if set(outcomes) == {"accepted", "storage_full"} else None

    jobs, outcomes = fill_until(redis_single, send)
    print(f"\n  {outcomes.count('accepted')} of {len(jobs)} jobs were stored")
    again = [one["outcome"] for one in client.post(path, json={"jobs": jobs}).json()["jobs"]]
    assert again == ["duplicate" if outcome == "accepted" else "accepted" for outcome in outcomes]
    for number in nothing_done:
        assert {client.get(f"{path}/{number}-{each}").status_code for each in range(0, 8000, 400)} == {404}


def test_a_command_of_which_redis_takes_a_part_has_a_reply_for_each_job(node, redis_single, client):
    server = node("a", redis_single, *PATIENT)
    assert client.put(server.topic("t"), json={"slots": 8}).status_code == 201
    with redis.Redis(port=server.resp_port, socket_timeout=DEADLINE_S) as resp:
        stored = 0

        def send(_number):
            nonlocal stored
            try:
                replies = resp.execute_command("JOB.MSUBMIT", "t", "DELAY", 3_600_000, *["x" * 500] * 8000)
            except redis.ResponseError as error:
                assert str(error).startswith("STORAGEFULL"), error
                return None
            refused = [reply for reply in replies if isinstance(reply, redis.ResponseError)]
            assert all(str(reply).startswith("STORAGEFULL storage_full: ") for reply in refused)
            stored += len(replies) - len(refused)
            return replies if refused else None

        replies = fill_until(redis_single, send)
        assert len(replies) == 8000
    held = sum(redis_single.ask("HLEN", key) for key in redis_single.ask("KEYS", "*:job"))
    assert held == stored


def test_a_long_poll_that_finds_nothing_at_maxmemory_stays_parked(node, redis_single, client):
    """Both nodes ask for the job when it is due. Who comes second finds one that is due later."""
    servers = [node("a", redis_single), node("b", redis_single)]
    submit(client, servers[0], key="k", payload="soon", delay_ms=1500)
    submit(client, servers[0], key="k", payload="later", delay_ms=86_400_000)
    wait_for(lambda: client.get(servers[1].topic("t")).status_code == 200, DEADLINE_S, "both know it")
    redis_single.ask("CONFIG", "SET", "maxmemory", 1)
    answers = []

    def park(server):
        answers.append(client.post(server.topic("t") + "/reserve", json={"wait_ms": 4000}))

    parked = [threading.Thread(target=park, args=(server,)) for server in servers for _ in range(4)]
    for one in parked:
        one.start()
    for one in parked:
        one.join(DEADLINE_S)
    assert [answer.status_code for answer in answers] == [200] * 8, [answer.text for answer in answers]
    assert [job["payload"] for answer in answers for job in answer.json()["jobs"]] == ["soon"]


class Receiver(http.server.ThreadingHTTPServer):
    """Of webhooks: it answers when it may."""

    daemon_threads = True

    def __init__(self):
        self.came, self.may_answer = [], threading.Event()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                server.came.append(self.path)
                server.may_answer.wait(DEADLINE_S)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def save_works(redis_single, works):
    """Whether Redis can save: while it cannot, it refuses writes (MISCONF)."""
    in_the_way = redis_single.folder / "dump.rdb"
    if works:
        in_the_way.rmdir()
    else:
        in_the_way.unlink(missing_ok=True)
        in_the_way.mkdir()
        redis_single.ask("CONFIG", "SET", "save", "3600 1")
    redis_single.ask("BGSAVE")
    said = "ok" if works else "err"
    wait_for(lambda: redis_single.info("persistence")["rdb_last_bgsave_status"] == said, DEADLINE_S, said)


def refusals(redis_single):
    return int(redis_single.info("errorstats").get("errorstat_MISCONF", "count=0").removeprefix("count="))


def test_a_push_that_was_confirmed_while_redis_cannot_save_does_not_come_again(node, redis_single, client):
    server, receiver = node("a", redis_single, "--webhook-allow", "127.0.0.1"), Receiver()
    try:
        delivery = {"sink": "webhook", "url": f"http://127.0.0.1:{receiver.server_port}/"}
        topic = {"lease_ms": 20_000, "backoff_base_ms": 50, "delivery": delivery}
        assert client.put(server.topic("t"), json=topic).status_code == 201
        submit(client, server, payload="x")
        wait_for(lambda: receiver.came, DEADLINE_S, "a push")
        save_works(redis_single, False)
        before = refusals(redis_single)
        receiver.may_answer.set()
        wait_for(lambda: refusals(redis_single) >= before + 4, DEADLINE_S, "refusals, of the ack too")
        save_works(redis_single, True)
        wait_for(lambda: client.get(server.topic("t")).json()["figures"]["acked"] == 1, DEADLINE_S, "the ack")
        assert len(receiver.came) == 1
    finally:
        receiver.shutdown()


def test_nodes_keep_their_connections_while_redis_cannot_save(node, redis_single, client):
    """It refuses the pings of subscriptions too."""
    server = node("a", redis_single)

    def reconnects():
        lines = client.get(server.url + "/metrics").text.splitlines()
        return [float(line.split()[1]) for line in lines if line.startswith("tocsin_redis_reconnects_total ")]

    before, refused = reconnects(), refusals(redis_single)
    assert before, "the metric is there"
    save_works(redis_single, False)
    wait_for(lambda: refusals(redis_single) >= refused + 4, DEADLINE_S, "pings that are refused")
    assert reconnects() == before
    save_works(redis_single, True)
