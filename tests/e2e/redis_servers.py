"""Real Redis for end-to-end tests: a single server, a master behind three sentinels, a Cluster of 3 masters and 3 replicas.

Each is ready when its constructor returns, ends with close(), and knows the flags of a tocsind that uses it (flags()).
`place_of(name)` says where each part runs, so that its network can be cut: "server0", "sentinel2", "node5".
"""

import pathlib
import shutil

import redis

from programs import LOOPBACK, Program, free_port, wait_for

MASTER_NAME = "tocsin"
HASH_SLOTS = 16_384
ASK_S = 5
LOOK_S = 1  # for questions that are asked again: a server whose network is cut must not hold up those that answer


def why_not():
    """None where Redis can be run; otherwise the reason to skip."""
    return None if shutil.which("redis-server") else "the program redis-server is not installed (Debian: redis-server)"


def everywhere(_name):
    return LOOPBACK


def fields(text):
    """name:value lines, as INFO and CLUSTER INFO answer them."""
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


class RedisServer(Program):
    """One redis-server. `kind` is server, node (of a Cluster) or sentinel."""

    def __init__(self, folder, lines=(), password=None, append_fsync="everysec", place=LOOPBACK, kind="server"):
        self.kind, self.password, self.bus_port = kind, password, None
        self.lines, self.append_fsync = list(lines), append_fsync
        self.configuration = pathlib.Path(folder) / "redis.conf"
        # A file that may not grow is to be an error for Redis, not its end.
        arguments = ["env", "--ignore-signal=XFSZ", "redis-server", self.configuration, *(["--sentinel"] if kind == "sentinel" else [])]
        super().__init__(arguments, folder, place)
        self.start_on_free_port()

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def ask(self, *words, timeout_s=ASK_S):
        """The answer to one command as it stands, over a connection of its own; redis.RedisError where it fails."""
        connection = redis.Connection(
            self.host,
            self.port,
            password=self.password,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            decode_responses=True,
            encoding_errors="surrogateescape",
        )
        try:
            connection.send_command(*words)
            return connection.read_response()
        finally:
            connection.disconnect()

    def info(self, *section):
        """INFO: name -> value, both text."""
        return fields(self.ask("INFO", *section))

    def start(self):
        super().start()
        # Sentinel's own intervals are made for networks, and one that a busy machine held up does nothing for 30 s.
        if self.kind == "sentinel":
            intervals = ("INFO-PERIOD", 500, "ASK-PERIOD", 200, "PUBLISH-PERIOD", 200, "TILT-PERIOD", 1000)
            self.ask("SENTINEL", "DEBUG", *intervals)

    def flags(self):
        flags = ["--store", "redis", "--redis-mode", "single", "--redis-endpoints", self.address]
        if self.password:
            file = self.folder / "password"
            file.touch(0o600)
            file.write_text(self.password + "\n")
            flags += ["--redis-password-file", file]
        return flags

    def is_master(self):
        try:
            return self.awake and self.ask("ROLE", timeout_s=LOOK_S)[0] == "master"
        except redis.RedisError:
            return False

    def _configure(self):
        self.port = free_port(self.place)
        lines = [f"bind {self.host}", "protected-mode no", f"port {self.port}", f"dir {self.folder}"]
        if self.password:
            lines += [f"requirepass {self.password}"]
        if self.kind != "sentinel":
            lines += ['save ""', "appendonly yes", f"appendfsync {self.append_fsync}", "shutdown-timeout 2"]
            lines += ["repl-diskless-sync-delay 0", "repl-ping-replica-period 1", "enable-debug-command yes"]
            lines += [f"masterauth {self.password}"] if self.password else []
        if self.kind == "node":
            self.bus_port = free_port(self.place)
            lines += ["cluster-enabled yes", f"cluster-port {self.bus_port}"]
        self.configuration.write_text("\n".join([*lines, *self.lines, ""]))

    def _ready(self):
        # Another server may answer on the port while ours finds it taken: the answer must come from our process.
        try:
            info = self.info()
        except redis.RedisError:
            return False
        return info["process_id"] == str(self.pid) and info.get("loading") != "1"


