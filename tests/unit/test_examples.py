"""The example modules and global hooks are what they say: hooks, schemas and values fit each other."""

import contextlib
import dataclasses
import functools
import io
import json
import os
import pathlib
import runpy
import subprocess
import sys
from typing import Any

import pytest

from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import names
from addon_operator.loading import hook_files, module_files
from addon_operator.values import checks, config_map_reader, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations
from tests.support import rows

ROOT = pathlib.Path(__file__).parents[2]
MODULES = ROOT / "modules"
GLOBAL = ROOT / "global-hooks"
HOOKS = [
    *(
        pytest.param(path, hook_config.HookKind.GLOBAL, id=path.name)
        for path in sorted(GLOBAL.glob("hooks/*"))
    ),
    *(
        pytest.param(path, hook_config.HookKind.MODULE, id=f"{path.parents[1].name} {path.name}")
        for path in sorted(MODULES.glob("*/hooks/*"))
    ),
]
WEB = names.ModuleName("web")


@dataclasses.dataclass(frozen=True)
class Run:
    """What a hook or an enabled script left behind."""

    exit_code: int
    output: str
    files: dict[str, str]


PATH = f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"


def run(program: pathlib.Path, tmp_path: pathlib.Path, values: dict[str, Any]) -> Run:
    """Run a hook with nothing in its environment but what the operator promises, bash and python3."""
    (tmp_path / "VALUES_PATH").write_text(json.dumps(values))
    written = ("VALUES_JSON_PATCH_PATH", "CONFIG_VALUES_JSON_PATCH_PATH", "MODULE_ENABLED_RESULT",
               "MODULE_ENABLED_REASON")  # fmt: skip
    for name in written:
        (tmp_path / name).write_text("")
    environ = {"PATH": PATH} | {name: str(tmp_path / name) for name in ("VALUES_PATH", *written)}
    is_python = program.read_text().startswith("#!/usr/bin/env python3\n")
    exit_code, output = (run_here if is_python else run_as_child)(program, environ)
    return Run(exit_code, output, {name: (tmp_path / name).read_text() for name in written})


def run_as_child(program: pathlib.Path, environ: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run([program], env=environ, capture_output=True, text=True, check=False, timeout=30)
    return done.returncode, done.stdout + done.stderr


def run_here(program: pathlib.Path, environ: dict[str, str]) -> tuple[int, str]:
    """What Python would do with the program, without another interpreter for each of many runs."""
    output = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patched,
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(output),
    ):
        patched.setattr(os, "environ", environ)
        patched.setattr(sys, "argv", [str(program)])
        try:
            runpy.run_path(str(program), run_name="__main__")
        except SystemExit as end:
            return int(end.code or 0), output.getvalue()
    return 0, output.getvalue()


@functools.cache
def loaded() -> module_files.LoadedModules:
    return module_files.load([MODULES], 1, GLOBAL)


def values_store() -> store.ValuesStore:
    """All values of the examples, checked by the examples' schemas."""
    return loaded().store()


def edited(made: store.ValuesStore, data: dict[str, str]) -> list[str]:
    """What the schemas have against this ConfigMap."""
    parsed = config_map_reader.ConfigMapReader(made.modules).read(data).usable()
    violations = [str(violation) for violation in checks.Checks(made).config_violations(parsed)]
    made.set_config(parsed)
    return violations


def added_by_hook(made: store.ValuesStore, tmp_path: pathlib.Path) -> object:
    """What the hook of the module web adds to the values of its chart."""
    ran = run(MODULES / "010-web/hooks/replicas.py", tmp_path, made.values(WEB))
    assert ran.exit_code == 0, ran.output
    made.apply_values_patch(WEB, patches.parse_patch(ran.files["VALUES_JSON_PATCH_PATH"], "replicas.py"))
    checks.Checks(made).checking_helm_values(WEB)()
    section = made.values(WEB)["web"]
    assert isinstance(section, dict)
    return section["internal"]


def test_three_of_the_modules_are_on_and_two_are_off() -> None:
    made = values_store()
    assert {str(name): made.flag(name).enabled for name in made.modules} == {
        "dns-check": True,
        "web": True,
        "web-guard": True,
        "http-echo": False,
        "podinfo": False,
    }


@rows.each(("hook", "kind"), HOOKS)
def test_a_hook_tells_when_it_wants_to_run(hook: pathlib.Path, kind: hook_config.HookKind) -> None:
    told = subprocess.run(
        [hook, "--config"], env={"PATH": PATH}, capture_output=True, text=True, check=True
    ).stdout
    parsed = hook_config.parse(told, kind, hook.name)
    assert sum(parsed.order(binding) is not None for binding in hook_config.LifecycleBinding) == 1
    assert parsed.warnings == ()


@rows.each("directory", [GLOBAL, *sorted(MODULES.glob("0*"))], ids=lambda path: path.name)
def test_every_hook_is_found_as_one(directory: pathlib.Path) -> None:
    found = hook_files.discover(directory / "hooks")
    assert found.warnings == ()
    assert {hook.path for hook in found.executables} == set((directory / "hooks").glob("*"))


@rows.each("script", sorted([*MODULES.rglob("*.sh"), *GLOBAL.rglob("*.sh")]), ids=str)
def test_bash_hooks_are_sound_and_stop_at_the_first_error(script: pathlib.Path) -> None:
    assert "set -euo pipefail" in script.read_text()
    assert subprocess.run(["bash", "-n", script], capture_output=True, check=True).stderr == b""


