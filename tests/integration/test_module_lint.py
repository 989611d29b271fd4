"""``module lint`` with a real Helm and the schemas of a real API server: what charts render to."""

import itertools
import json
import os
import pathlib
from collections.abc import Mapping
from typing import Final

import pytest
from click import testing

from addon_operator.cli import main
from addon_operator.devcluster import handle

HOOK = "#!/bin/sh\necho '{configVersion: v1, beforeHelm: 1}'\n"
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.web.replicaCount }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""


class Module:
    """A module on disk, whose chart is ``chart`` below it, or the module itself."""

    def __init__(self, root: pathlib.Path, name: str = "web") -> None:
        self.path = root / f"010-{name}"
        self.write("values.yaml", f"{name}Enabled: true\n{name}: {{replicaCount: 1}}\n")

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def lint(self) -> tuple[list[tuple[str, str]], str]:
        """What was found, and the notes."""
        arguments = ["module", "lint", str(self.path.parent), "-o", "json"]
        ran = testing.CliRunner().invoke(main.cli, arguments, standalone_mode=False)
        assert ran.exception is None
        found = [(row["level"], row["problem"]) for row in json.loads(ran.stdout)]
        assert ran.return_value == int(any(level == "error" for level, _ in found))
        return found, ran.stderr


@pytest.fixture
def module(tmp_path: pathlib.Path, devcluster: handle.DevCluster, monkeypatch: pytest.MonkeyPatch) -> Module:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HELM_BIN_PATH", str(devcluster.helm))
    return Module(tmp_path / "modules")


def test_a_mistake_in_other_modules_keeps_no_chart_from_being_looked_at(module: Module) -> None:
    module.write("templates/web.yaml", "{{ if }}")
    for name in ("020-two", "030-two"):
        (module.path.parent / name).mkdir()
    assert any("missing value for if" in problem for _, problem in module.lint()[0])


WRONG = (
    ("a: {{ foo }}\n", ':1): function "foo" not defined'),
    ("a: {{ .Values.a\n", ":2): unclosed action"),
    ('a: {{ include "web.none" . }}\n', "no template "),
    ("a: b: c\n", "mapping values are not allowed"),
    ("a: {{ .Values.global.none.b }}\n", "nil pointer evaluating"),
    ("a: 1\n", "renders an object without apiVersion"),
)


def test_templates_that_are_wrong_are_named_as_they_lie_in_their_modules(module: Module) -> None:
    expected = []
    for number, (chart, (template, said)) in enumerate(itertools.product(("", "chart/", "own/"), WRONG)):
        one = Module(module.path.parent, f"wrong{number}")
        if chart:
            one.write(f"{chart}Chart.yaml", "apiVersion: v2\nname: upstream\nversion: 1.0.0\n")
        one.write(f"{chart}templates/a.yaml", template)
        one.write("module.yaml", "chart: {path: own}\n" if chart == "own/" else f"releaseName: a{number}\n")
        expected.append((f"{one.path}/{chart}templates/a.yaml", said))
    found = module.lint()[0]
    assert {level for level, _ in found} == {"error"}
    of_files = {
        file: [problem for _, problem in found if file in problem] for file in (file for file, _ in expected)
    }
    assert {file: len(problems) for file, problems in of_files.items()} == dict.fromkeys(of_files, 1)
    assert [said for file, said in expected if said not in of_files[file][0]] == []
    assert len(found) == len(expected)


def line_of(file: pathlib.Path, text: str) -> int:
    lines = file.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_what_is_rendered_is_checked_by_the_schemas_of_kubernetes(module: Module) -> None:
    module.write("templates/deployment.yaml", DEPLOYMENT)
    assert module.lint() == ([], "")
    module.write("values.yaml", "web: {replicaCount: many}\n")
    module.write("hooks/hook.sh", HOOK, 0o755)
    module.write(
        "templates/more.yaml",
        DEPLOYMENT.replace("{name: web}\nspec", "{name: more}\nspec").replace(
            "replicas: {{", "replica: 1 # {{"
        ),
    )
    found, _ = module.lint()
    file = module.path / "templates" / "deployment.yaml"
    assert found[0][0] == "error"
    assert found[0][1].startswith(
        f"{file}:{line_of(file, 'replicas:')} renders Deployment web, which Kubernetes v"
    )
    assert found[0][1].endswith("refuses: spec.replicas must be an integer")
    assert found[1][0] == "error"
    assert "of which Kubernetes v" in found[1][1]
    assert "drops what it does not know" in found[1][1]
    assert found[1][1].endswith("spec.replica is no field of it; did you mean 'replicas'?")


