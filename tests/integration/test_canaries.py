"""Secrets that are put into everything the operator reads, and looked for in everything that it shows."""

import base64
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Final

import pytest

from addon_operator.devcluster import handle
from tests.integration import operator_process, operator_site, receivers

pytestmark = pytest.mark.integration

CANARY: Final = "canary-5up3r-{}"
_ENCODED: Final = base64.b64encode(b"canary-5up3r").decode()
_SCHEMA: Final = """\
type: object
properties:
  password: {type: string, x-sensitive: true, maxLength: 60}
  number: {type: integer, x-sensitive: true}
  users:
    type: array
    items:
      type: object
      properties:
        name: {type: string}
        key: {type: string, x-sensitive: true, pattern: '^[a-z0-9-]*$'}
"""
_SECRET_TEMPLATE: Final = """\
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}
stringData:
  password: {{ .Values.NAME.password | quote }}
"""
_FAILING_TEMPLATE: Final = '{{ fail (printf "the password %s is too weak" .Values.NAME.password) }}\n'


def module(site: operator_site.Site, name: str, *, template: str = "", values: str = "") -> pathlib.Path:
    """A module whose schemas call its password sensitive."""
    path = site.module(
        f"010-{name}", {} if template else None, values=f"{name}Enabled: true\n{name}: {{{values}}}\n"
    )
    (path / "openapi").mkdir()
    for file in ("config-values.yaml", "values.yaml"):
        (path / "openapi" / file).write_text(_SCHEMA)
    if template:
        (path / "templates" / "configmap.yaml").write_text(template.replace("NAME", name))
    return path


def write_modules(site: operator_site.Site) -> None:
    """Modules that work, and modules whose every kind of output is wrong, each with a canary in it."""
    good = module(site, "good", template=_SECRET_TEMPLATE)
    good_patch = [
        {"op": "add", "path": "/good/password", "value": CANARY.format("from-hook")},
        {"op": "add", "path": "/good/users", "value": [{"name": "a", "key": CANARY.format("in-list")}]},
    ]
    site.hook(
        good, "values.sh", {"beforeHelm": 1}, f"echo '{json.dumps(good_patch)}' > $VALUES_JSON_PATCH_PATH"
    )
    stored = {
        "operation": "CreateOrUpdate",
        "object": {
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "by-hook", "namespace": site.namespace},
            "stringData": {"key": CANARY.format("stored")},
        },
    }  # fmt: skip
    site.hook(good, "store.sh", {"afterHelm": 1}, f"echo '{json.dumps(stored)}' > $KUBERNETES_PATCH_PATH")
    bind_secrets(site, good)
    module(site, "helm", template=_FAILING_TEMPLATE, values=f"password: {CANARY.format('helm')}")
    for name, file, text in wrong_outputs(site.namespace):
        body = f"cat > ${file} <<'OUTPUT'\n{text}\nOUTPUT\n"
        site.hook(module(site, name), "wrong.sh", {"beforeHelm": 1}, body)


def bind_secrets(site: operator_site.Site, owner: pathlib.Path) -> None:
    """Hooks that watch a Secret; the jq program of one fails with the value in its message."""
    for name, program in (("plain", ".data.key | @base64d"), ("broken", ".data.key | @base64d | tonumber")):
        watched = {
            "name": "secrets",
            "apiVersion": "v1",
            "kind": "Secret",
            "nameSelector": {"matchNames": ["source"]},
            "namespace": {"nameSelector": {"matchNames": [site.namespace]}},
            "jqFilter": program,
        }
        site.hook(owner, f"{name}.sh", {"kubernetes": [watched]})


