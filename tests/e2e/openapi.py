"""The API's own description, held against what the server really takes and answers."""

import json
import re
import urllib.parse

import jsonschema

BASE = "#/components/"


class Contract:
    """The OpenAPI document that a server serves."""

    def __init__(self, document):
        self.document = document
        self.operations = {}  # (method, pattern) -> operation
        self.patterns = []
        for pattern, item in document["paths"].items():
            self.patterns.append((re.compile("^" + re.sub(r"\{\w+\}", "[^/]+", pattern) + "$"), pattern))
            for method in item.keys() - {"parameters"}:
                self.operations[method, pattern] = item[method]
        self.seen = set()  # (method, pattern, status) of the answers that were checked

    def find(self, method, url):
        path = urllib.parse.urlsplit(url).path
        for regex, pattern in self.patterns:
            if regex.match(path) and (method.lower(), pattern) in self.operations:
                return pattern, self.operations[method.lower(), pattern]
        return None, None

    def resolve(self, node):
        while "$ref" in node:
            assert node["$ref"].startswith(BASE), node
            group, name = node["$ref"][len(BASE) :].split("/")
            node = self.document["components"][group][name]
        return node

    def validate(self, schema, value):
        resolver = jsonschema.RefResolver("", self.document)
        jsonschema.Draft202012Validator(schema, resolver=resolver).validate(value)

    def check_request(self, method, url, body):
        """A body that the server took has to be one that the document allows."""
        _, operation = self.find(method, url)
        if operation is None or not body:
            return
        content = operation["requestBody"]["content"]["application/json"]
        self.validate(content["schema"], json.loads(body))

    def check_answer(self, method, url, status, text, content_type):
        pattern, operation = self.find(method, url)
        if operation is None:
            return  # a path that is not served: an error of the router
        responses = operation["responses"]
        assert str(status) in responses or status >= 400, f"{method} {pattern} answers {status}: not in the document"
        content = self.resolve(responses.get(str(status), responses["default"]))["content"]
        kind = content_type.split(";")[0]
        assert kind in content, f"{method} {pattern} answers {kind}"
        if kind == "application/json":
            self.validate(content[kind]["schema"], json.loads(text))
        self.seen.add((method.lower(), pattern, status))
