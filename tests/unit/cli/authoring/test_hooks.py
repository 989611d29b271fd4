"""``addon-operator hooks check``: what authors see of their hooks."""

import json
import os
import pathlib
from typing import Any

import pytest
import yaml
from click import testing

from addon_operator.cli import main
from tests.support import batch_program, rows

pytestmark = pytest.mark.usefixtures("lasting_workers")

GOOD = "{configVersion: v1, beforeHelm: 5}"
MANY = """
configVersion: v1
onStartup: 20
beforeHelm: 10
schedule:
- {name: nightly, crontab: "0 0 3 * * *", queue: slow}
kubernetes:
- {name: pods, apiVersion: v1, kind: Pod, jqFilter: .metadata.name}
"""


class Directory:
    """A directory with modules, in which the command runs."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def file(self, path: str, text: str, mode: int = 0o755) -> pathlib.Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def hook(self, path: str, config: str, more: str = "") -> None:
        """A hook that prints a configuration."""
        self.file(path, f"#!/bin/sh\n{more}\ncat <<'EOF'\n{config}\nEOF\n")

    def run(self, *arguments: str) -> testing.Result:
        return testing.CliRunner().invoke(main.cli, ["hooks", "check", *arguments], standalone_mode=False)

    def files(self, *arguments: str, exit_code: int = 0) -> dict[str, dict[str, Any]]:
        """What is told of each file."""
        result = self.run("-o", "json", *arguments)
        assert result.exception is None
        assert result.return_value == exit_code
        return {row["file"]: row for row in json.loads(result.stdout)}


@pytest.fixture
def modules(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Directory:
    monkeypatch.chdir(tmp_path)
    for variable in ("MODULES_DIR", "GLOBAL_HOOKS_DIR"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(f"ADDON_OPERATOR_{variable}", raising=False)
    (tmp_path / "modules").mkdir()
    return Directory(tmp_path)


WEB = "modules/010-web/hooks"
GUARD: Any = {
    "configVersion": "v1",
    "kubernetesValidating": [{"name": "a.shop.example", "rules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"],
    }]}],
}  # fmt: skip


def test_a_table_shows_files_bindings_orders_and_queues(modules: Directory) -> None:
    modules.hook(f"{WEB}/many.sh", MANY)
    modules.hook("global-hooks/hooks/last.sh", "{configVersion: v1, afterAll: -1}")
    result = modules.run()
    assert result.return_value == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines == [
        "FILE BINDINGS ORDER QUEUE ERROR",
        "global-hooks/hooks/last.sh afterAll -1 main",
        "modules/010-web/hooks/many.sh onStartup 20 main",
        "beforeHelm 10 main",
        "schedule nightly (0 0 3 * * *) slow",
        "kubernetes pods (v1 Pod) main",
        "2 files checked: nothing is wrong",
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_other_formats_have_all_that_the_table_has(modules: Directory, output: str) -> None:
    modules.hook(f"{WEB}/many.sh", MANY)
    (row,) = yaml.safe_load(modules.run("-o", output).stdout)
    assert row == {
        "file": f"{WEB}/many.sh",
        "owner": "web",
        "bindings": [
            {"binding": "onStartup", "order": 20, "queue": "main"},
            {"binding": "beforeHelm", "order": 10, "queue": "main"},
            {"binding": "schedule", "name": "nightly", "crontab": "0 0 3 * * *", "queue": "slow"},
            {"binding": "kubernetes", "name": "pods", "apiVersion": "v1", "kind": "Pod", "queue": "main"},
        ],
        "errors": [],
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("{configVersion: v1, beforeHlem: 1}", "the key 'beforeHlem' is not known here; did you mean"),
        ("{configVersion: v1, beforeAll: 1}", "only global hooks have this binding"),
        ("{configVersion: v1, schedule: [{crontab: '61 * * * *'}]}", "schedule[0].crontab: '61 * * * *'"),
        ("{configVersion: v1, kubernetes: [{kind: Pod, jqFilter: '.a['}]}", 'jqFilter: ".a[" is not a jq'),
        (
            """{configVersion: v1, kubernetes: [{kind: Pod, jqFilter: '"x" * 1000000000'}]}""",
            "to compile it takes too much time or memory",
        ),
        ("{configVersion: v1, kubernetes: [{}]}", "kubernetes[0]: the key 'kind' is missing"),
        ("a: [", "line"),
        ("", "--config printed nothing"),
    ],
    ids=["unknown key", "global binding", "crontab", "jq", "large jq", "no kind", "no YAML", "nothing"],
)
def test_a_configuration_that_the_operator_would_refuse_is_an_error(
    modules: Directory, config: str, sentence: str
) -> None:
    modules.hook(f"{WEB}/a.sh", config)
    (told,) = modules.files(exit_code=1)[f"{WEB}/a.sh"]["errors"]
    assert sentence in told


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("#!/bin/sh\necho 'no cluster' >&2; exit 3", "--config failed with exit code 3: no cluster"),
        ("#!/nowhere/sh\n", "its first line names the interpreter /nowhere/sh, which does not exist"),
        ("echo\n", "begin a script with a line such as '#!/usr/bin/env bash'"),
    ],
    ids=["failure", "no such interpreter", "no interpreter"],
)
def test_a_hook_that_cannot_be_asked_is_an_error(modules: Directory, text: str, sentence: str) -> None:
    modules.file(f"{WEB}/a.sh", text)
    (told,) = modules.files(exit_code=1)[f"{WEB}/a.sh"]["errors"]
    assert sentence in told


def test_a_hook_whose_library_is_only_in_the_image_is_shown_how_to_find_it_anywhere(
    modules: Directory,
) -> None:
    modules.file(f"{WEB}/a.sh", "#!/bin/bash\nset -e\nsource /nowhere/shell_lib.sh\n")
    (told,) = modules.files(exit_code=1)[f"{WEB}/a.sh"]["errors"]
    assert told.endswith("image only: source ${ADDON_OPERATOR_SHELL_LIBRARY:-/shell_lib.sh}")


def test_all_that_is_wrong_is_reported_at_once(modules: Directory) -> None:
    modules.hook(f"{WEB}/a.sh", "{configVersion: v1, beforeHlem: 1, onStartup: x}")
    modules.hook("modules/020-db/hooks/b.sh", GOOD, "exit 1")
    modules.hook("modules/bad_name/hooks/c.sh", GOOD)
    modules.hook("modules/030-ok/hooks/d.sh", GOOD)
    files = modules.files(exit_code=1)
    assert {file: len(row["errors"]) for file, row in files.items()} == {
        f"{WEB}/a.sh": 2,
        "modules/020-db/hooks/b.sh": 1,
        "modules/030-ok/hooks/d.sh": 0,
        "modules/bad_name": 1,
        "modules/bad_name/hooks/c.sh": 0,
    }
    assert modules.run().stdout.endswith("5 files checked: 4 errors\n")


TWIN = "{kind: Pod, name: x}"
WARNINGS = {
    "v0": ("{onStartup: 1}", "is read as v0"),
    "kubernetes twins": (
        f"{{configVersion: v1, kubernetes: [{TWIN}, {TWIN}]}}",
        "2 bindings share the name 'x' and one snapshot",
    ),
    "schedule twins": (
        "{configVersion: v1, schedule: [{crontab: '@daily'}, {crontab: '@hourly'}]}",
        "schedule: 2 bindings share the name 'schedule'",
    ),
    "spaces": ("{configVersion: v1, schedule: [{crontab: '@daily', queue: a b c}]}", "write 'a-b-c'"),
    "queue": ("{configVersion: v1, schedule: [{crontab: '@daily', queue: Main}]}", "another one than 'main'"),
}


@pytest.mark.parametrize(("config", "sentence"), WARNINGS.values(), ids=WARNINGS)
def test_what_the_author_may_not_have_meant_is_a_warning_and_with_strict_an_error(
    modules: Directory, config: str, sentence: str
) -> None:
    modules.hook(f"{WEB}/a.sh", config)
    row = modules.files()[f"{WEB}/a.sh"]
    assert (row["errors"], len(row["warnings"])) == ([], 1)
    assert sentence in row["warnings"][0]
    modules.files("--strict", exit_code=1)


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [
        ("apps/v1", "Nodes", "did you mean 'Node' of v1?"),
        ("apps/v1", "Deploymnet", "did you mean 'Deployment' of apps/v1?"),
        ("v1", "Deployment", "did you mean 'Deployment' of apps/v1?"),
        ("v1", "Xyz", "correct one of them"),
        ("v1", "nodes", ""),
        ("apps/v1", "Deployment", ""),
        ("example.com/v1", "Thing", ""),
    ],
)
def test_a_kind_that_a_group_of_kubernetes_does_not_have_is_an_error(
    modules: Directory, monkeypatch: pytest.MonkeyPatch, version: str, kind: str, said: str
) -> None:
    kinds = dict.fromkeys(("v1/Node", "v1/Pod", "apps/v1/Deployment"), "Thing")
    document = {"version": "v1.36.3", "definitions": {"Thing": {}}, "kinds": kinds}
    modules.file("cache/api-schemas-v1.36.3.json", json.dumps(document))
    monkeypatch.setenv("ADDON_OPERATOR_DEVCLUSTER_CACHE", str(modules.root / "cache"))
    bound = f"{{name: n, apiVersion: {version}, kind: {kind}}}"
    modules.hook(f"{WEB}/a.sh", f"{{configVersion: v1, kubernetes: [{bound}]}}")
    (found,) = modules.files(exit_code=1 if said else 0).values()
    assert len(found["errors"]) == bool(said)
    assert said in "".join(found["errors"])
    assert bool(said) is ("has no kind" in "".join(found["errors"]))


@pytest.mark.parametrize(
    ("kind", "near"),
    [("Nod", "Node"), ("deploymnet", "Deployment"), ("pods", ""), ("po", ""), ("Widget", "")],
)
def test_a_kind_without_api_version_that_is_nearly_one_of_kubernetes_is_a_warning(
    modules: Directory, monkeypatch: pytest.MonkeyPatch, kind: str, near: str
) -> None:
    kinds = dict.fromkeys(("v1/Node", "v1/Pod", "apps/v1/Deployment"), "Thing")
    document = {"version": "v1.36.3", "definitions": {"Thing": {}}, "kinds": kinds}
    modules.file("cache/api-schemas-v1.36.3.json", json.dumps(document))
    monkeypatch.setenv("ADDON_OPERATOR_DEVCLUSTER_CACHE", str(modules.root / "cache"))
    modules.hook(f"{WEB}/a.sh", f"{{configVersion: v1, kubernetes: [{{name: n, kind: {kind}}}]}}")
    (found,) = modules.files().values()
    assert found["errors"] == []
    assert len(found["warnings"]) == bool(near)
    assert not near or f"has no kind {kind!r}; did you mean {near!r} of " in found["warnings"][0]


def test_queues_of_several_hooks_are_compared(modules: Directory) -> None:
    modules.hook(f"{WEB}/a.sh", "{configVersion: v1, schedule: [{crontab: '@daily', queue: slow-jobs}]}")
    modules.hook(f"{WEB}/b.sh", "{configVersion: v1, schedule: [{crontab: '@daily', queue: slow-jobs}]}")
    modules.hook(f"{WEB}/c.sh", "{configVersion: v1, schedule: [{crontab: '@daily', queue: slow_jobs}]}")
    files = modules.files()
    assert [row["warnings"] for row in files.values()] == [
        [],
        [],
        ["queue 'slow_jobs' is another one than 'slow-jobs'; is it meant to be?"],
    ]


def test_a_hook_that_is_not_executable_is_an_error_and_what_looks_like_one_with_strict(
    modules: Directory,
) -> None:
    modules.file(f"{WEB}/a.sh", "#!/bin/sh\n[ $1 = --config ]\n", 0o644)
    modules.file(f"{WEB}/notes.md", "", 0o644)
    modules.file(f"{WEB}/lib/common.sh", "", 0o644)
    ((path, row),) = modules.files(exit_code=1).items()
    assert row["errors"] == [f"it is not executable; run 'chmod +x {path}'"]
    modules.file(f"{WEB}/a.sh", "text\n", 0o644).rename(f"{WEB}/a.what")
    ((path, row),) = modules.files().items()
    assert "it is not a hook" in row["warnings"][0]
    modules.files("--strict", exit_code=1)


@pytest.mark.parametrize(
    ("text", "mode", "errors", "warnings"),
    [
        ("#!/bin/sh\nexit 1\n", 0o755, "", ""),
        ("#!/bin/sh\n", 0o644, "it is not executable; run 'chmod +x modules/010-web/enabled'", ""),
        ("#!/nowhere/sh\n", 0o755, "its first line names the interpreter /nowhere/sh", ""),
        ("exit 0\n", 0o755, "begin a script with a line such as", ""),
    ],
    ids=["good", "not executable", "no such interpreter", "no interpreter"],
)
def test_enabled_scripts_are_looked_at_and_not_run(
    modules: Directory, text: str, mode: int, errors: str, warnings: str
) -> None:
    modules.file("modules/010-web/enabled", text, mode)
    row = modules.files(exit_code=1 if errors else 0)["modules/010-web/enabled"]
    assert [row["bindings"], len(row["errors"])] == [[{"binding": "enabled"}], 1 if errors else 0]
    assert errors in "".join(row["errors"])
    assert warnings in "".join(row["warnings"])


def test_hooks_of_nobody_in_particular_are_global_if_they_are_good_as_such(modules: Directory) -> None:
    modules.hook("mine/hooks/a.sh", "{configVersion: v1, beforeAll: 1}")
    modules.hook("mine/hooks/b.sh", "{configVersion: v1, onStartup: 1}")
    modules.hook("yours/a.sh", "{configVersion: v1, beforeHelm: 1}")
    assert list(modules.files("mine")) == ["mine/hooks/a.sh", "mine/hooks/b.sh"]
    assert list(modules.files("yours")) == ["yours/a.sh"]
    modules.hook("yours/b.sh", "{configVersion: v1, beforeAll: 1}")
    assert [len(row["errors"]) for row in modules.files("yours", exit_code=1).values()] == [0, 1]


def test_one_hook_can_be_checked_by_itself(modules: Directory) -> None:
    modules.hook(f"{WEB}/a.sh", GOOD)
    modules.hook(f"{WEB}/b.sh", "wrong")
    path = modules.file(f"{WEB}/notes.md", "")
    assert list(modules.files(f"{WEB}/a.sh")) == [f"{WEB}/a.sh"]
    assert list(modules.files(f"{WEB}/b.sh", exit_code=1)) == [f"{WEB}/b.sh"]
    (row,) = modules.files(str(path)).values()
    assert row["warnings"][0].startswith("it is ignored: it is data or a library")


def test_hooks_find_the_libraries_and_their_own_directory(modules: Directory) -> None:
    checks = 'set -e; [ -f "$ADDON_OPERATOR_SHELL_LIBRARY" ]; [ -d "${PYTHONPATH##*:}/addon_operator/hook" ]'
    modules.hook(f"{WEB}/a.sh", GOOD, f'{checks}; [ "$PWD" = "{modules.root}/{WEB}" ]')
    assert modules.files()[f"{WEB}/a.sh"]["errors"] == []


def test_nothing_is_left_behind(
    modules: Directory, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp))
    modules.hook(f"{WEB}/a.sh", GOOD)
    modules.files()
    assert os.listdir(tmp) == []  # noqa: PTH208 - names are all that matters


def test_a_directory_without_hooks_is_reported_as_such(modules: Directory) -> None:
    result = modules.run()
    assert (result.return_value, result.stdout) == (0, "0 files checked: there are no hooks\n")


def test_a_path_that_does_not_exist_is_an_error(modules: Directory) -> None:
    assert "nowhere does not exist" in str(modules.run("nowhere").exception)


def test_what_a_good_configuration_wrote_beside_itself_is_a_warning(modules: Directory) -> None:
    more = "for n in $(seq 795); do echo 'list: not found' >&2; done"
    modules.hook("modules/010-web/hooks/a.sh", "{configVersion: v1, beforeHelm: 5}", more)
    for number in range(3):
        modules.file(f"modules/010-web/hooks/{number}.go", "package hooks\n// sdk.Register", mode=0o644)
    found = modules.files()
    assert found["modules/010-web/hooks/a.sh"]["warnings"] == [
        "--config printed a configuration, and wrote to standard error: list: not found"
    ]
    assert modules.files("--strict", exit_code=1)


def test_a_program_with_many_hooks_is_shown_with_each_of_them(modules: Directory) -> None:
    root = modules.root / "modules/010-web/hooks"
    hooks = [
        {"metadata": {"name": "one"}, "beforeHelm": 1},
        {"metadata": {"name": "two"}, "kubernetes": [{"name": "pods", "kind": "Pod", "queue": "slow"}]},
    ]
    config = {"version": "v1", "hooks": hooks, "readiness": hooks[0], "has_settings_check": True}
    batch_program.write(root, "batch", config)
    shown = modules.run()
    assert shown.return_value == 0
    assert "1 file checked: nothing is wrong" in shown.stdout
    files = modules.files()
    program = "modules/010-web/hooks/batch"
    assert {file: [row["binding"] for row in row["bindings"]] for file, row in files.items()} == {
        program: ["readiness", "settings check"],
        f"{program}:one:0": ["beforeHelm"],
        f"{program}:two:1": ["kubernetes"],
    }
    assert files[f"{program}:two:1"]["bindings"][0]["queue"] == "slow"
    batch_program.write(root / "other", "batch", config)
    twice = modules.files(exit_code=1)["modules/010-web/hooks/other/batch"]["errors"]
    assert twice == [f"{program} says whether the module is ready, too; only one program may do that"]


def test_mistakes_of_nested_hooks_are_those_of_their_program(modules: Directory) -> None:
    root = modules.root / "modules/010-web/hooks"
    batch_program.write(root, "batch", [{"metadata": {"name": "one"}, "beforeHelmm": 1}])
    (told,) = modules.files(exit_code=1)["modules/010-web/hooks/batch"]["errors"]
    assert told.startswith(
        "hooks[0] (one): the key 'beforeHelmm' is not known here; did you mean 'beforeHelm'"
    )


RULE = "{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}"
WEBHOOK = f"{{configVersion: v1, kubernetesValidating: [{{name: guard.shop.example, rules: [{RULE}]}}]}}"
STEP = "{fromVersion: v1, toVersion: shop.example/v2}"
CONVERSION = (
    "{configVersion: v1, kubernetesCustomResourceConversion: "
    f"[{{crdName: shops.shop.example, conversions: [{STEP}]}}]}}"
)
CLAIMS = {
    WEBHOOK: "kubernetesValidating guard.shop.example",
    CONVERSION: "the conversion of shops.shop.example from shop.example/v1 to shop.example/v2",
}


@pytest.mark.parametrize("config", CLAIMS, ids=["webhook", "conversion"])
def test_what_only_one_hook_may_declare_is_an_error_in_a_module_and_a_warning_across_modules(
    modules: Directory, config: str
) -> None:
    modules.hook("modules/010-shop/hooks/a.sh", config)
    modules.hook("modules/010-shop/hooks/b.sh", config)
    modules.hook("modules/020-web/hooks/c.sh", config)
    found = modules.files("modules", exit_code=1)
    first = "modules/010-shop/hooks/a.sh"
    said = f"{CLAIMS[config]} is also what {first} declares, and only one hook may; change one"
    assert found[first]["errors"] == found[first]["warnings"] == []
    assert found["modules/010-shop/hooks/b.sh"]["errors"] == [said]
    assert found["modules/020-web/hooks/c.sh"]["warnings"] == [said]


def test_bindings_that_answer_the_api_server_are_shown_with_what_they_are_asked_about(
    modules: Directory,
) -> None:
    validating = WEBHOOK.removesuffix("}")
    mutating = f"kubernetesMutating: [{{name: fill.shop.example, rules: [{RULE}]}}]"
    modules.hook(f"{WEB}/a.sh", f"{validating}, {mutating}}}")
    modules.hook(f"{WEB}/b.sh", CONVERSION.replace("{crdName", "{name: up, crdName"))
    result = modules.run()
    assert result.return_value == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[1:-1] == [
        f"{WEB}/a.sh kubernetesValidating guard.shop.example (CREATE pods)",
        "kubernetesMutating fill.shop.example (CREATE pods)",
        f"{WEB}/b.sh kubernetesCustomResourceConversion up (shops.shop.example: v1 to shop.example/v2)",
    ]
    guard, fill = modules.files()[f"{WEB}/a.sh"]["bindings"]
    assert guard == {
        "binding": "kubernetesValidating",
        "name": "guard.shop.example",
        "resources": "CREATE pods",
    }
    assert fill == {"binding": "kubernetesMutating", "name": "fill.shop.example", "resources": "CREATE pods"}
    (up,) = modules.files()[f"{WEB}/b.sh"]["bindings"]
    assert up == {
        "binding": "kubernetesCustomResourceConversion",
        "name": "up",
        "crdName": "shops.shop.example",
        "conversions": ["v1 to shop.example/v2"],
    }


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            WEBHOOK.replace("operations: [CREATE]", "operations: [MAKE]"),
            'kubernetesValidating[0].rules[0].operations[0]: "MAKE" is not known',
        ),
        (
            WEBHOOK.replace("Validating", "Mutating").replace("rules", "ruels"),
            "kubernetesMutating[0]: the key 'ruels' is not known here; did you mean 'rules'?",
        ),
        (
            CONVERSION.replace("toVersion", "to"),
            "kubernetesCustomResourceConversion[0].conversions[0]: the key 'to' is not known here",
        ),
        (
            CONVERSION.replace("crdName: shops.shop.example", "crdName: shops"),
            "kubernetesCustomResourceConversion[0].crdName: 'shops' is not the name of a",
        ),
    ],
    ids=["validating", "mutating", "conversion", "definition"],
)
def test_a_mistake_in_a_binding_that_answers_the_api_server_names_the_field(
    modules: Directory, config: str, sentence: str
) -> None:
    modules.hook(f"{WEB}/a.sh", config)
    first, *_ = modules.files(exit_code=1)[f"{WEB}/a.sh"]["errors"]
    assert first.startswith(sentence)


@rows.each(
    ("more", "words", "warns"),
    [
        ({}, 'echo "{}" > "$KUBERNETES_PATCH_PATH"', "KUBERNETES_PATCH_PATH"),
        ({}, "kubernetes::create <<< x", "kubernetes::create"),
        ({}, "run.kubernetes.create({})", "kubernetes.create"),
        ({}, "exit 1", ""),
        ({"schedule": [{"crontab": "@hourly"}]}, "kubernetes::create <<< x", ""),
    ],
    ids=["by hand", "shell", "python", "only answers", "writes by schedule, perhaps"],
)
def test_a_hook_that_writes_when_it_is_asked_and_says_that_it_has_no_side_effects_is_warned_of(
    modules: Directory, more: dict[str, Any], words: str, warns: str
) -> None:
    body = f": <<'WHEN-IT-IS-ASKED'\n{words}\nWHEN-IT-IS-ASKED"
    modules.hook(f"{WEB}/guard.sh", json.dumps(GUARD | more), body)
    (row,) = modules.files().values()
    said = [text for text in row["warnings"] if "sideEffects" in text]
    assert [f"({warns})" in text for text in said] == ([True] if warns else [])
    honest = {**GUARD["kubernetesValidating"][0], "sideEffects": "NoneOnDryRun"}
    modules.hook(f"{WEB}/guard.sh", json.dumps(GUARD | more | {"kubernetesValidating": [honest]}), body)
    assert next(iter(modules.files().values()))["warnings"] == []
