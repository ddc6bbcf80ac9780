"""Fixtures of the tests of push: a receiver, and a healthy topic to compare with."""

import re

import pytest
from push_receiver import PushReceiver
from push_world import webhook


@pytest.fixture(scope="module")
def healthy_receiver(tmp_path_factory):
    one = PushReceiver(tmp_path_factory.mktemp("healthy") / "receiver")
    yield one
    one.close()


@pytest.fixture
def receiver(tmp_path):
    one = PushReceiver(tmp_path / "receiver")
    yield one
    one.close()


@pytest.fixture
def name(request):
    return re.sub(r"\W+", "-", request.node.name)[:60]


@pytest.fixture
def healthy(name, healthy_receiver):
    return webhook(healthy_receiver, "well-" + name)
