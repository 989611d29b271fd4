"""Ports, the node, and what logs say."""

import json
import socket
from typing import Any

import pytest

from addon_operator.devcluster import bootstrap
from tests.support import rows


def test_ports_differ_and_are_free() -> None:
    numbers = bootstrap.unused_ports(3)
    assert len(set(numbers)) == 3
    for number in numbers:
        with socket.create_server(("127.0.0.1", number)):
            pass


@rows.each(
    ("status", "expected"),
    [
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, True, id="ready"),
        pytest.param({"conditions": [{"type": "Ready", "status": "False"}]}, False, id="not ready"),
        pytest.param({"conditions": [{"type": "DiskPressure", "status": "True"}]}, False, id="other"),
        pytest.param({}, False, id="none"),
    ],
)
def test_a_node_is_ready_when_its_condition_says_so(status: dict[str, Any], expected: bool) -> None:
    assert bootstrap.is_ready({"status": status}) is expected
    assert not bootstrap.is_ready({})


@rows.each(
    ("tail", "message"),
    [
        pytest.param([], "it wrote nothing", id="empty"),
        pytest.param(["first", "E1121 bad flag  "], "E1121 bad flag", id="text"),
        pytest.param([json.dumps({"msg": "failed", "error": "no disk"})], "failed: no disk", id="etcd's"),
        pytest.param([json.dumps({"msg": "stopped"})], "stopped", id="etcd's without an error"),
        pytest.param(["[1]"], "[1]", id="other JSON"),
        pytest.param(["7"], "7", id="a number"),
    ],
)
def test_the_end_of_a_log_says_why(tail: list[str], message: str) -> None:
    assert bootstrap.log_message(tail) == message
