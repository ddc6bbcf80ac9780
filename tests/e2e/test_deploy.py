"""What deploy/ holds: a cluster on one machine, the units of systemd, sample configurations."""

import os
import re
import shutil
import signal
import subprocess

import httpx
import programs
import pytest
import redis_servers
import zookeeper_server
from conftest import BIN, DEADLINE_S, ENVIRONMENT, ROOT, ack, reserve, run, submit

DEPLOY = ROOT / "deploy"
SCRIPT = DEPLOY / "local-cluster.sh"
CLUSTER_START_S = 90


@pytest.mark.parametrize("sample", ["tocsin.toml", "tocsin-cluster.toml"])
def test_sample_configurations_are_accepted(sample):
    done = run("tocsind", "--config", DEPLOY / sample, "--config-check")
    assert done.returncode == 0, done.stderr


def test_the_lines_of_the_cluster_sample_that_are_switched_off_are_accepted_too(tmp_path):
    text = (DEPLOY / "tocsin-cluster.toml").read_text()
    lines = text.replace('coordination = "redis"', 'coordination = "zookeeper"').splitlines()
    file = tmp_path / "all.toml"
    file.write_text("\n".join(line[1:] if line[:1] == "#" and line[1:2].islower() else line for line in lines))
    done = run("tocsind", "--config", file, "--config-check")
    assert done.returncode == 0, done.stderr
    assert "node-1" in done.stdout and "/etc/tocsin/redis-password" in done.stdout


def test_the_user_of_the_cluster_sample_may_do_all_that_a_node_needs(tmp_path, node, client):
    if why := redis_servers.why_not():
        pytest.skip(why)
    sample = (DEPLOY / "tocsin-cluster.toml").read_text()
    user = next(line.strip("# ") for line in sample.splitlines() if ">PASSWORD" in line)
    redis = redis_servers.RedisServer(tmp_path / "redis", [user.replace("PASSWORD", "secret")], password="secret")
    try:
        server = node("a", redis, "--redis-username", "tocsin")
        submit(client, server, payload="p")
        jobs = reserve(client, server, wait_ms=DEADLINE_S * 1000)
        assert ack(client, server, *jobs) == ["ok"]
        assert server.stop() == 0
        assert redis.ask("ACL", "LOG") == []  # nothing was refused
    finally:
        redis.close()


@pytest.mark.parametrize("drop_in", [False, True])
def test_systemd_accepts_the_unit(tmp_path, drop_in):
    if not shutil.which("systemd-analyze"):
        pytest.skip("the program systemd-analyze is not installed (Debian: systemd)")
    unit = (DEPLOY / "tocsin.service").read_text().replace("/usr/bin/tocsind", str(BIN / "tocsind"))
    (tmp_path / "tocsin.service").write_text(unit)
    if drop_in:
        shutil.copytree(DEPLOY / "tocsin.service.d", tmp_path / "tocsin.service.d")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "tocsin.service"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    if "Failed to initialize manager" in done.stderr:
        pytest.skip(f"systemd-analyze cannot run here: {done.stderr}")
    complaints = [line for line in done.stderr.splitlines() if "tocsin" in line]
    assert done.returncode == 0 and not complaints, done.stderr


def scripts():
    return sorted(path for folder in ("deploy", "tools") for path in (ROOT / folder).glob("*.sh"))


@pytest.mark.parametrize("script", scripts(), ids=lambda path: path.name)
def test_scripts_can_be_parsed(script):
    shell = script.read_text().splitlines()[0].removeprefix("#!")
    assert subprocess.run([shell, "-n", script], timeout=DEADLINE_S).returncode == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--port-bas", "1"], "there is no option --port-bas"),
        (["--port-base", "x"], "--port-base x is not a number from 1024 to 50000"),
        (["--folder", "src"], "src holds other things"),
    ],
)
def test_the_local_cluster_refuses_wrong_flags(flags, message):
    done = subprocess.run([SCRIPT, *flags], capture_output=True, text=True, timeout=DEADLINE_S, env=script_environment())
    assert done.returncode != 0
    assert message in done.stderr


def script_environment():
    return {**ENVIRONMENT, "TOCSIN_BIN_DIR": str(BIN)}