SLIPS = """\
apiVersion: apps/v1
kind: Deploymnt
metadata: {name: a, labels: {a: {{ .Values.web.nmae | quote }}}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {externalTrafficPolicy: "", ports: [{port: {{ .Values.web.prot | default 80 }}}]}
"""
STOCK = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: stock}
data: {tag: {{ .Values.image.registry | quote }}, podlabels: {{ .Values.podLabel | quote }}}
"""


def test_slips_of_the_keyboard_are_found_without_a_schema(module: Module, tmp_path: pathlib.Path) -> None:
    module.write("Chart.yaml", "apiVersion: v2\nname: web\nversion: 0.1.0\n")
    module.write("values.yaml", "webEnabled: true\nweb: {name: x, port: 80}\n")
    module.write("templates/slips.yaml", SLIPS)
    stock = Module(tmp_path / "modules", "stock")
    stock.write("values.yaml", "stockEnabled: true\nstock: {image: {registy: a}, podLabel: b, other: {}}\n")
    stock.write("chart/Chart.yaml", "apiVersion: v2\nname: stock\nversion: 0.1.0\n")
    stock.write("chart/values.yaml", "image: {registry: a}\npodLabels: {}\nnodeSelector: {}\n")
    stock.write("chart/templates/a.yaml", STOCK)
    found, _ = module.lint()
    file = module.path / "templates" / "slips.yaml"
    assert [each for each in found if each[0] == "warning"] == [
        (
            "warning",
            f"{stock.path}/values.yaml: the chart has no value stock.image.registy; did you mean 'registry'?",
        ),
        ("warning", f"{file}:3 reads .Values.web.nmae, which no file sets; did you mean 'name'?"),
        ("warning", f"{file}:8 reads .Values.web.prot, which no file sets; did you mean 'port'?"),
    ]
    (wrong,) = (text for level, text in found if level == "error")
    assert wrong.endswith("refuses: apps/v1 has no such kind; did you mean 'Deployment'?")


def test_what_several_examples_show_is_told_once(module: Module) -> None:
    module.write("templates/deployment.yaml", DEPLOYMENT.replace("image: web}", "imag: web}"))
    for name, replicas in (("few", "1"), ("many", "many"), ("more", "more")):
        module.write(f"examples/{name}.yaml", f"web: {{replicaCount: {replicas}}}\n")
    (always, by_examples), _ = module.lint()
    assert always[1].endswith(
        "spec.template.spec.containers[0].imag is no field of it; did you mean 'image'?"
    )
    examples = module.path / "examples"
    assert by_examples[1].endswith(
        f"spec.replicas must be an integer; with the values of {examples}/many.yaml, {examples}/more.yaml"
    )


def test_an_object_of_two_modules_is_named_at_the_one_that_leaves_it_out(module: Module) -> None:
    for each in (module, Module(module.path.parent, "zoo")):
        each.write("templates/same.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same}\n")
    ((level, problem),), _ = module.lint()
    assert level == "warning"
    assert problem.startswith(f"{module.path}/templates/same.yaml:")
    assert (
        "renders ConfigMap same, which module zoo renders too: with both enabled it belongs to zoo" in problem
    )


def test_a_chart_that_has_data_deleted_by_itself_is_named(module: Module) -> None:
    claim = (
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, annotations: {helm.sh/hook: "
        "pre-install}}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
    )
    module.write("templates/claim.yaml", claim)
    ((level, problem),), _ = module.lint()
    assert level == "warning"
    assert f"{module.path}/templates/claim.yaml" in problem
    assert "renders PersistentVolumeClaim data, which is one of Helm's hooks: Helm deletes it" in problem
    module.write(
        "templates/claim.yaml",
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  serviceName: db\n"
        "  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}\n  selector: {matchLabels: {a: b}}\n"
        "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: db, image: db}]}}\n",
    )
    problems = [problem for _, problem in module.lint()[0]]
    assert any("has its claims deleted with it" in each for each in problems), problems


def test_what_a_list_has_twice_and_what_is_not_a_quantity_are_told(module: Module) -> None:
    """The API server says so when Helm 4 applies it, and drops one of them when Helm 3 patches it."""
    more = "image: web, env: [{name: A}, {name: A}], resources: {limits: {cpu: 12x}}}"
    module.write("templates/deployment.yaml", DEPLOYMENT.replace("image: web}", more))
    found, _ = module.lint()
    container = "spec.template.spec.containers[0]"
    assert [(level, problem.rpartition(" refuses: ")[2]) for level, problem in found] == [
        ("error", f"{container}.resources.limits.cpu must be a quantity such as 100m or 1Gi, and not '12x'"),
        ("warning", f'{container}.env[1] has the name "A" of {container}.env[0]; remove one of them'),
    ]


INCOMPLETE: Final[Mapping[str, tuple[dict[str, str], str]]] = {
    "required": (
        {"templates/a.yaml": '{{ required "say it" .Values.KEY.name }}'},
        "the chart demands values",
    ),
    "fail": ({"templates/a.yaml": '{{ fail "say it" }}'}, "the chart demands values"),
    "lookup": (
        {"templates/a.yaml": '{{ (lookup "v1" "Secret" "a" "b").data.x.y }}'},
        "the chart looks up",
    ),
    "hooks": ({"templates/a.yaml": "{{ index .Values.KEY.a 3 }}", "hooks/a": HOOK}, "hooks may set"),
    "variable": (
        {"templates/a.yaml": "{{ $w := .Values.KEY }}{{ $w.a.b }}", "hooks/a": HOOK},
        "has the field 'b'",
    ),
    "disabled": (
        {"templates/a.yaml": "{{ index .Values.KEY.a 3 }}", "values.yaml": "KEY: {}"},
        "it is off by default",
    ),
    "schema": (
        {
            "templates/a.yaml": "a: {{ .Values.KEY.a.b | toYaml }}: c: d",
            "openapi/values.yaml": "{type: object, x-required-for-helm: [a]}",
        },
        "its values are not complete: schema must have the key 'a'",
    ),
}


@pytest.mark.slow
def test_values_that_files_alone_do_not_give_are_no_mistake_of_the_chart(module: Module) -> None:
    for name, (files, _) in INCOMPLETE.items():
        one = Module(module.path.parent, name)
        for file, text in files.items():
            one.write(file, text.replace("KEY", name), 0o755)
    found, notes = module.lint()
    assert found == []
    told = {name: [line for line in notes.splitlines() if f"module {name} is" in line] for name in INCOMPLETE}
    assert {
        name: lines
        for name, lines in told.items()
        if len(lines) != 1 or "not checked beyond this" not in lines[0] or INCOMPLETE[name][1] not in lines[0]
    } == {}


def test_a_file_that_helm_never_takes_is_a_mistake_of_a_module_that_is_off_by_default_too(
    module: Module,
) -> None:
    module.write("values.yaml", "web: {}")
    module.write("templates/a.yaml", "")
    module.write("files/data.txt", "a" * (5 * 1024 * 1024 + 1))
    ((level, problem),) = module.lint()[0]
    assert (level, "leave the file out of the chart" in problem) == ("error", True)


def test_what_is_not_looked_at_is_said_in_a_line(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    module.write("templates/deployment.yaml", DEPLOYMENT)
    monkeypatch.setenv("ADDON_OPERATOR_DEVCLUSTER_CACHE", str(module.path))
    found, notes = module.lint()
    assert (found, len(notes.splitlines())) == ([], 1)
    assert "'addon-operator devcluster up' puts them there" in notes
    monkeypatch.delenv("HELM_BIN_PATH")
    monkeypatch.setenv("PATH", os.fspath(module.path))
    assert "charts are not rendered: there is no 'helm' in PATH" in module.lint()[1]


SCHEMA = """
type: object
properties:
  internal:
    type: object
    properties:
      replicas: {type: integer}
      image: {type: string, x-examples: [registry.example/web:1]}
