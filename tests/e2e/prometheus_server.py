"""A real Prometheus and Alertmanager for end-to-end tests, of Debian's packages, with short intervals."""

import json
import shutil

import httpx

from programs import Program, free_port

EVERY = "500ms"
KILLED_WITH_THE_TESTS = ["setpriv", "--pdeathsig", "KILL"]


def why_not():
    """None if both can be run; otherwise the reason to skip."""
    for program, package in (("prometheus", "prometheus"), ("prometheus-alertmanager", "prometheus-alertmanager")):
        if not shutil.which(program):
            return f"the program {program} is not installed (Debian: {package})"
    return None


def promtool():
    """The reason to skip what needs promtool, or None."""
    return None if shutil.which("promtool") else "the program promtool is not installed (Debian: prometheus)"


class _Web(Program):
    def _ready(self):
        try:
            return httpx.get(f"{self.url}/-/ready", timeout=1).status_code == 200
        except httpx.HTTPError:
            return False

    def get(self, path, **query):
        answer = httpx.get(self.url + path, params=query, timeout=10)
        answer.raise_for_status()
        return answer.json()


class Alertmanager(_Web):
    """Sends every alert, firing and resolved, to a webhook at once. Ready when the constructor returns."""

    def __init__(self, folder, webhook_url):
        super().__init__([], folder)
        self.webhook_url = webhook_url
        self.start_on_free_port()

    def _configure(self):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        route = {"receiver": "test", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
        receiver = {"name": "test", "webhook_configs": [{"url": self.webhook_url, "send_resolved": True}]}
        config = self.folder / "alertmanager.yml"
        config.write_text(json.dumps({"route": route, "receivers": [receiver]}))  # JSON is YAML
        self.arguments = [
            *KILLED_WITH_THE_TESTS,
            "prometheus-alertmanager",
            f"--config.file={config}",
            f"--storage.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]


class Prometheus(_Web):
    """Scrapes one server as the job tocsin. Ready when the constructor returns."""

    def __init__(self, folder, target, rules, alertmanager, token=None):
        super().__init__([], folder)
        self.target, self.rules, self.alertmanager = target, rules, alertmanager
        self.login = {"authorization": {"credentials": token}} if token else {}
        self.start_on_free_port()

    def _configure(self):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        config = self.folder / "prometheus.yml"
        config.write_text(json.dumps({
            "global": {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY},
            "rule_files": [str(self.rules)],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [self.alertmanager]}]}]},
            "scrape_configs": [{"job_name": "tocsin", "static_configs": [{"targets": [self.target]}], **self.login}],
        }))
        self.arguments = [
            *KILLED_WITH_THE_TESTS,
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={self.folder}/data",
            f"--web.listen-address=127.0.0.1:{port}",
            "--rules.alert.resend-delay=1s",
        ]

    def query(self, expression):
        """The samples of an instant query."""
        return self.get("/api/v1/query", query=expression)["data"]["result"]
