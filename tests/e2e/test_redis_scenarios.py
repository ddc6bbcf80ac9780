"""The scenarios of every door, once more on a node whose store is a Redis: what users do does not depend on the store."""

import pytest
import redis_servers
from conftest import Server
from doors import DOORS
from resp_doors import RESP_DOORS
from test_scenarios import *  # noqa: F403  (pytest runs the scenarios that it finds here with the fixtures below)

TWO_DOORS = {"httpx": DOORS["httpx"], "redis-py": RESP_DOORS["redis-py"]}


@pytest.fixture(scope="module")
def clocked(tmp_path_factory):
    if why := redis_servers.why_not():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("redis-scenarios")
    behind = redis_servers.RedisServer(folder / "redis")
    try:
        one = Server(folder / "data", *behind.flags(), "--clock", "virtual", "--node-name", "one")
        yield one
        assert one.stop() == 0, "".join(one.errors)
    finally:
        behind.close()


@pytest.fixture(scope="module", params=TWO_DOORS)
def door(request, clocked):
    one = TWO_DOORS[request.param](clocked)
    yield one
    one.close()
