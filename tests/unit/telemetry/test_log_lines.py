"""Lines of hooks as log records."""

import pytest

from addon_operator.hook_contract import hook_log_lines
from addon_operator.hook_contract.hook_log_lines import LogLine
from tests.support import rows


@rows.each(
    ("line", "record"),
    [
        pytest.param('{"msg":"hi","a":1}', LogLine("hi", "info", {"a": 1}), id="msg"),
        pytest.param('{"message":"hi"}', LogLine("hi"), id="message"),
        pytest.param('{"a":{"b":[1]}}', LogLine("hook output", "info", {"a": {"b": [1]}}), id="no message"),
        pytest.param(
            '{"msg":7}', LogLine("hook output", "info", {"msg": 7}), id="a message that is not text"
        ),
        pytest.param('{"msg":"x","time":"t","ts":1,"timestamp":2}', LogLine("x"), id="its own time"),
        pytest.param('{"msg":"x","hook":"h"}', LogLine("x", "info", {"hook_hook": "h"}), id="a taken field"),
        pytest.param(
            '{"msg":"x","event":"e"}', LogLine("x", "info", {"hook_event": "e"}), id="a reserved one"
        ),
        pytest.param('{"msg":"x","_a":1}', LogLine("x", "info", {"hook__a": 1}), id="a private one"),
        pytest.param("hello", LogLine("hello"), id="no JSON"),
        pytest.param("{hello", LogLine("{hello"), id="broken JSON"),
        pytest.param("[1]", LogLine("[1]"), id="no object"),
        pytest.param("7", LogLine("7"), id="a number"),
        pytest.param("{" * 9999, LogLine("{" * 9999), id="deep nonsense"),
        pytest.param('{"a":' * 9999, LogLine('{"a":' * 9999), id="deep JSON"),
    ],
)
def test_a_json_object_becomes_a_record(line: str, record: LogLine) -> None:
    assert hook_log_lines.structured(line, {"hook"}) == record


@rows.each(
    ("level", "method"),
    [
        ("trace", "debug"), ("debug", "debug"), ("INFO", "info"), ("warn", "warning"), ("warning", "warning"),
        ("Error", "error"), ("fatal", "critical"), ("panic", "critical"), ("strange", "info"),
    ],
)  # fmt: skip
def test_the_level_of_the_hook_is_kept(level: str, method: str) -> None:
    assert hook_log_lines.structured(f'{{"level":"{level}","msg":"x"}}', ()) == LogLine("x", method)