def test_the_values_of_the_files_fit_the_schemas() -> None:
    assert edited(values_store(), {}) == []


@rows.each(
    ("data", "violation"),
    [
        ({"web": "replicas: 0\n"}, "web.replicas"),
        ({"web": "replica: 2\n"}, "replica"),
        ({"web": "links: [{name: Wiki, url: 'javascript:x'}]\n"}, "web.links[0].url"),
        ({"web": "internal: {replicas: 3}\n"}, "internal"),
        ({"global": "highAvailability: maybe\n"}, "global.highAvailability"),
        ({"dnsCheck": "names: localhost\n"}, "dnsCheck.names"),
        ({"webGuard": "allowedNamespaces: {team: 1}\n"}, "webGuard.allowedNamespaces.team"),
        ({"httpEcho": "image: ''\n", "httpEchoEnabled": "true"}, "httpEcho.image"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else None,
)
def test_a_wrong_value_is_refused(data: dict[str, str], violation: str) -> None:
    (found,) = edited(values_store(), data)
    assert violation in found


@rows.each(
    ("data", "replicas"),
    [
        ({}, 1),
        ({"global": "highAvailability: true\n"}, 2),
        ({"global": "highAvailability: true\n", "web": "replicas: 5\n"}, 5),
        ({"web": "replicas: 3\n"}, 3),
    ],
    ids=["default", "high availability", "a number wins", "a number"],
)
def test_the_hook_of_web_decides_on_replicas(
    tmp_path: pathlib.Path, data: dict[str, str], replicas: int
) -> None:
    made = values_store()
    assert edited(made, data) == []
    assert added_by_hook(made, tmp_path) == {"replicas": replicas}


def test_without_its_hook_the_chart_of_web_gets_nothing() -> None:
    with pytest.raises(schema_violations.InvalidValuesError, match="internal"):
        checks.Checks(values_store()).checking_helm_values(WEB)()


def test_web_reports_its_title(tmp_path: pathlib.Path) -> None:
    ran = run(MODULES / "010-web/hooks/report.sh", tmp_path, values_store().values(WEB))
    assert ran.exit_code == 0
    assert ran.output.startswith("'Start page' is served by")


@pytest.mark.parametrize(
    ("enabled", "answer", "reason"),
    [
        (["dns-check", "web"], "true", "the module web is enabled"),
        (["dns-check"], "false", "there is nothing to guard without the module web"),
    ],
    ids=["with web", "without web"],
)
def test_web_guard_depends_on_web(
    tmp_path: pathlib.Path, enabled: list[str], answer: str, reason: str
) -> None:
    ran = run(MODULES / "020-web-guard/enabled", tmp_path, {"global": {"enabledModules": enabled}})
    assert ran.exit_code == 0, ran.output
    assert ran.files["MODULE_ENABLED_RESULT"] == answer
    assert ran.files["MODULE_ENABLED_REASON"] == reason


@rows.each(
    ("section", "exit_code", "said"),
    [
        ({"names": ["localhost"], "required": True}, 0, "1 of 1 names are known"),
        ({"names": ["localhost", "no..name"]}, 0, "1 of 2 names are known"),
        ({"names": ["no..name"], "required": True}, 1, "The DNS does not know no..name."),
        ({"names": [], "required": True}, 0, "0 of 0 names are known"),
        ({"names": ["a" * 64 + ".example"], "required": True}, 1, "does not know aaa"),
    ],
    ids=["all known", "one unknown", "one unknown and required", "no names", "no name at all"],
)
def test_dns_check_fails_only_if_it_must(
    tmp_path: pathlib.Path, section: dict[str, Any], exit_code: int, said: str
) -> None:
    ran = run(MODULES / "005-dns-check/hooks/20-look-up.py", tmp_path, {"dnsCheck": section})
    assert ran.exit_code == exit_code
    assert said in ran.output


def test_the_cluster_gets_an_identity_once(tmp_path: pathlib.Path) -> None:
    hook = GLOBAL / "hooks/10-cluster-id.py"
    made = values_store()
    ran = run(hook, tmp_path, made.values(None))
    patch = patches.parse_patch(ran.files["CONFIG_VALUES_JSON_PATCH_PATH"], hook.name)
    result = made.config_patched(None, patch)
    assert len(str(result.section["clusterId"])) == 36
    again = run(hook, tmp_path, {"global": result.section})
    assert again.files["CONFIG_VALUES_JSON_PATCH_PATH"] == ""


def test_the_architecture_is_shared_with_all_modules(tmp_path: pathlib.Path) -> None:
    hook = GLOBAL / "hooks/20-architecture.sh"
    made = values_store()
    ran = run(hook, tmp_path, made.values(None))
    patch = patches.parse_patch(ran.files["VALUES_JSON_PATCH_PATH"], hook.name)
    assert made.apply_values_patch(None, patch) == (True, False)
    assert made.apply_values_patch(None, patch) == (False, False)
    discovered = made.values(WEB)["global"]
    assert isinstance(discovered, dict)
    assert discovered["discovery"] in ({"architecture": "amd64"}, {"architecture": "arm64"})


def test_the_last_hook_says_that_all_is_done(tmp_path: pathlib.Path) -> None:
    assert "All enabled modules are up to date." in run(GLOBAL / "hooks/90-all-done.sh", tmp_path, {}).output