def wrong_outputs(namespace: str) -> Iterator[tuple[str, str, str]]:
    """Module, output file, content: each is refused, and says something about a canary."""
    values, objects = "VALUES_JSON_PATCH_PATH", "KUBERNETES_PATCH_PATH"
    secret = {"kind": "Secret", "apiVersion": "v1", "name": "source", "namespace": namespace}
    yield "cut", values, f'[{{"op": "add", "path": "/cut/password", "value": "{CANARY.format("cut")}'
    yield (
        "test",
        values,
        json.dumps([{"op": "test", "path": "/test/password", "value": CANARY.format("test")}]),
    )
    yield "type", values, json.dumps([{"op": "add", "path": "/type/number", "value": CANARY.format("type")}])
    yield (
        "nested",
        values,
        json.dumps([{"op": "add", "path": "/nested/users", "value": [{"key": CANARY.format("UPPER")}]}]),
    )
    yield (
        "config",
        "CONFIG_VALUES_JSON_PATCH_PATH",
        json.dumps([{"op": "add", "path": "/config/password", "value": CANARY.format("long" * 20)}]),
    )
    yield (
        "jq",
        objects,
        json.dumps({"operation": "JQPatch", "jqFilter": ".data.key | @base64d - 1", **secret}),
    )
    yield "jsonpatch", objects, json.dumps(
        {
            "operation": "JSONPatch", **secret,
            "jsonPatch": [{"op": "test", "path": "/data/key", "value": CANARY.format("jsonpatch")}],
        }
    )  # fmt: skip
    yield (
        "merge",
        objects,
        json.dumps(
            {"operation": "MergePatch", **secret, "mergePatch": {"data": {"key": CANARY.format("merge")}}}
        ),
    )
    yield "create", objects, json.dumps(
        {
            "operation": "Create",
            "object": {
                "apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "Wrong", "namespace": namespace},
                "stringData": {"key": CANARY.format("create")},
            },
        }
    )  # fmt: skip
    yield (
        "field",
        objects,
        json.dumps(
            {
                "operation": "Create",
                "object": {"kind": "Secret", "stringData": {"key": CANARY.format("field")}},
                "extra": 1,
            }
        ),
    )
    yield "metric", "METRICS_PATH", json.dumps({"name": "x y", "set": CANARY.format("metric")})


@pytest.fixture
def receiver(site: operator_site.Site) -> Iterator[receivers.Receiver]:
    """Gets notifications of everything that can be told; its address has a canary, too."""
    with receivers.receiving() as made:
        kinds = (
            "[failed, recovered, unhealthy, drifted, upgraded, rolledBack, heldBack, hookFails, chartLost]"
        )
        url = f"{made.url}/{CANARY.format('address')}"
        text = f'targets: [{{name: ops, url: "{url}", format: cloudevents, on: {kinds}, after: 1s, hmacKey: '
        text += f"{CANARY.format('hmac')}}}]"
        site.create("secret", "addon-operator-notify", {"stringData": {"notify.yaml": text}})
        yield made


def told_of(receiver: receivers.Receiver) -> set[str]:
    """The modules that notifications are about, so far."""
    bodies = (json.loads(body) for _, _, body in list(receiver.got))
    return {item["module"] for body in bodies for item in body["data"]["items"]}


def shown_by(
    operator: operator_process.OperatorProcess,
    site: operator_site.Site,
    cluster: handle.DevCluster,
    receiver: receivers.Receiver,
) -> Iterator[tuple[str, str]]:
    """Every place where people look, and what it shows."""
    yield "notifications", "\n".join(body.decode() for _, _, body in receiver.got)
    yield "the log", operator.log
    for path in ("/metrics", "/status/converge", "/status/converge?output=json", "/readyz", "/healthz", "/"):
        yield path, operator.get(path).text
    yield "Events", json.dumps(site.listed("event"), indent=1)
    yield "modules", json.dumps(site.listed("module"), indent=1)
    for arguments in (
        ("module", "list"), ("module", "values", "good"), ("module", "config", "good"),
        ("module", "patches", "good"),
        ("module", "render", "good"), ("module", "render", "helm"), ("module", "values", "-g", "good"),
        ("module", "snapshots", "good"), ("module", "resource-monitor"),
        ("global", "values"), ("global", "config"), ("queue", "list"), ("notify", "list"),
    ):  # fmt: skip
        yield " ".join(arguments), debugged(site, *arguments)


def debugged(site: operator_site.Site, *arguments: str) -> str:
    """What a debug command prints, on both outputs."""
    done = site.command(*arguments, "-o", "yaml")
    return done.stdout + done.stderr