def free_base():
    """Where all ports of a local cluster are free; a run beside this one may still take them first."""
    for _ in range(100):
        base = programs.free_port()
        if all(programs.is_free(base + offset) for offset in [*range(1, 7), *range(10_001, 10_007), 181, 420, 430, 440]):
            return base
    raise AssertionError("no free ports")


def test_the_local_cluster_runs_and_stops_without_leaving_anything(tmp_path):
    for why in (redis_servers.why_not(), zookeeper_server.why_not()):
        if why:
            pytest.skip(why)
    base, folder, said = free_base(), tmp_path / "cluster", (tmp_path / "output").read_text
    with open(tmp_path / "output", "wb") as output:
        script = subprocess.Popen(
            [SCRIPT, "--port-base", str(base), "--folder", folder],
            stdout=output,
            stderr=output,
            env={name: value for name, value in script_environment().items() if name != "TOCSIN_RESP_LISTEN"},
            start_new_session=True,
        )
    try:

        def runs():
            assert script.poll() is None, said()
            return "Ctrl-C stops everything" in said()

        programs.wait_for(runs, CLUSTER_START_S, "the local cluster")
        pids = {path.stem: int(path.read_text()) for path in folder.glob("*.pid")}
        assert len(pids) == 6 + 1 + 3
        first, last = (f"http://127.0.0.1:{base + offset}/v1" for offset in (420, 440))

        def members():
            return httpx.get(first + "/cluster", timeout=DEADLINE_S).json()["members"]

        programs.wait_for(lambda: len(members()) == 3, what="three members")
        assert httpx.post(first + "/topics/t/jobs", json={"payload": "p"}, timeout=DEADLINE_S).status_code == 201
        taken = httpx.post(last + "/topics/t/reserve", json={"wait_ms": 10_000}, timeout=DEADLINE_S).json()
        assert [job["payload"] for job in taken["jobs"]] == ["p"]
    finally:
        if script.poll() is None:
            script.send_signal(signal.SIGINT)
        assert script.wait(DEADLINE_S) == 0, said()
    assert "All is stopped" in said()
    assert [name for name, pid in pids.items() if os.path.exists(f"/proc/{pid}")] == []


def test_the_unit_leaves_everything_to_the_configuration():
    commands = re.findall(r"^ExecStart=(.*)$", (DEPLOY / "tocsin.service").read_text(), re.MULTILINE)
    assert commands == ["/usr/bin/tocsind --config /etc/tocsin/tocsin.toml"]


def test_what_the_compose_file_mounts_exists():
    yaml = pytest.importorskip("yaml", reason="the Python module yaml is not installed (Debian: python3-yaml)")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    assert set(compose["services"]) == {"tocsin", "redis", "prometheus", "grafana"}
    for name, service in compose["services"].items():
        for source in (volume.split(":")[0] for volume in service.get("volumes", [])):
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"], (name, source)
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
    assert (DEPLOY / compose["services"]["tocsin"]["build"] / "Dockerfile").exists()


def test_the_server_takes_the_environment_of_the_compose_file():
    yaml = pytest.importorskip("yaml", reason="the Python module yaml is not installed (Debian: python3-yaml)")
    own = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["tocsin"]["environment"]
    image = dict(re.findall(r"(TOCSIN_\w+)=(\S+)", re.search(r"^ENV (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[1]))
    done = subprocess.run(
        [BIN / "tocsind", "--config", DEPLOY / "tocsin.toml", "--config-check"],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env=image | own,
    )
    assert done.returncode == 0, done.stderr
    assert '"redis:6379"' in done.stdout and '"0.0.0.0:7420"' in done.stdout


def test_the_image_runs_without_root_with_a_volume_and_a_health_check():
    """What a look at the file can tell also where test_image.py cannot build it."""
    lines = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text()).splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    stages = [i for i, step in enumerate(steps) if step[0] == "FROM"]
    last = steps[stages[-1]:]
    assert len(stages) == 2
    kinds = [step[0] for step in last]
    assert kinds.index("RUN") < kinds.index("USER") < kinds.index("ENTRYPOINT")
    said = {kind: text for kind, text in last}
    assert said["USER"] == "tocsin"
    assert said["VOLUME"] == "/var/lib/tocsin"
    assert '"tocsin", "health"' in said["HEALTHCHECK"]
    assert said["ENTRYPOINT"] == '["tocsind", "--config", "/etc/tocsin/tocsin.toml"]'
