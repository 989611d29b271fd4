"""``new module`` and ``new hook``: what they write, and what they refuse."""

import json
import os
import pathlib
from collections.abc import Iterator

import jsonschema
import pytest
import yaml
from click import testing

from addon_operator.cli import main
from addon_operator.commands import values_files
from addon_operator.commands.authoring import new_hook, new_module
from addon_operator.commands.checks import hook_places, hooks_check, values_check
from addon_operator.kernel import errors, json_types
from addon_operator.testing import snapshots
from addon_operator.testing.cases import case_file, case_run
from addon_operator.testing.modules import module, places, runtime

pytestmark = pytest.mark.usefixtures("lasting_workers")

OCI = "oci://ghcr.io/stefanprodan/charts/podinfo@6.14.1"


@pytest.fixture(autouse=True)
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    # Not the charts that somebody keeps on this machine.
    monkeypatch.setenv("ADDON_OPERATOR_TMP_DIR", str(tmp_path / "tmp"))
    return tmp_path


def run(*arguments: str) -> str:
    ran = testing.CliRunner().invoke(main.cli, ["new", *arguments], standalone_mode=False)
    if ran.exception is not None:
        raise ran.exception
    return ran.stdout


def findings() -> list[str]:
    return [str(each.problem) for each in values_check.check(values_files.places({})).findings]


@pytest.mark.parametrize("options", [[], ["--schema"], ["--chart", OCI], ["--chart", OCI, "--schema"]])
def test_nothing_is_wrong_with_the_values_of_a_new_module_which_is_on(options: list[str]) -> None:
    run("module", "web-shop", *options)
    assert findings() == []
    values = yaml.safe_load(pathlib.Path("modules/010-web-shop/values.yaml").read_text())
    assert values["webShopEnabled"] is True
    files = [path for path in pathlib.Path("modules").rglob("*") if path.is_file()]
    assert pathlib.Path("modules/010-web-shop/README.md") in files
    assert pathlib.Path("modules/010-web-shop/tests/web-shop.yaml") in files
    assert not [path for path in files if "__" in path.read_text()]