def leaks(text: str) -> list[str]:
    """Lines that show a canary."""
    return [line for line in text.splitlines() if "5up3r" in line or _ENCODED in line]


def test_no_secret_is_shown_anywhere_and_none_is_left_behind(
    devcluster: handle.DevCluster, site: operator_site.Site, receiver: receivers.Receiver
) -> None:
    write_modules(site)
    site.create("secret", "source", {"stringData": {"key": CANARY.format("source")}})
    site.config(good=f"password: {CANARY.format('configured')}\n")
    operator = site.start(CONVERGE_ON_FAILURE="continue", LOG_LEVEL="debug")
    names = ["helm", *(name for name, _, _ in wrong_outputs(site.namespace))]
    for name in names:
        operator.wait_metric(1, "module_run_errors_total", module=name)
    operator.wait_until(lambda: "good" in site.revisions(), "the module that works is released")
    for wrong in (
        f"password: [{CANARY.format('broken')}\n",
        f"number: {CANARY.format('number')}\n",
        f"password: {CANARY.format('dup')}\npassword: {CANARY.format('dup')}\n",
    ):
        before = operator.metrics().total("config_values_errors_total")
        site.config(good=wrong)
        operator.wait_metric(before + 1, "config_values_errors_total")
    operator.wait_until(lambda: told_of(receiver) >= set(names), "people are told of all that failed")
    found = [
        f"{place}: {line[:600]}"
        for place, text in shown_by(operator, site, devcluster, receiver)
        for line in leaks(text)
    ]
    assert not found, "\n".join(found)
    operator.stop()
    assert leaks(operator.log) == []
    assert [str(path) for path in files_below(site.root / "tmp")] == []


_REFUSED: Final = {
    # An object of some kilobytes: Helm 3 quotes it whole, before the reason.
    "leak": f"""\
apiVersion: v1
kind: Secret
metadata:
  name: {{{{ .Release.Name }}}}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {{"stringData":{{"a":"{CANARY.format("annotation")}"}}}}
data:
  big: {base64.b64encode((CANARY.format("big") + "x" * 3000).encode()).decode()}
stringData:
  text: {CANARY.format("text")}
  port: {{{{ .Values.leak.port }}}}
""",
    "scale": f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: scale}}
spec:
  replicas: {{{{ .Values.scale.port }}}}
  selector: {{matchLabels: {{app: scale}}}}
  template:
    metadata: {{labels: {{app: scale}}}}
    spec:
      containers:
      - {{name: c, image: x, env: [{{name: PASSWORD, value: {CANARY.format("env")}}}]}}
""",
    "alias": """\
apiVersion: v1
kind: ConfigMap
metadata: {name: alias}
data:
  a: {{ .Values.alias.port }}
