"""The reference of the libraries for hooks names all that they have, and its examples work."""

import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import types
from typing import Any

import pytest

from addon_operator import hook
from addon_operator.app import hook_environment
from addon_operator.hook import aliases
from addon_operator.hook_contract.configuration import bindings, hook_config
from tests.support import rows

PAGE = (pathlib.Path(__file__).parents[3] / "docs" / "reference" / "hook-libraries.md").read_text()
PYTHON_PART, BASH_PART = PAGE.split("\n## Bash\n")
PYTHON_EXAMPLE, *_, TEST_EXAMPLE = re.findall(r"```python\n(.*?)```", PYTHON_PART, re.DOTALL)
BASH_EXAMPLE, *_ = re.findall(r"```bash\n(.*?)```", BASH_PART, re.DOTALL)
FUNCTION = re.compile(r"^([a-z]+(?:::[a-z_]+)+)\(\)", re.MULTILINE)
FUNCTIONS = {
    name
    for file in hook_environment.SHELL_LIBRARY.parent.rglob("*.sh")
    for name in FUNCTION.findall(file.read_text())
    if "::_" not in name
}


def words(part: str) -> set[str]:
    """What stands in code in the prose of a part."""
    prose = re.sub(r"```.*?```", "", part, flags=re.DOTALL)
    return set(re.findall(r"[\w:]+", " ".join(re.findall(r"`([^`]+)`", prose))))


@rows.each(
    "described",
    [hook.Run, hook.Context, hook.Values, hook.Kubernetes, hook.Metrics],
    ids=lambda one: one.__name__,
)
def test_every_member_of_the_python_library_is_described(described: type) -> None:
    own = described() if described is hook.Run else None
    members = {name for name in {*dir(described), *(vars(own) if own else ())} if not name.startswith("_")}
    not_for_hooks = {"outputs", "outputs_of_failure"}
    assert members - not_for_hooks - words(PYTHON_PART) == set()


def test_every_field_of_a_target_is_described() -> None:
    fields = {*aliases.Target.__annotations__, *aliases.PatchTarget.__annotations__}
    assert fields - words(PYTHON_PART) == set()


@rows.each("described", [hook.Kubernetes, hook.Metrics], ids=lambda one: one.__name__)
def test_a_row_of_the_python_library_names_no_parameter_that_there_is_not(described: type) -> None:
    rows = re.findall(r"^\| `([a-z_]+)\(([^)]*)\)` \|", PYTHON_PART, re.MULTILINE)
    named = {(name, option) for name, rest in rows for option in re.findall(r"([a-z_]+)=", rest)}
    methods = dict(inspect.getmembers(described, inspect.isfunction))
    mine = {(name, option) for name, option in named if name in methods}
    assert mine
    assert {
        (name, option) for name, option in mine if option not in inspect.signature(methods[name]).parameters
    } == set()


def test_every_function_of_the_library_for_bash_is_described_and_no_other() -> None:
    described = {word for word in words(BASH_PART) if re.fullmatch(r"[a-z]+(::[a-z_]+)+", word)}
    assert described == FUNCTIONS


def test_a_function_for_each_step_of_life_is_described() -> None:
    steps = {
        re.sub("([A-Z])", r"_\1", step).lower().removeprefix("on_") for step in bindings.LifecycleBinding
    }
    assert {f"__on_{step}" for step in steps} - words(BASH_PART) == set()


def test_the_example_in_python_is_that_of_the_library() -> None:
    said = inspect.cleandoc(str(hook.__doc__))
    assert "".join(PYTHON_EXAMPLE.split()) in "".join(said.split())


def test_the_example_of_a_test_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    example = types.ModuleType("replicas")
    exec(PYTHON_EXAMPLE, example.__dict__)  # noqa: S102 - a page of ours
    monkeypatch.setitem(sys.modules, "replicas", example)
    scope: dict[str, Any] = {}
    exec(TEST_EXAMPLE, scope)  # noqa: S102 - as above
    scope["test_two_replicas_with_high_availability"]()


def test_the_example_in_bash_does_the_same(tmp_path: pathlib.Path) -> None:
    values, patch, contexts = (tmp_path / name for name in ("values", "patch", "contexts"))
    (tmp_path / "hook.sh").write_text(BASH_EXAMPLE)
    values.write_text('{"global": {"highAvailability": true}, "web": {}}')
    contexts.write_text('[{"binding": "beforeHelm", "snapshots": {}}]')
    environ = {
        "PATH": os.environ["PATH"],
        "ADDON_OPERATOR_SHELL_LIBRARY": str(hook_environment.SHELL_LIBRARY),
        "BINDING_CONTEXT_PATH": str(contexts),
        "VALUES_PATH": str(values),
        "VALUES_JSON_PATCH_PATH": str(patch),
    }
    command = ["bash", str(tmp_path / "hook.sh")]
    subprocess.run(command, env=environ, check=True)
    assert json.loads(patch.read_text()) == {"op": "add", "path": "/web/internal", "value": {"replicas": 2}}
    told = subprocess.run(
        [*command, "--config"], env=environ, check=True, capture_output=True, text=True
    ).stdout
    assert (
        hook_config.parse(told, hook_config.HookKind.MODULE, "the example").order(
            hook_config.LifecycleBinding.BEFORE_HELM
        )
        == 10
    )


def test_both_examples_run_by_hand_as_the_page_says(tmp_path: pathlib.Path) -> None:
    (tmp_path / "hooks").mkdir()
    (tmp_path / "hooks/replicas.py").write_text(PYTHON_EXAMPLE)
    (tmp_path / "hooks/replicas.sh").write_text(BASH_EXAMPLE)
    (tmp_path / "context.json").write_text('[{"binding": "beforeHelm"}]')
    (tmp_path / "values.json").write_text('{"global": {"highAvailability": true}, "web": {}}')
    by_hand = re.findall(r"```bash\n(.*?)```", PYTHON_PART.split("\n## Python\n")[0], re.DOTALL)
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "".join(by_hand)],
        cwd=tmp_path,
        env={"PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(by_hand) == 2
    assert ran.stdout.count('{"replicas": 2}') + ran.stdout.count('{"replicas":2}') == 2, ran.stdout
