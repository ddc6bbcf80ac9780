"""A receiver of alerts in the format of Alertmanager's webhooks, version 4. It refuses whatever is not of that format."""

import http.server
import json
import re
import threading

from programs import wait_for

FIELDS = {
    "version": str,
    "groupKey": str,
    "truncatedAlerts": int,
    "status": str,
    "receiver": str,
    "groupLabels": dict,
    "commonLabels": dict,
    "commonAnnotations": dict,
    "externalURL": str,
    "alerts": list,
}
ALERT_FIELDS = {
    "status": str,
    "labels": dict,
    "annotations": dict,
    "startsAt": str,
    "endsAt": str,
    "generatorURL": str,
    "fingerprint": str,
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
NO_TIME = "0001-01-01T00:00:00Z"


def check(body):
    """Raises AssertionError if the body is not one that Alertmanager could have sent."""
    assert {name: type(value) for name, value in body.items()} == FIELDS
    assert body["version"] == "4" and body["alerts"]
    assert body["status"] == ("firing" if any(each["status"] == "firing" for each in body["alerts"]) else "resolved")
    for alert in body["alerts"]:
        assert {name: type(value) for name, value in alert.items()} == ALERT_FIELDS
        assert alert["status"] in ("firing", "resolved")
        assert TIME.fullmatch(alert["startsAt"]) and TIME.fullmatch(alert["endsAt"])
        assert (alert["endsAt"] == NO_TIME) == (alert["status"] == "firing")
        assert {"alertname", "severity"} <= alert["labels"].keys() and alert["annotations"]["summary"]
        assert body["commonLabels"].items() <= alert["labels"].items()
        assert body["groupLabels"].items() <= alert["labels"].items()
        assert re.fullmatch("[0-9a-f]{16}", alert["fingerprint"])


class AlertReceiver:
    def __init__(self):
        self.bodies, self.headers, self.problems = [], [], []
        self.status = 200
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                text = self.rfile.read(int(self.headers["content-length"]))
                receiver.take(self.headers, text)
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/alerts?key=secret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, headers, text):
        try:
            body = json.loads(text)
            check(body)
            assert headers["content-type"] == "application/json"
        except (AssertionError, ValueError, KeyError) as problem:
            self.problems.append((text, repr(problem)))
            return
        self.headers.append(dict(headers))
        self.bodies.append(body)

    def alerts(self, name, status, **labels):
        """All that it was told of such an alert, in their order."""
        return [
            alert
            for body in list(self.bodies)
            for alert in body["alerts"]
            if alert["status"] == status and {"alertname": name, **labels}.items() <= alert["labels"].items()
        ]

    def await_alert(self, name, status, within_s=30, **labels):
        def said():
            return f"{name} {status} {labels}, but {[(a['status'], a['labels']) for b in self.bodies for a in b['alerts']]}, {self.problems}"

        wait_for(lambda: self.alerts(name, status, **labels), within_s, said, between_s=0.05)
        return self.alerts(name, status, **labels)[-1]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        assert self.problems == []