""",
    "says": """\
{{ if ne .Values.says.port "x" }}{{ fail (printf "the port %s is odd" .Values.says.port) }}{{ end }}
""",
}
"""Templates whose release works with the port "x", and is refused with another."""
_BROKEN: Final = {
    "leak": "5433",
    "scale": "abc",
    "alias": f'"*{CANARY.format("alias")}"',
    "says": CANARY.format("says"),
}
_REASONS: Final = {
    "leak": ("string", "Secret"),
    "scale": ("spec.replicas",),
    "alias": ("unknown anchor",),
    "says": ("the port *** is odd",),
}


@pytest.mark.slow
@pytest.mark.parametrize("helm", ["helm3", pytest.param("helm4", marks=pytest.mark.slow)], indirect=True)
def test_a_refused_release_is_reported_with_its_reason_and_without_what_it_holds(
    devcluster: handle.DevCluster,
    site: operator_site.Site,
    helm: pathlib.Path,
    receiver: receivers.Receiver,
) -> None:
    for name, template in _REFUSED.items():
        path = site.module(
            f"010-{name}",
            {},
            values=f"{name}Enabled: true\n{name}: {{port: {'1' if name == 'scale' else 'x'}}}\n",
        )
        (path / "templates" / "configmap.yaml").write_text(template)
    refused = {
        "operation": "Create",
        "object": {
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "by-hook", "namespace": site.namespace},
            "spec": {"replicas": CANARY.format("hook")},
        },
    }  # fmt: skip
    hooks = site.module("020-hooks", values="hooksEnabled: true\n")
    site.hook(
        hooks, "refused.sh", {"beforeHelm": 1}, f"echo '{json.dumps(refused)}' > $KUBERNETES_PATCH_PATH"
    )
    # What Helm says of objects that it finds wrong itself is a part of this.
    site.use_helm(helm, validates=True)
    operator = site.start(CONVERGE_ON_FAILURE="continue", LOG_LEVEL="debug")
    operator.wait_metric(1, "module_run_errors_total", module="hooks")
    operator.wait_until(lambda: len(site.revisions()) == len(_REFUSED), "all modules are released")
    site.config(**{name: f"port: {port}\n" for name, port in _BROKEN.items()})
    for name in _BROKEN:
        operator.wait_metric(1, "module_run_errors_total", module=name)
    told = operator.wait_until(lambda: _last_errors(devcluster, site), "the status of all modules")
    for name, words in _REASONS.items():
        assert all(word in told[name] for word in words), told[name]
    operator.wait_until(lambda: told_of(receiver) >= _BROKEN.keys(), "people are told of all that failed")
    # What a chart says may hold values that nobody called sensitive: the log and debug commands show it.
    said = CANARY.format("says")
    found = [
        f"{place}: {line[:600]}"
        for place, text in shown_by(operator, site, devcluster, receiver)
        for line in leaks(text)
        if said not in line or place in ("notifications", "Events", "modules", "/", "/metrics")
    ]
    assert not found, "\n".join(found)
    operator.stop()
    assert [line for line in leaks(operator.log) if said not in line] == []
    assert [line for line in operator.log.splitlines() if "eHh4eHh4" in line] == []


_OPEN_SCHEMA: Final = """\
type: object
properties:
  password: {type: string, maxLength: 40}
  size: {type: integer}
  tokens: {type: array, items: {type: string, maxLength: 40}}
  dotted.key: {type: string}
  users: {type: array, items: {type: object}}
x-kubernetes-validations:
- rule: "!self.password.startsWith('bad')"
"""
_OPEN_TEMPLATE: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data:
  url: postgres://{{ .Values.NAME.password }}@db
  values: {{ toJson .Values | quote }}
"""


def _write_open_modules(site: operator_site.Site) -> None:
    """Modules whose schemas call nothing sensitive, and whose charts show all that they get."""
    for name, template in (("open", _OPEN_TEMPLATE), ("fails", _FAILING_TEMPLATE)):
        path = site.module(f"010-{name}", {}, values=f"{name}Enabled: true\n")
        (path / "openapi").mkdir()
        for file in ("config-values.yaml", "values.yaml"):
            (path / "openapi" / file).write_text(_OPEN_SCHEMA)
        (path / "templates" / "configmap.yaml").write_text(template.replace("NAME", name))
    values = json.dumps([{"op": "add", "path": "/open/password", "value": CANARY.format("by-hook")}])
    wrong = json.dumps([{"op": "add", "path": "/open/tokens", "value": "no list"}])
    config = json.dumps([{"op": "add", "path": "/open/password", "value": "written"}])
    body = f"""
    if [[ -f $TRACE.wrong ]]; then echo '{wrong}' > $VALUES_JSON_PATCH_PATH; exit 0; fi
    echo '{values}' > $VALUES_JSON_PATCH_PATH
    echo '{config}' > $CONFIG_VALUES_JSON_PATCH_PATH
    """
    site.hook(site.modules / "010-open", "patch.sh", {"beforeHelm": 1}, body)