def in_step(servers):
    """Whether every replica that is awake has all that its master had a moment ago."""
    try:
        roles = {server.port: server.ask("ROLE", timeout_s=LOOK_S) for server in servers if server.awake}
        masters = {port: role[1] for port, role in roles.items() if role[0] == "master"}
        replicas = [server for server in servers if server.awake and server.port not in masters]
        roles = [replica.ask("ROLE") for replica in replicas]
    except redis.RedisError:
        return False
    return all(
        role[0] == "slave" and role[3] == "connected" and role[4] >= masters.get(role[2], float("inf")) for role in roles
    )


class RedisSentinels:
    """One master, two replicas, three sentinels."""

    def __init__(self, folder, place_of=everywhere, lines=(), down_after_ms=1000, failover_timeout_ms=3000):
        folder = pathlib.Path(folder)
        self.servers, self.sentinels = [], []
        try:
            self._start_servers(folder, place_of, lines)
            self._start_sentinels(folder, place_of, down_after_ms, failover_timeout_ms)
            wait_for(lambda: all(map(self._watches, self.sentinels)), what="all sentinels' knowledge of each other")
        except BaseException:
            self.close()
            raise

    def _start_servers(self, folder, place_of, lines):
        for i in range(3):
            following = [f"replicaof {self.servers[0].host} {self.servers[0].port}"] if i else []
            place = place_of(f"server{i}")
            self.servers.append(RedisServer(folder / f"server{i}", [*lines, *following], place=place))
        self.wait_until_in_step()  # sentinels learn of the replicas from the master, when they ask it first

    def _start_sentinels(self, folder, place_of, down_after_ms, failover_timeout_ms):
        lines = [
            f"sentinel monitor {MASTER_NAME} {self.servers[0].host} {self.servers[0].port} 2",
            f"sentinel down-after-milliseconds {MASTER_NAME} {down_after_ms}",
            f"sentinel failover-timeout {MASTER_NAME} {failover_timeout_ms}",
            f"sentinel parallel-syncs {MASTER_NAME} 2",
        ]
        for i in range(3):
            place = place_of(f"sentinel{i}")
            self.sentinels.append(RedisServer(folder / f"sentinel{i}", lines, place=place, kind="sentinel"))

    @staticmethod
    def _watches(sentinel):
        return sentinel.info("sentinel")["master0"].endswith("slaves=2,sentinels=3")

    def flags(self):
        endpoints = ",".join(sentinel.address for sentinel in self.sentinels)
        return [
            *("--store", "redis", "--redis-mode", "sentinel"),
            *("--redis-endpoints", endpoints, "--redis-master", MASTER_NAME),
        ]

    def master(self):
        """The server that the first sentinel which answers names."""
        return next(server for server in map(self._master_said_by, self.sentinels) if server)

    def _master_said_by(self, sentinel):
        try:
            question = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME)
            said = sentinel.awake and sentinel.ask(*question, timeout_s=LOOK_S)
        except redis.RedisError:
            return None
        return next((one for one in self.servers if said and said == [one.host, str(one.port)]), None)

    def wait_for_new_master(self, old, within_s=30):
        """Until all sentinels that are awake name the same master, another one than `old`; that server."""

        def agreed():
            said = {self._master_said_by(sentinel) for sentinel in self.sentinels if sentinel.awake}
            found = said.pop() if len(said) == 1 else None
            return found if found not in (None, old) and found.is_master() else None

        return wait_for(agreed, within_s, "a new master")

    def failovers(self):
        """How many the sentinels have begun so far."""
        said = [sentinel.ask("SENTINEL", "MASTER", MASTER_NAME) for sentinel in self.sentinels if sentinel.awake]
        return max(int(fields[fields.index("config-epoch") + 1]) for fields in said)

    def wait_until_in_step(self, within_s=30):
        def one_master():
            return sum(server.is_master() for server in self.servers) == 1

        wait_for(lambda: one_master() and in_step(self.servers), within_s, "replicas that are in step")

    def close(self):
        for server in [*self.sentinels, *self.servers]:
            server.close()
