"""What can be measured here: finds the servers, and installs the Node and Go clients into build/. Whatever cannot be had is a reason,
and the reason is shown wherever its figures would stand."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import receivers
import servers
import subjects

HERE = pathlib.Path(__file__).resolve().parent
NODE_FOLDER = subjects.ROOT / "build/bench/node"
GO_PROGRAM = subjects.ROOT / "build/bench/asynq_peer"
LOAD_BENCH = subjects.PROGRAMS / "load_bench"
INSTALL_S = 600
LMSTFY = "github.com/bitleak/lmstfy"


def _last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # A tool's message may name the server that it downloads from, which is private to this machine.
    return re.sub(r"https?://\S+", "(address)", lines[-1]) if lines else "no message"


def _run(command, limit_s=INSTALL_S, **options):
    """None if it works, else why not."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=limit_s, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _last_line(str(error))
    return None if done.returncode == 0 else _last_line(done.stderr or done.stdout)


def _node_clients(say):
    if not shutil.which("npm"):
        return "npm is not installed"
    wanted = (HERE / "peers/node/package.json").read_text()
    installed = NODE_FOLDER / "installed.json"  # written last, so that a broken install is done again
    if installed.exists() and installed.read_text() == wanted:
        return None
    say("installing the Node clients into build/bench/node")
    NODE_FOLDER.mkdir(parents=True, exist_ok=True)
    (NODE_FOLDER / "package.json").write_text(wanted)
    problem = _run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps"],
                   cwd=NODE_FOLDER)
    if problem:
        return f"npm could not install the client: {problem}"
    installed.write_text(wanted)
    return None


def _go_clients(say):
    if not shutil.which("go"):
        return "go is not installed"
    say("building the Go client into build/bench")
    problem = _run(["go", "build", "-o", GO_PROGRAM, "."], cwd=HERE / "peers/go")
    return f"go could not build the client: {problem}" if problem else None


def _lmstfy():
    if not shutil.which("go"):
        return "go is not installed"
    if _run(["go", "list", "-m", f"{LMSTFY}@latest"], limit_s=30, cwd=HERE / "peers/go"):
        return "its Go module could not be downloaded"
    return "it has no driver here yet"


def find(say):
    """For each need of a subject None, or the reason why it cannot be met."""
    def program(name, present):
        return None if present else f"{name} is not installed"

    redis = program("redis-server", shutil.which("redis-server"))
    load = None if LOAD_BENCH.exists() else "load_bench is not built"
    node, go = _node_clients(say), _go_clients(say)
    tocsin = load or (None if (subjects.PROGRAMS / "tocsind").exists() else "tocsind is not built")
    push = tocsin or (None if (subjects.PROGRAMS / "push_bench").exists() else "push_bench is not built")
    return {
        "tocsin": tocsin,
        "push-kafka": push or program("java", shutil.which("java")) or receivers.Kafka.missing(),
        "push-rabbitmq": push or program("rabbitmq-server", servers.RabbitMq.PROGRAM.exists()),
        "push-webhook": push,
        "tocsin-redis": redis or tocsin,
        "redis": redis or load,
        "beanstalkd": program("beanstalkd", shutil.which("beanstalkd")) or load,
        "bullmq": redis or node,
        "graphile": program("PostgreSQL", servers.Postgres.programs()) or node,
        "rabbitmq": program("rabbitmq-server", servers.RabbitMq.PROGRAM.exists()) or node,
        "asynq": redis or go,
        "lmstfy": _lmstfy(),
    }


def _version(command, pattern):
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(pattern, done.stdout + done.stderr)
    return found.group(1) if found else None


def versions():
    """Of every program and client that is here."""
    found = {
        "tocsind": _version([subjects.PROGRAMS / "tocsind", "--version"], r"(\d[\w.+-]*)"),
        "redis-server": _version(["redis-server", "--version"], r"v=(\S+)"),
        "beanstalkd": _version(["beanstalkd", "-v"], r"(\d[\w.+-]*)"),
        "rabbitmq-server": _version(["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"], r"(\S+)"),
        "kafka": next((jar.stem.rsplit("-", 1)[1] for jar in receivers.Kafka.JARS.glob("kafka_2*.jar")), None),
        "librdkafka": _version(["dpkg-query", "-W", "-f", "${Version}", "librdkafka1"], r"(\S+)"),
        "node": _version(["node", "--version"], r"v(\S+)"),
        "go": _version(["go", "version"], r"go(\d\S*)"),
        "asynq": _go_module("github.com/hibiken/asynq"),
    }
    if servers.Postgres.programs():
        found["postgres"] = _version([servers.Postgres.programs() / "postgres", "--version"], r"(\d[\d.]*)")
    for name, version in json.loads((HERE / "peers/node/package.json").read_text())["dependencies"].items():
        found[name] = version
    return {name: version for name, version in found.items() if version}


def _go_module(name):
    found = re.search(rf"{re.escape(name)} v(\S+)", (HERE / "peers/go/go.mod").read_text())
    return found.group(1) if found else None


def client_command(subject):
    """The command of the load generator, up to the arguments that all of them share, and its environment."""
    if subject.client == "node":
        environment = {**os.environ, "NODE_PATH": str(NODE_FOLDER / "node_modules")}
        return ["node", str(HERE / "peers/node/peer.js")], environment
    return [str(GO_PROGRAM if subject.client == "go" else LOAD_BENCH)], dict(os.environ)