def test_nothing_that_the_values_secret_sets_is_shown_anywhere(
    devcluster: handle.DevCluster, site: operator_site.Site, receiver: receivers.Receiver
) -> None:
    _write_open_modules(site)

    def section(name: str) -> str:
        word = CANARY.format(name)
        inner = f"dotted.key: {word}-dotted\nusers: [{{name: a, keys: [{word}-inner]}}]\n"
        return f"password: {word}\ntokens: [{word}-token]\nsize: 7\n{inner}"

    site.secret(**{
        "open": section("open"),
        "fails": section("fails"),
        "global": f"key: {CANARY.format('global')}\n",
    })  # fmt: skip
    operator = site.start(CONVERGE_ON_FAILURE="continue", LOG_LEVEL="debug")
    operator.wait_metric(1, "module_run_errors_total", module="fails")
    operator.wait_until(lambda: "open" in site.revisions(), "the module that works is released")
    assert "the password *** is too weak" in operator.log
    for number, wrong in enumerate(
        (
            f"password: [{CANARY.format('broken')}\n",
            f"? {CANARY.format('key')}\n: 1\n{CANARY.format('key')}: 1\n",
            f"password: *{CANARY.format('alias').replace('-', '')}\n",
            f"size: {CANARY.format('size')}\n",
            f"password: bad{CANARY.format('rule')}\n",
            f"password: {CANARY.format('long' * 20)}\n",
            f"tokens: [[{CANARY.format('list')}]]\n",
            CANARY.format("text"),
            f"- {CANARY.format('list')}\n",
        ),
        start=1,
    ):
        site.secret(open=wrong)
        operator.wait_metric(number, "config_values_errors_total")
    site.secret(open=section("open"), openEnabled=CANARY.format("switch"))
    operator.wait_metric(10, "config_values_errors_total")
    site.secret(open=section("edited"), openEnabled=None, openMaintenance=CANARY.format("mode"))
    operator.wait_metric(11, "config_values_errors_total")
    (site.root / "trace.wrong").touch()
    site.secret(open=section("again"), openMaintenance=None)
    operator.wait_metric(1, "module_run_errors_total", module="open")
    commands = (
        ("module", "values", "open"), ("module", "config", "open"), ("module", "patches", "open"),
        ("module", "render", "open"), ("module", "render", "open", "--diff"),
        ("module", "values", "-g", "open"),
        ("plan",),
    )  # fmt: skip
    shown = [*shown_by(operator, site, devcluster, receiver)]
    shown += [(" ".join(arguments), debugged(site, *arguments)) for arguments in commands]
    found = [f"{place}: {line[:600]}" for place, text in shown for line in leaks(text)]
    assert not found, "\n".join(found)
    assert "***" in debugged(site, "module", "config", "open")
    operator.stop()
    assert leaks(operator.log) == []
    assert leaks(str(site.data(operator_site.CONFIG_MAP))) == []
    assert [str(path) for path in files_below(site.root / "tmp")] == []
    (site.root / "trace.wrong").unlink()
    planned = site.command("plan")
    assert "postgres://***@db" in planned.stdout
    assert leaks(planned.stdout + planned.stderr) == []
    # What the Secret does not set any more is still in the release, and in what differs from it.
    site.secret(open=None)
    planned = site.command("plan")
    assert "dotted.key" in planned.stdout
    assert [word for word in ("-token", "-dotted", "-inner") if word in planned.stdout + planned.stderr] == []


def _last_errors(cluster: handle.DevCluster, site: operator_site.Site) -> dict[str, str] | None:
    """Module → last error, once each of them has one."""
    told = {
        each["metadata"]["name"]: each.get("status", {}).get("lastError", "")
        for each in site.listed("module")
    }
    return told if all(told.get(name) for name in (*_BROKEN, "hooks")) else None


def test_temporary_files_are_for_the_operator_alone(site: operator_site.Site) -> None:
    slow = "stat --format '%a %n' $VALUES_PATH $BINDING_CONTEXT_PATH $(dirname $VALUES_PATH) > $TRACE.modes\n"
    site.hook(site.module("010-web", values="webEnabled: true\n"), "look.sh", {"beforeHelm": 1}, slow)
    operator = site.start()
    operator.wait_ready()
    modes = [line.split()[0] for line in (site.root / "trace.modes").read_text().splitlines()]
    assert modes == ["600", "600", "700"]
    for directory in (
        path for path in (site.root / "tmp").rglob("*") if path.is_dir() and not path.is_symlink()
    ):
        assert directory.stat().st_mode & 0o077 == 0, directory
    operator.stop()


def files_below(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """All files, at any depth."""
    for root, _, names in os.walk(directory):
        yield from (pathlib.Path(root) / name for name in names)
