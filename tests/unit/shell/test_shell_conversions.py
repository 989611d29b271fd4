"""Conversions of custom resources with the library for hooks in bash, run by bash."""

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from addon_operator.app import hook_environment
from addon_operator.hook_contract import conversions
from tests.support import rows

BASH = shutil.which("bash") or "bash"
ITEM: dict[str, Any] = {
    "apiVersion": "example.com/v1alpha1",
    "kind": "CronTab",
    "metadata": {"name": "a", "uid": "1", "labels": {"x": "y"}, "annotations": {"o": "p"}},
    "spec": {"cron": ["*", "*", "*/5"]},
}
CONTEXT: dict[str, Any] = {
    "binding": "up",
    "type": "Conversion",
    "fromVersion": "v1alpha1",
    "toVersion": "example.com/v1",
    "review": {"request": {"uid": "7", "desiredAPIVersion": "example.com/v1", "objects": [ITEM, ITEM]}},
}


class Ended:
    """How a hook ended, and what it answered."""

    def __init__(self, exit_code: int, reported: str, answer: str) -> None:
        self.exit_code = exit_code
        self.reported = reported
        self.text = answer

    @property
    def answer(self) -> conversions.ConversionAnswer:
        return conversions.read_answer(self.text, [ITEM, ITEM], "example.com/v1")


def run(directory: pathlib.Path, body: str) -> Ended:
    hook, context, answer = (directory / name for name in ("hook.sh", "context", "answer"))
    hook.write_text(f'source "$FRAMEWORK_DIR/shell_lib.sh"\n{body}\nhook::run "$@"\n')
    context.write_text(json.dumps([CONTEXT]))
    answer.touch()
    paths = {"BINDING_CONTEXT_PATH": context, "CONVERSION_RESPONSE_PATH": answer}
    library = {"FRAMEWORK_DIR": str(hook_environment.SHELL_LIBRARY.parent), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [BASH, hook],
        env=library | {name: str(path) for name, path in paths.items()},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Ended(done.returncode, done.stderr, answer.read_text())


@rows.each("function", ["__on_conversion::up::v1alpha1::example.com.v1", "__on_conversion::up"])
def test_a_function_converts_all_objects(tmp_path: pathlib.Path, function: str) -> None:
    step = """{ conversion::convert '.spec.cron |= join(" ") | .metadata.labels.z = $z' --arg z 1; }"""
    ended = run(tmp_path, f"{function}() {step}")
    (first, second) = ended.answer.objects
    assert first == second
    assert first["spec"] == {"cron": "* * */5"}
    metadata: Any = first["metadata"]
    assert metadata["labels"] == {"x": "y", "z": "1"}
    assert metadata["annotations"] == {"o": "p"}


def test_whatever_the_expression_does_metadata_stay(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, "__on_conversion::up() { conversion::convert '{spec: {a: 1}}'; }")
    metadata: Any = ended.answer.objects[0]["metadata"]
    assert metadata == {"name": "a", "uid": "1"}


def test_a_hook_says_why_it_does_not_convert(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, "__on_conversion::up() { conversion::fail 'spec.cron is \"odd\"'; }")
    assert ended.answer.failed_message == 'spec.cron is "odd"'


def test_an_expression_that_fails_ends_the_hook_with_one_line(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, "__on_conversion::up() { conversion::convert '.spec.cron | tonumber'; }")
    assert (ended.exit_code, ended.text) == (5, "")
    assert "hook.sh, line 2" in ended.reported


def test_an_answer_may_be_written_without_the_library(tmp_path: pathlib.Path) -> None:
    body = """
    __on_conversion::up() {
      local found
      found="$(context::jq '[.review.request.objects[] | .apiVersion = "example.com/v1"]')"
      echo "{\\"convertedObjects\\": ${found}}" > "${CONVERSION_RESPONSE_PATH}"
    }
    """
    assert len(run(tmp_path, body).answer.objects) == 2
