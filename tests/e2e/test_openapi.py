"""The OpenAPI document is true: it has every route and no other, and every field that a call takes."""

import json
import re

import jsonschema
import pytest

from conftest import Server
from doors import HttpxDoor
from openapi import Contract


@pytest.fixture(scope="module")
def virtual(tmp_path_factory):
    one = Server(tmp_path_factory.mktemp("openapi") / "data", "--clock", "virtual", "--webhook-allow", "127.0.0.1")
    yield one
    assert one.stop() == 0, "".join(one.errors)


@pytest.fixture
def contract(virtual, client):
    answer = client.get(virtual.url + "/v1/openapi.json")
    assert answer.status_code == 200
    return Contract(answer.json())


def test_it_describes_no_route_that_is_not_there(contract, virtual, client):
    """That it describes every route is a unit test of the router."""
    for method, pattern in contract.operations:
        # The answer of /v1/events has no end.
        with client.stream(method, virtual.url + pattern.replace("{topic}", "t").replace("{id}", "x")):
            pass
    text = client.get(virtual.url + "/metrics").text
    served = re.findall(r'tocsin_http_requests_total\{method="(\w+)",route="([^"]+)",', text)
    routes = {(method.lower(), route) for method, route in served}
    assert contract.operations.keys() <= routes


def test_its_schemas_are_schemas_and_its_references_lead_somewhere(contract):
    for schema in contract.document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)

    def follow(node):
        if isinstance(node, dict):
            if "$ref" in node:
                contract.resolve(node)
            for value in node.values():
                follow(value)
        elif isinstance(node, list):
            for value in node:
                follow(value)

    follow(contract.document)
    names = [operation["operationId"] for operation in contract.operations.values()]
    assert len(names) == len(set(names))


def schemas_of(contract, operation):
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return [contract.resolve(one) for one in schema.get("anyOf", [schema])]


def test_it_has_every_field_that_a_call_takes_and_no_other(contract, virtual, client):
    client.put(virtual.url + "/v1/topics/fields")
    for (method, pattern), operation in contract.operations.items():
        if "requestBody" not in operation:
            continue
        url = virtual.url + pattern.replace("{topic}", "fields").replace("{id}", "x")
        answer = client.request(method, url, json={"not_a_field_at_all_xyz": 1})
        assert answer.status_code == 400, (method, pattern, answer.text)
        error = answer.json()["error"]
        assert error["code"] == "unknown_field", (method, pattern, error)
        known = re.search(r"the known ones are (.*)$", error["message"])
        taken = set(known.group(1).split(", ")) if known else set()
        assert taken == schemas_of(contract, operation)[0]["properties"].keys(), (method, pattern)


def test_wrong_answers_are_noticed(contract):
    """The check can fail."""
    contract.check_answer("GET", "/healthz", 200, '{"status":"ok"}', "application/json")
    with pytest.raises(AssertionError):
        contract.check_answer("GET", "/healthz", 204, "", "application/json")
    with pytest.raises(jsonschema.ValidationError):
        contract.check_answer("GET", "/healthz", 200, '{"state":"ok"}', "application/json")
    with pytest.raises(jsonschema.ValidationError):
        contract.check_request("POST", "/v1/topics/t/jobs", '{"delai_ms":5}')


def test_every_operation_answers_as_described(virtual):
    """Once each; the scenarios hold all they do through this client against the document as well."""
    door = HttpxDoor(virtual)
    door.submit("all", id="a")
    token = door.reserve("all")[0]["token"]
    door.extend("all", token)
    door.nack("all", token, delay_ms=0)
    door.ack("all", door.reserve("all")[0]["token"])
    door.submit("all", id="b", trigger="count", count=2)
    door.count("all", "b", "e")
    door.amend("all", "b", payload="x")
    door.get("all", "b")
    door.fire("all", "b")
    door.cancel("all", "b")
    door.list("all")
    for call in (door.pause, door.resume, door.purge, door.redrive, door.purge_dead, door.topic, door.drop):
        call("all")
    door.set_topic("all")
    door.set_topic("pushes", delivery={"sink": "webhook", "url": "http://127.0.0.1:9/", "in_flight": 1})
    status, text = door.send("POST", "/v1/topics/pushes/test")  # nobody listens there
    assert (status, json.loads(text)["outcome"]) == (200, "retry"), text
    door.topics()
    door.stats()
    door.cluster()
    door.advance(1)
    for topic in ("/v1", "/v1/topics/all"):
        door.send("GET", topic + "/leases")
    for method, path in (("DELETE", "leases/a"), ("POST", "dead/a/redrive"), ("DELETE", "dead/a")):
        door.send(method, "/v1/topics/all/" + path)
    door.send("GET", "/v1/topics/all/tally?by=state&state=scheduled,dead")
    door.send("POST", "/v1/topics/all/operations", {"action": "cancel", "where": {"state": ["ready"]}, "dry_run": True})
    _, text = door.send("POST", "/v1/topics/all/operations", {"action": "cancel", "all": True})
    one = "/" + str(json.loads(text)["id"])
    for method, path in (("GET", ""), ("GET", one), ("DELETE", one)):
        door.send(method, "/v1/topics/all/operations" + path)
    for path in ("pushes/load", "pushes/history", "pushes/lateness"):
        door.send("GET", "/v1/topics/" + path)
    for path in ("load?by=topic", "alerts", "deliveries", "history", "session"):
        door.send("GET", "/v1/" + path)
    door.send("DELETE", "/v1/session")
    door.send("POST", "/v1/session", {"token": "of a server without tokens"})
    for path in ("/", "/healthz", "/readyz", "/metrics", "/v1/openapi.json"):
        door.send("GET", path)
    seen = {(method, pattern) for method, pattern, _ in door.contract.seen}
    assert seen == door.contract.operations.keys() - {("get", "/v1/events")}  # test_events.py
    door.close()