def test_a_new_module_comes_behind_all_others_unless_its_order_is_named() -> None:
    run("module", "first")
    run("module", "odd", "--order", "42")
    run("module", "last")
    run("module", "elsewhere", "other")
    assert sorted(path.name for path in pathlib.Path("modules").iterdir()) == [
        ".module.schema.json",
        "010-first",
        "042-odd",
        "050-last",
    ]
    assert pathlib.Path("other/010-elsewhere/module.yaml").is_file()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("web", "/modules/010-web is a module of this name"),
        ("010-shop", "without number, which is --order"),
        ("Shop", "rename it to"),
        ("global", "choose another name"),
        ("../shop", "without directory"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(name: str, said: str) -> None:
    run("module", "web")
    before = sorted(pathlib.Path().rglob("*"))
    with pytest.raises(new_module.NewModuleError, match=said):
        run("module", name)
    assert sorted(pathlib.Path().rglob("*")) == before


def test_a_file_in_the_place_of_a_module_is_not_overwritten() -> None:
    pathlib.Path("modules").mkdir()
    pathlib.Path("modules/010-web").write_text("mine")
    with pytest.raises(new_module.NewModuleError, match="nothing was written"):
        run("module", "web", "--order", "10")
    assert pathlib.Path("modules/010-web").read_text() == "mine"
    assert [path.name for path in pathlib.Path("modules").iterdir()] == ["010-web"]


@pytest.mark.parametrize(
    ("chart", "said"),
    [
        ("podinfo", "names no chart"),
        ("./charts/podinfo", "copy the chart to modules/010-NAME/chart"),
        ("file:///charts/podinfo@1.2.3", "copy the chart to modules/010-NAME/chart"),
        ("oci://ghcr.io/charts/podinfo", "names no version; .*helm show chart oci://ghcr.io/charts/podinfo'"),
        ("https://a.example/podinfo", "'helm show chart podinfo --repo https://a.example' prints the newest"),
        ("oci://ghcr.io/charts/podinfo:1.2.3", "write oci://ghcr.io/charts/podinfo@1.2.3$"),
        ("oci://ghcr.io/charts/podinfo@^1", "not an exact version; .*/podinfo --version '\\^1'' prints"),
        ("oci://ghcr.io/charts/podinfo@>=1.0 <2", "not an exact version; .* --version '>=1.0 <2'' prints"),
        ("oci://ghcr.io/charts/podinfo@latest", "not an exact version"),
        ("oci://ghcr.io", "names no chart; write REPOSITORY/NAME@VERSION, such as"),
        ("https://a.example/podinfo-1.2.3.tgz", "is the archive of a chart; .* where its index.yaml lies"),
        ("bitnami/nginx@1.2.3", "has no address; .*'bitnami' is printed by 'helm repo list'"),
        ("https://user:word@charts.example/podinfo@1.0.0", "^--chart has credentials; leave them out"),
        ("http://charts.example/podinfo@1.0.0", "plain HTTP is only for this machine itself"),
    ],
)
def test_a_chart_that_cannot_be_pulled_is_refused_and_nothing_is_left(chart: str, said: str) -> None:
    with pytest.raises(new_module.NewModuleError, match=said):
        run("module", "web", "--chart", chart)
    assert not [path for path in pathlib.Path().rglob("*") if path.is_file()]


def test_editors_know_the_values_of_a_module_with_a_schema() -> None:
    run("module", "web", "--schema")
    values = pathlib.Path("modules/010-web/values.yaml")
    first = values.read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=openapi/values-file.schema.json"
    schema = json.loads((values.parent / "openapi/values-file.schema.json").read_text())
    checks = jsonschema.Draft7Validator(schema)
    checks.check_schema(schema)
    assert checks.is_valid(yaml.safe_load(values.read_text()))
    assert checks.is_valid({"webEnabled": False})
    mistakes: list[json_types.JsonObject] = [
        {"web": {"greeting": 1}},
        {"web": {"greetings": "Hi"}},
        {"shop": {}},
    ]
    for wrong in mistakes:
        assert not checks.is_valid(wrong), wrong


def test_the_schema_of_values_is_printed_anew_after_an_edit_of_the_openapi_schema() -> None:
    run("module", "web", "--schema")
    path = pathlib.Path("modules/010-web/openapi/config-values.yaml")
    path.write_text("type: object\nrequired: [size]\nproperties: {size: {type: integer, nullable: true}}\n")
    ran = testing.CliRunner().invoke(main.cli, ["module", "schema", "--values-of", "modules/010-web"])
    checks = jsonschema.Draft7Validator(json.loads(ran.stdout))
    assert checks.is_valid({"web": {"size": None}})
    assert checks.is_valid({"web": {}}), "what is missing may come from the ConfigMap"
    assert not checks.is_valid({"web": {"size": "big"}})


@pytest.mark.parametrize("options", [[], ["--global"]])
def test_the_schema_of_hooks_takes_what_a_hook_prints_and_no_other_key(options: list[str]) -> None:
    ran = testing.CliRunner().invoke(main.cli, ["hooks", "schema", *options])
    checks = jsonschema.Draft202012Validator(json.loads(ran.stdout))
    checks.check_schema(checks.schema)
    lifecycle = "beforeAll" if options else "beforeHelm"
    nodes = {"name": "nodes", "kind": "Node", "jqFilter": ".metadata.name"}
    assert checks.is_valid({"configVersion": "v1", lifecycle: 10, "kubernetes": [nodes]})
    assert not checks.is_valid({"configVersion": "v1", "beforeHelmm": 10})
    assert not checks.is_valid({"configVersion": "v1", "afterHelm" if options else "afterAll": 10})


@pytest.fixture(scope="module")
def running() -> Iterator[runtime.Runtime]:
    with runtime.Runtime() as made:
        yield made


ONLY_PYTHON = (new_hook.Binding.VALIDATING, new_hook.Binding.MUTATING, new_hook.Binding.CONVERSION)


@pytest.mark.parametrize("binding", ONLY_PYTHON)
def test_a_hook_that_answers_the_api_server_is_written_in_python(binding: new_hook.Binding) -> None:
    run("module", "web")
    request = new_hook.Request("web", "look-twice", binding, new_hook.Language.BASH)
    with pytest.raises(new_hook.NewHookError, match="take python"):
        new_hook.write(pathlib.Path("modules/010-web"), request)


@pytest.mark.parametrize(
    ("binding", "language"),
    [
        (binding, language)
        for binding in new_hook.Binding
        for language in new_hook.Language
        if (language is new_hook.Language.PYTHON or binding not in ONLY_PYTHON)
        and binding in new_hook.bindings_of("web")
    ],
)
def test_a_new_hook_has_a_test_that_passes(
    binding: new_hook.Binding, language: new_hook.Language, running: runtime.Runtime, place: pathlib.Path
) -> None:
    run("module", "web")
    request = new_hook.Request("web", "look-twice", binding, language)
    written = new_hook.write(pathlib.Path("modules/010-web"), request)
    modules = module.Modules(running, places.of_module(place / "modules/010-web"))
    cases = case_file.read(written.test)
    for case in cases:
        case_run.run(case, modules, modules("web"), snapshots.Snapshot(place, "none", update=False))

    assert os.access(written.hook, os.X_OK)
    assert [case.hook.name for case in cases if case.hook] == [written.hook.name] * len(cases)


@pytest.mark.parametrize(
    "binding",
    [
        new_hook.Binding.ON_STARTUP,
        new_hook.Binding.AFTER_HELM,
        new_hook.Binding.KUBERNETES,
        new_hook.Binding.SCHEDULE,
        *ONLY_PYTHON,
    ],
)
def test_the_test_of_a_new_hook_fails_for_one_that_does_nothing(
    binding: new_hook.Binding, running: runtime.Runtime, place: pathlib.Path
) -> None:
    run("module", "web")
    request = new_hook.Request("web", "look-twice", binding, new_hook.Language.PYTHON)
    written = new_hook.write(pathlib.Path("modules/010-web"), request)
    written.hook.write_text(
        "#!/bin/bash\n[[ \"$1\" == --config ]] && echo 'configVersion: v1\nonStartup: 1'\n"
    )
    modules = module.Modules(running, places.of_module(place / "modules/010-web"))
    for case in case_file.read(written.test):
        with pytest.raises(errors.AddonOperatorError):
            case_run.run(case, modules, modules("web"), snapshots.Snapshot(place, "none", update=False))


@pytest.mark.parametrize(
    "chosen",
    [slice(2), pytest.param(slice(2, None), marks=pytest.mark.slow)],
    ids=["two bindings", "the others"],
)
def test_new_global_hooks_lie_in_their_directory_with_tests_that_pass(
    place: pathlib.Path, chosen: slice
) -> None:
    run("module", "web")
    for number, binding in enumerate(new_hook.bindings_of("global")[chosen]):
        suffix = ".py" if binding in ONLY_PYTHON or number == 0 else ".sh"
        name = f"{binding.lower()}-{suffix[1:]}"
        hook, test = run("hook", f"global-hooks/{name}{suffix}", "--on", str(binding)).split()[:2]
        assert pathlib.Path(hook).resolve() == place / f"global-hooks/hooks/{name}{suffix}"
        assert pathlib.Path(test).resolve() == place / f"global-hooks/tests/{name}.yaml"
    report = hooks_check.check(hook_places.configured({}).below(place / "global-hooks"))
    assert {(file.owner, file.errors) for file in report.files} == {("global", ())}
    ran = testing.CliRunner().invoke(main.cli, ["module", "test", "global-hooks"], standalone_mode=False)
    assert ran.return_value == 0, ran.stdout


@pytest.mark.parametrize(("name", "binding"), [("global/x", "beforeHelm"), ("web/x", "afterAll")])
def test_a_binding_that_others_have_is_refused_with_those_there_are(name: str, binding: str) -> None:
    run("module", "web")
    with pytest.raises(new_hook.NewHookError, match=rf"cannot have {binding}; --on is one of \w+, onStartup"):
        run("hook", name, "--on", binding)
    assert not pathlib.Path("global-hooks").exists()


def test_a_global_hook_runs_before_all_modules_unless_somebody_says_so() -> None:
    for name, environ in (
        ("global/first", {}),
        ("global-hooks/second", {}),
        ("shared/third", {"GLOBAL_HOOKS_DIR": "shared"}),
    ):
        with pytest.MonkeyPatch.context() as patch:
            for key, value in environ.items():
                patch.setenv(key, value)
                pathlib.Path(value).mkdir()
            hook = run("hook", name).splitlines()[0]
            report = hooks_check.check(hook_places.configured({}).below(pathlib.Path(hook)))
        assert [str(bound.binding) for file in report.files for bound in file.bindings] == ["beforeAll"]


def test_a_directory_that_is_not_a_module_gets_no_hook() -> None:
    run("module", "web")
    for place in (".", "modules"):
        with pytest.raises(new_hook.NewHookError, match="is not a module; name the directory of one"):
            run("hook", f"{place}/x")


@pytest.mark.parametrize(
    ("name", "binding", "row"),
    [
        ("a.py", "schedule", "schedule"),
        ("a.sh", "kubernetes", "kubernetes"),
        ("a", "beforeHelm", "beforeHelm"),
    ],
)
def test_a_new_hook_is_one_with_this_binding(name: str, binding: str, row: str) -> None:
    run("module", "web")
    path = pathlib.Path(run("hook", f"web/{name}", "--on", binding).splitlines()[0])
    assert path.suffix == (".sh" if name.endswith(".sh") else ".py")
    report = hooks_check.check(hook_places.configured({}).below(path))
    assert [(bound.binding, file.errors) for file in report.files for bound in file.bindings] == [(row, ())]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["first.py"], "write MODULE/NAME"),
        (["shop/first.py"], "there is no module 'shop' in /.*/modules; name its directory"),
        (["wbe/first.py"], "there is no module 'wbe' in /.*/modules; did you mean 'web'?"),
        (["web/first.py"], "first.py is there already"),
        (["web/Second.py"], "is not a name for a hook"),
        (["web/second.sh", "--language", "python"], "is a hook in bash"),
        (["web/second.sh", "--hook", "python"], "is a hook in bash"),
    ],
)
def test_a_hook_that_cannot_be_is_refused(arguments: list[str], said: str) -> None:
    run("module", "web", "--hook", "python")
    before = {path: path.read_bytes() for path in pathlib.Path().rglob("*") if path.is_file()}
    with pytest.raises(new_hook.NewHookError, match=said):
        run("hook", *arguments)
    assert {path: path.read_bytes() for path in pathlib.Path().rglob("*") if path.is_file()} == before


def test_a_schema_that_does_not_allow_what_the_hook_sets_is_told() -> None:
    run("module", "web")
    assert "Note" not in run("hook", "web/one")
    schemas = pathlib.Path("modules/010-web/openapi")
    schemas.mkdir()
    (schemas / "values.yaml").write_text("type: object\n")
    assert f"allow it in {schemas}/values.yaml" in run("hook", "web/two")
