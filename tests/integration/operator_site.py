"""What an operator is pointed at: modules and hooks on disk, a namespace, a ConfigMap, a counted helm."""

import base64
import dataclasses
import http
import json
import os
import pathlib
import subprocess
import textwrap
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

import addon_operator
from addon_operator.debug import debug_client
from addon_operator.devcluster import api, handle, layout
from tests.integration import cluster_objects, counted_helm, operator_forks, operator_process

CONFIG_MAP: Final = "addon-operator"
"""Default name of the values ConfigMap."""

SOON: Final = 0.5
"""Seconds until a second try, for tests that wait for it."""

LEASE_SECONDS: Final = 8.0
SHORT_LEASE: Final = {
    "ADDON_OPERATOR_HA": "true",
    "LEASE_DURATION": f"{LEASE_SECONDS:g}s",
    "LEASE_RENEW_DEADLINE": "6500ms",
    "LEASE_RETRY_PERIOD": "500ms",
}
"""For tests that wait for its end; who is held up for some seconds on a busy machine does not lose it."""

_EXECUTABLE: Final = 0o755
_HOOK: Final = """\
#!/bin/bash
set -euo pipefail
if [[ "${{1:-}}" == "--config" ]]; then
  read -r -d '' config <<'CONFIG' || true
{config}
CONFIG
  printf '%s' "$config"
  exit 0
fi
# Without a process for each of them: there are thousands of these runs.
read -r -d '' contexts < "$BINDING_CONTEXT_PATH" || true
read -r -d '' values < "$VALUES_PATH" || true
read -r -d '' config < "$CONFIG_VALUES_PATH" || true
printf '{{"hook":"%s","contexts":%s,"values":%s,"config":%s}}\\n' \\
  '{name}' "${{contexts//$'\\n'/}}" "${{values//$'\\n'/}}" "${{config//$'\\n'/}}" >> "$TRACE"
{body}
"""
_CHART: Final = """\
apiVersion: v2
name: {name}
version: 0.1.0
"""
_CONFIG_MAP_TEMPLATE: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
"""


@dataclasses.dataclass(frozen=True, slots=True)
class HookRun:
    """What one run of a hook was given."""

    hook: str
    contexts: list[dict[str, Any]]
    values: dict[str, Any]
    config: dict[str, Any]

    @property
    def label(self) -> str:
        """Hook and binding, as in ``order.sh beforeHelm``."""
        return f"{self.hook} {self.contexts[0]['binding']}"


class RefusedError(Exception):
    """The API server, or a webhook that it asked, does not take an edit."""


class Site(cluster_objects.Objects):
    """Everything around one operator; one namespace and one directory per test."""

    def __init__(self, cluster: handle.DevCluster, namespace: str, root: pathlib.Path) -> None:
        super().__init__(api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url), namespace)
        self.root = root
        self.modules = root / "modules"
        self.global_hooks = root / "global-hooks"
        self.cluster = cluster
        self._trace = root / "trace"
        self._helm_calls = root / "helm-calls"
        self.first_retry: float | None = None
        """Seconds after which operators try a failed task again; they wait for five otherwise."""
        self.status_pause: float | None = 0.2
        """Seconds between two writes of Module objects, for which many tests wait; benchmarks take the
        operator's own."""
        self.holds: pathlib.Path | None = None
        """Where operators write down what held their loops; nowhere if there is none."""
        self.follows_health = True
        """Whether operators watch how resources are; benchmarks compare both."""
        self._operators: list[operator_process.OperatorProcess] = []
        for directory in (self.modules, self.global_hooks / "hooks", root / "tmp"):
            directory.mkdir(parents=True)
        self.helm = root / "helm"
        self.use_helm(cluster.helm)

    def use_helm(self, helm: pathlib.Path, *, validates: bool = False) -> None:
        """Have operators find this binary; what it is called for is counted.

        Whether it ``validates`` is whether Helm itself checks objects against the schemas of their kinds.
        """
        counted_helm.write(self.helm, helm, self._helm_calls, validates=validates)

    def module(
        self,
        directory: str,
        data: Mapping[str, str] | None = None,
        *,
        values: str = "",
        enabled: str | None = None,
    ) -> pathlib.Path:
        """Write a module whose chart is one ConfigMap, named like the release, with ``data`` as template.

        Without ``data`` it has no chart. ``enabled`` is the body of an enabled script.
        """
        path = self.modules / directory
        path.mkdir()
        if data is not None:
            self.chart(path, data)
        if values:
            (path / "values.yaml").write_text(textwrap.dedent(values))
        if enabled is not None:
            self.script(path / "enabled", enabled)
        return path

    def chart(self, module: pathlib.Path, data: Mapping[str, str]) -> None:
        """Write a module's chart anew."""
        (module / "templates").mkdir(exist_ok=True)
        (module / "Chart.yaml").write_text(_CHART.format(name=module.name.lstrip("0123456789-")))
        lines = (f"  {key}: {template}\n" for key, template in data.items())
        (module / "templates" / "configmap.yaml").write_text(_CONFIG_MAP_TEMPLATE + "".join(lines))

    def hook(
        self, owner: pathlib.Path, name: str, bindings: Mapping[str, object], body: str = ""
    ) -> pathlib.Path:
        """Write a hook of a module (or of :attr:`global_hooks`) that notes its runs and does ``body``."""
        config = json.dumps({"configVersion": "v1", **bindings})
        text = _HOOK.format(config=config, name=name, body=textwrap.dedent(body))
        return self.script(owner / "hooks" / name, text, exact=True)

    @staticmethod
    def script(path: pathlib.Path, text: str, *, exact: bool = False) -> pathlib.Path:
        """Write an executable; unless it is ``exact``, ``text`` is the body of a bash script."""
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if exact else "#!/bin/bash\nset -euo pipefail\n" + textwrap.dedent(text))
        path.chmod(_EXECUTABLE)
        return path

    def values(self, text: str) -> None:
        """Write the ``values.yaml`` of the modules directory."""
        (self.modules / "values.yaml").write_text(textwrap.dedent(text))

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment of an operator here; ``extra`` wins."""
        return {
            "PATH": f"{self.root}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.root),
            # The operator that is tested is the one beside these tests, wherever another one is installed.
            "PYTHONPATH": str(pathlib.Path(addon_operator.__file__).parents[1]),
            "TRACE": str(self._trace),
            "ADDON_OPERATOR_NAMESPACE": self.namespace,
            "KUBE_CONFIG": str(self.cluster.kubeconfig),
            "MODULES_DIR": str(self.modules),
            "GLOBAL_HOOKS_DIR": str(self.global_hooks),
            "ADDON_OPERATOR_TMP_DIR": str(self.root / "tmp"),
            "DEBUG_UNIX_SOCKET": str(self.root / "debug.socket"),
            "ADDON_OPERATOR_LISTEN_ADDRESS": "127.0.0.1",
            # The tests are about what is done, not about how the API server is spared.
            "KUBE_CLIENT_QPS": "0",
            # What is gone is waited for.
            "ABSENCE": "1s",
            # Each change on disk is seen by two looks at it.
            "WATCH_MODULES_INTERVAL": "300ms",
        } | dict(extra or {})

    def start(self, *arguments: str, **environment: str) -> operator_process.OperatorProcess:
        """Start an operator; it is killed at the end of the test if it still runs."""
        return self.start_with(arguments, self.environment(environment))

    def start_with(
        self, arguments: tuple[str, ...], environment: Mapping[str, str], *, port: int | None = None
    ) -> operator_process.OperatorProcess:
        """Start an operator with exactly that environment."""
        listen = operator_process.free_port() if port is None else port
        operator = operator_process.OperatorProcess(
            (*arguments, "--listen-port", str(listen)),
            environment,
            port=listen,
            log=self.root / f"operator-{len(self._operators)}.log",
            cwd=self.root,
            first_retry=self.first_retry,
            status_pause=self.status_pause,
            holds=self.holds,
            follows_health=self.follows_health,
        )
        self._operators.append(operator)
        return operator

    def command(
        self, *arguments: str, stdin: str = "", **environment: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of ``addon-operator`` beside the operators here, to its end, whatever that is."""
        return operator_forks.run(arguments, self.environment(environment), self.root, stdin)

    def module_rows(self) -> dict[str, dict[str, Any]]:
        """What ``module list -o json`` shows of each module, asked for without a command; nothing while no
        operator answers."""
        client = debug_client.DebugClient(self.root / "debug.socket")
        try:
            listed = client.get("/module/list.json")
        except debug_client.DebugClientError:
            return {}
        return {row["name"]: row for row in listed["modules"]}

    def close(self) -> None:
        """End what still runs."""
        for operator in self._operators:
            operator.kill()

    def runs(self) -> list[HookRun]:
        """All hook runs so far, of all operators here, in their order."""
        if not self._trace.exists():
            return []
        return [HookRun(**json.loads(line)) for line in self._trace.read_text().splitlines()]

    def labels(self) -> list[str]:
        """Hook and binding of all runs so far."""
        return [run.label for run in self.runs()]

    def helm_calls(self) -> list[str]:
        """The first words of all Helm processes so far that do more than tell their version."""
        if not self._helm_calls.exists():
            return []
        verbs = [line.split(" ", 1)[0] for line in self._helm_calls.read_text().splitlines()]
        return [verb for verb in verbs if verb != "version"]

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the test's namespace; what it printed."""
        return self.cluster.run_kubectl(f"--namespace={self.namespace}", *arguments).stdout

    def install(self, release: str, chart: pathlib.Path) -> None:
        """Install a release that is no business of the operator's."""
        self.cluster.run_helm(f"--namespace={self.namespace}", "install", release, str(chart))

    def uninstall(self, release: str) -> None:
        """Remove a release behind the operator's back."""
        self.cluster.run_helm(f"--namespace={self.namespace}", "uninstall", release)

    def objects(self, plural: str, **selectors: str) -> list[dict[str, Any]]:
        """The objects of a core kind in the test's namespace that match ``labelSelector``, ``fieldSelector``.

        Asked for without kubectl: the tests wait by asking again and again, on a machine that has work to do.
        """
        path = f"/api/v1/namespaces/{self.namespace}/{plural}?{urllib.parse.urlencode(selectors)}"
        answer = self._api.request("GET", path)
        assert answer.is_success, f"GET {path}: {answer}"
        items: list[dict[str, Any]] = json.loads(answer.text)["items"]
        return items

    def revisions(self) -> dict[str, int]:
        """The last revision of each release, also of one that Helm is still at work on."""
        return self._revisions("")

    def deployed(self) -> dict[str, int]:
        """The last revision of each release that Helm is done with: to be waited for."""
        return self._revisions(",status notin (pending-install,pending-upgrade,pending-rollback)")

    def _revisions(self, selector: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for secret in self.objects("secrets", labelSelector=f"owner=helm{selector}"):
            labels = secret["metadata"]["labels"]
            found[labels["name"]] = max(found.get(labels["name"], 0), int(labels["version"]))
        return found

    def data(self, name: str) -> dict[str, str] | None:
        """The data of a ConfigMap, or ``None`` when there is none of that name."""
        items = self.objects("configmaps", fieldSelector=f"metadata.name={name}")
        return dict(items[0].get("data") or {}) if items else None

    def secret_data(self, name: str) -> dict[str, str]:
        """The data of a Secret, as it is encoded; empty when there is none of that name."""
        items = self.objects("secrets", fieldSelector=f"metadata.name={name}")
        return dict(items[0].get("data") or {}) if items else {}

    def config(self, **data: str | None) -> None:
        """Edit keys of the values ConfigMap, as ``kubectl edit`` would; ``None`` removes a key.

        The ConfigMap is created when it does not exist. An edit of somebody else's in between is kept.
        Raises :class:`RefusedError`.
        """
        operator_process.wait_until(
            lambda: self._write_data("configmaps", data), "the values ConfigMap is edited"
        )

    def secret(self, **data: str | None) -> None:
        """Edit keys of the values Secret as :meth:`config` edits those of the ConfigMap."""
        encoded = {
            key: None if text is None else base64.b64encode(text.encode()).decode()
            for key, text in data.items()
        }
        operator_process.wait_until(
            lambda: self._write_data("secrets", encoded), "the values Secret is edited"
        )

    def _write_data(self, plural: str, data: Mapping[str, str | None]) -> bool:
        """Try it once; whether nobody else has written it meanwhile."""
        path = f"/api/v1/namespaces/{self.namespace}/{plural}"
        found = self.objects(plural, fieldSelector=f"metadata.name={CONFIG_MAP}")
        known = found[0] if found else {"metadata": {"name": CONFIG_MAP}}
        merged = {**(known.get("data") or {}), **data}
        body = {**known, "data": {key: value for key, value in merged.items() if value is not None}}
        method, target = ("PUT", f"{path}/{CONFIG_MAP}") if found else ("POST", path)
        answer = self._api.request(method, target, body)
        if not answer.is_success and answer.status != http.HTTPStatus.CONFLICT:
            raise RefusedError(f"{method} {target}: {answer}")
        return answer.is_success


@pytest.fixture
def site(devcluster: handle.DevCluster, namespace: str, tmp_path: pathlib.Path) -> Iterator[Site]:
    """A site of this test's own, whose operators do not outlive it."""
    opened = Site(devcluster, namespace, tmp_path)
    try:
        yield opened
    finally:
        opened.close()
