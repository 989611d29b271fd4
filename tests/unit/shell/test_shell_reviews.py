"""Answers to requests of the API server with the library for hooks in bash, run by bash."""

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

from addon_operator.app import hook_environment
from addon_operator.hook_contract.configuration.webhook_bindings import ReviewType
from addon_operator.hook_contract.outputs import review_answers
from tests.support import rows

BASH = shutil.which("bash") or "bash"
PATCH = [{"op": "add", "path": "/data/color", "value": 'it\'s "green"'}]
REQUEST: dict[str, Any] = {"uid": "1", "object": {"metadata": {"name": "a"}, "data": {"b": "c"}}}


class Ended:
    """How a hook ended, and what it answered."""

    def __init__(self, done: "subprocess.CompletedProcess[str]", text: str) -> None:
        self.exit_code, self.printed, self.reported, self.text = (
            done.returncode,
            done.stdout,
            done.stderr,
            text,
        )

    @property
    def answer(self) -> review_answers.AdmissionAnswer:
        return review_answers.parse(self.text, ReviewType.MUTATING)


def run(directory: pathlib.Path, body: str, binding: str = "guard.shop.example") -> Ended:
    """Run a function for the binding with this body; both types of webhooks call the same function."""
    hook, context, answer = (directory / name for name in ("hook.sh", "context", "answer"))
    function = f"__on_mutating::{binding}() {{\n{body}\n}}"
    hook.write_text(f'source "$FRAMEWORK_DIR/shell_lib.sh"\n{function}\nhook::run "$@"\n')
    context.write_text(json.dumps([{"binding": binding, "type": "Mutating", "review": {"request": REQUEST}}]))
    answer.touch()
    done = subprocess.run(
        [BASH, hook],
        env={
            "FRAMEWORK_DIR": str(hook_environment.SHELL_LIBRARY.parent),
            "PATH": os.environ["PATH"],
            "BINDING_CONTEXT_PATH": str(context),
            "ADMISSION_RESPONSE_PATH": str(answer),
            "VALIDATING_RESPONSE_PATH": str(answer),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Ended(done, answer.read_text())


def test_a_hook_denies_with_any_text(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, """hook::deny "$(review::jq -r .object.metadata.name) is \\"odd\\", it's so" """)
    assert ended.answer == review_answers.AdmissionAnswer(allowed=False, message='a is "odd", it\'s so')


@rows.each(
    ("call", "warnings"),
    [("hook::allow", ()), ("hook::allow 'it is \"old\"' 'it is large'", ('it is "old"', "it is large"))],
)
def test_a_hook_allows_with_and_without_warnings(
    tmp_path: pathlib.Path, call: str, warnings: tuple[str, ...]
) -> None:
    assert run(tmp_path, call).answer == review_answers.AdmissionAnswer(warnings=warnings)


def test_a_hook_changes_the_object(tmp_path: pathlib.Path) -> None:
    (tmp_path / "patch").write_text(json.dumps(PATCH))
    ended = run(tmp_path, f'hook::patch_object "$(< {tmp_path}/patch)"')
    assert ended.answer == review_answers.AdmissionAnswer(patch=tuple(PATCH))


def test_of_several_answers_one_that_denies_is_enough(tmp_path: pathlib.Path) -> None:
    ended = run(tmp_path, "hook::allow old\nhook::patch_object '[]'\nhook::deny no\nhook::deny never")
    assert ended.answer == review_answers.AdmissionAnswer(
        allowed=False, message="no; never", warnings=("old",)
    )


def test_an_answer_joins_one_that_was_written_without_the_library(tmp_path: pathlib.Path) -> None:
    ended = run(
        tmp_path,
        """echo '{"allowed": true, "warnings": ["by hand"]}' > "$VALIDATING_RESPONSE_PATH"; hook::deny no""",
    )
    assert ended.answer == review_answers.AdmissionAnswer(allowed=False, message="no", warnings=("by hand",))


@rows.each(
    ("call", "said"),
    [
        ("hook::deny", "hook::deny needs a message for the user"),
        ("hook::patch_object", "hook::patch_object needs a JSON patch"),
        ("hook::patch_object '[{'", "hook.sh, line 3"),
    ],
)
def test_a_wrong_call_ends_the_hook_without_an_answer(tmp_path: pathlib.Path, call: str, said: str) -> None:
    ended = run(tmp_path, call)
    assert ended.exit_code != 0
    assert ended.text == ""
    assert said in ended.reported
