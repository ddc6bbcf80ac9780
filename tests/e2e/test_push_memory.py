"""Jobs on their way to receivers stay within the plan for memory, and receivers that hang leave room to others."""

import contextlib
import re
import socket

from conftest import DEADLINE_S, submit
from programs import wait_for
from test_memory_plan import MIB, peak_bytes, plan_bytes
from webhook_receiver import WebhookReceiver

LIMIT_MIB = 256
PUSH_MIB = 32  # an eighth of it
PAYLOAD = "x" * 1_000_000
SILENT = 40  # topics, with six jobs each


def put(client, server, topic, url, **settings):
    answer = client.put(server.topic(topic), json={"delivery": {"sink": "webhook", "url": url, **settings}})
    assert answer.status_code == 201, answer.text


def acked(client, server, topic):
    return client.get(server.topic(topic)).json()["figures"]["acked"]


def push_memory(client, server):
    text = client.get(server.url + "/metrics").text
    return int(re.search(r"^tocsin_push_memory_bytes (\d+)$", text, re.MULTILINE)[1])


def test_silent_receivers_of_large_jobs_stay_within_the_plan_and_hold_up_nobody(start, client, tmp_path):
    with contextlib.ExitStack() as stack:
        silent = stack.enter_context(socket.socket())
        silent.bind(("127.0.0.1", 0))
        silent.listen(1024)  # it accepts and answers nothing
        well = stack.enter_context(contextlib.closing(WebhookReceiver(tmp_path / "receiver")))
        server = start("--memory-limit", f"{LIMIT_MIB}MiB", "--webhook-allow", "127.0.0.0/8")
        topics = [f"silent-{number}" for number in range(SILENT)]
        for topic in topics:
            put(client, server, topic, f"http://127.0.0.1:{silent.getsockname()[1]}/", timeout_ms=600_000)
        for _ in range(6):
            for topic in topics:
                submit(client, server, topic, payload=PAYLOAD)
        wait_for(lambda: push_memory(client, server) > PUSH_MIB * MIB // 2, DEADLINE_S, "receivers that hang")

        put(client, server, "well", well.url())
        for number in range(50):
            submit(client, server, "well", payload="small")
            wait_for(lambda: acked(client, server, "well") == number + 1, DEADLINE_S, "a healthy receiver")
        for number in range(5):
            submit(client, server, "well", payload=PAYLOAD)
            wait_for(lambda: acked(client, server, "well") == number + 51, DEADLINE_S, "a large job")

        held, peak = push_memory(client, server), peak_bytes(server)
        print(f"{held // MIB} MiB on their way, {peak // MIB} MiB of {plan_bytes(LIMIT_MIB) // MIB} MiB")
        assert held <= PUSH_MIB * MIB * 3 // 4, "the rest is for receivers that answer"
        assert peak < plan_bytes(LIMIT_MIB)
        server.kill()  # a stop would wait for the receivers
