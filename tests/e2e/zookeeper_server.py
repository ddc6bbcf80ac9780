"""A real ZooKeeper for end-to-end tests: Debian's, standalone, with short ticks so that sessions may be short too."""

import os
import pathlib
import shutil
import socket

from programs import LOOPBACK, Program, free_port

# Of Debian's libzookeeper-java; the server's own names the other jars that it needs. The second writes the log to stderr.
JARS = ["/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"]


def why_not():
    """None where ZooKeeper can be run; otherwise the reason to skip."""
    if not shutil.which("java"):
        return "the program java is not installed (Debian: default-jre-headless)"
    missing = next((jar for jar in JARS if not os.path.exists(jar)), None)
    return f"{missing} is not installed (Debian: libzookeeper-java)" if missing else None


class ZooKeeperServer(Program):
    """Ready when the constructor returns."""

    def __init__(self, folder, place=LOOPBACK, tick_ms=200, session_timeout_min_ms=400):
        self.tick_ms, self.session_timeout_min_ms = tick_ms, session_timeout_min_ms
        self.configuration = pathlib.Path(folder) / "zoo.cfg"
        java = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto"]
        java += ["-Djava.net.preferIPv4Stack=true", "-cp", ":".join(JARS)]
        java += ["org.apache.zookeeper.server.ZooKeeperServerMain", self.configuration]
        super().__init__(java, folder, place)
        self.start_on_free_port()

    @property
    def hosts(self):
        return f"{self.host}:{self.port}"

    def ask(self, word, timeout_s=5):
        """A four letter word: cons, dump, srvr, ruok."""
        with socket.create_connection((self.host, self.port), timeout=timeout_s) as connection:
            connection.sendall(word.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def flags(self):
        return ["--coordination", "zookeeper", "--zookeeper-hosts", self.hosts]

    def _configure(self):
        self.port = free_port(self.place)
        self.configuration.write_text(
            f"tickTime={self.tick_ms}\n"
            f"minSessionTimeout={self.session_timeout_min_ms}\n"
            "maxSessionTimeout=60000\n"
            f"dataDir={self.folder}/data\n"
            f"clientPort={self.port}\n"
            f"clientPortAddress={self.host}\n"
            "maxClientCnxns=0\n"
            "admin.enableServer=false\n"
            "4lw.commands.whitelist=*\n"
            "preAllocSize=1024\n"
        )

    def _ready(self):
        # Another server may answer on the port while ours finds it taken: the answer must name our folder. A connection
        # that comes before the server is ready is never answered: it must not be waited for.
        try:
            return str(self.folder) in self.ask("conf", timeout_s=0.1)
        except OSError:
            return False