"""


@pytest.mark.slow
def test_what_only_hooks_set_is_rendered_with_samples_by_the_schema(module: Module) -> None:
    module.write("openapi/values.yaml", SCHEMA)
    module.write("values.yaml", "webEnabled: true\n")
    module.write("hooks/hook.sh", HOOK, 0o755)
    chart = DEPLOYMENT.replace("web.replicaCount", "web.internal.replicas").replace(
        "image: web", "image: {{ .Values.web.internal.image }}"
    )
    module.write("templates/deployment.yaml", chart)
    assert module.lint() == ([], "")
    module.write("templates/deployment.yaml", chart.replace("replicas:", "replica:"))
    assert [problem.rpartition(": ")[2] for _, problem in module.lint()[0]] == [
        "spec.replica is no field of it; did you mean 'replicas'?"
    ]


def test_what_no_schema_speaks_of_is_rendered_as_empty(module: Module) -> None:
    module.write("values.yaml", "webEnabled: true\n")
    module.write("hooks/hook.sh", HOOK, 0o755)
    module.write("templates/deployment.yaml", DEPLOYMENT.replace("web.replicaCount", "web.internal.replicas"))
    assert module.lint() == ([], "")


def test_two_templates_that_render_one_object_are_both_named(module: Module) -> None:
    module.write("templates/deployment.yaml", DEPLOYMENT)
    module.write("templates/more.yaml", DEPLOYMENT.replace("replicas: {{", "replicas: 2 # {{"))
    ((level, problem),) = module.lint()[0]
    assert level == "error"
    assert f"renders Deployment web, which {module.path}/templates/" in problem
