"""What a job costs a Redis that many nodes share: as much with sixteen nodes and 64 slots as with one of each."""

import json
import subprocess
import sys

import pytest
from conftest import BIN, ENVIRONMENT, ROOT

SCRIPTS_MAX = 4  # beyond the submit
LOADED_MAX = 0.2
IDLE_MAX = 20  # commands a second
OTHER_MS = 2  # how much later a consumer of another node than the owner gets its jobs


def measure(tmp_path, nodes, *more):
    file = tmp_path / "costs.json"
    command = [sys.executable, ROOT / "bench" / "redis_costs.py", "--bin", BIN, "--json", file, "--nodes", str(nodes)]
    done = subprocess.run([*map(str, command), *more], env=ENVIRONMENT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    print("\n" + done.stdout)
    [found] = json.loads(file.read_text())
    return found


@pytest.mark.alone
@pytest.mark.parametrize("nodes", [1, 4, 8, 16])
def test_a_job_that_comes_alone_costs_as_much_however_many_nodes_and_slots_there_are(tmp_path, nodes):
    found = measure(tmp_path, nodes, "--slots", "1,8,64", "--alone-s", "4", "--load-s", "0")
    assert all(0 < scripts <= SCRIPTS_MAX for scripts in found["isolated"].values()), found
    if nodes == 16:
        assert found["idle_commands"] <= IDLE_MAX, found
    if nodes > 1:
        assert found["late_ms"]["other"] <= found["late_ms"]["owner"] + OTHER_MS, found


@pytest.mark.parametrize("nodes", [1, 4, 16])
def test_under_load_few_scripts_serve_many_jobs(tmp_path, nodes):
    found = measure(tmp_path, nodes, "--slots", "1", "--alone-s", "1", "--load-s", "3")
    assert found["load"]["scripts"] <= LOADED_MAX, found
