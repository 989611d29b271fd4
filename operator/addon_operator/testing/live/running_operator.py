"""An operator on a real control plane, in a namespace of one test."""

import contextlib
import http.client
import json
import pathlib
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from addon_operator.debug import debug_client
from addon_operator.devcluster import api, handle, layout
from addon_operator.documents import json_documents, yaml_reading
from addon_operator.engine.sources import configured_object
from addon_operator.kernel import errors, json_types, names
from addon_operator.process import commands, daemons
from addon_operator.testing import differences, unchangeable
from addon_operator.testing.live import staging
from addon_operator.testing.modules import manifests, module, module_values

CONFIG_MAP: Final = "addon-operator"
READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1
_IDLE_LOOKS: Final = 3
"""How often in a row nothing waits before it counts as settled: an edit takes a moment to become a task."""
_FAILING_SECONDS: Final = 8.0
"""A module that fails is tried again after five seconds: what it needs may come."""
_SETTLED: Final = frozenset({"Ready", "Disabled"})
_LINES: Final = 60
_EVENTS: Final = 30
_LOOPBACK: Final = "127.0.0.1"


class OperatorFailedError(errors.AddonOperatorError, AssertionError):
    """The operator, or a module, did not get where the test wants it; the text has what they said."""


class Operator:
    """A running operator, its namespace, and what is in it."""

    def __init__(
        self, cluster: handle.DevCluster, namespace: str, stage: staging.Stage, tested: module.Module
    ) -> None:
        self.namespace: Final = namespace
        """The operator's own, where the releases are, too."""
        self._cluster = cluster
        self._stage = stage
        self._tested = tested
        self._api = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
        self._debug = debug_client.DebugClient(stage.socket)
        self._table = daemons.ProcessTable()
        self._process: daemons.ProcessIdentity | None = None
        self._port = _free_port()
        self._edits: dict[str, str] = {}

    def start(self, edits: Mapping[str, Any]) -> None:
        """Start it, with these sections and switches in its ConfigMap."""
        self.edit(edits)
        environ = self._stage.environment(self._cluster, self.namespace, self._port)
        argv = [sys.executable, "-m", "addon_operator", "start"]
        self._process = daemons.start(argv, log=self._stage.log, env=environ, table=self._table)

    def stop(self) -> None:
        """End it at once; what it installed stays."""
        if self._process is not None:
            self._table.kill([self._process])
            self._process = None

    def edit(self, edits: Mapping[str, Any] | None = None, /, **sections: Any) -> None:  # noqa: ANN401 - values
        """Edit the ConfigMap: sections and switches by their keys, each as a whole; ``None`` removes one.

        It is not waited for what follows; :meth:`wait_ready` does. Raises :class:`OperatorFailedError` if the
        edit is refused.
        """
        __tracebackhide__ = True
        wanted = {**(edits or {}), **sections}
        gone = [key.rstrip("_") for key, value in wanted.items() if value is None]
        data = module_values.data_of({key: value for key, value in wanted.items() if value is not None})
        self._edits = {key: text for key, text in (self._edits | data).items() if key not in gone}
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        there = self._api.request("GET", f"{path}/{CONFIG_MAP}")
        known: json_types.JsonObject = {"metadata": {"name": CONFIG_MAP}}
        if there.is_success:
            known = there.document()
        before = known.get("data")
        kept = dict(before) if isinstance(before, dict) else {}
        written = {key: text for key, text in (kept | dict(data)).items() if key not in gone}
        body: json_types.JsonObject = {**known, "data": written}
        method, target = ("PUT", f"{path}/{CONFIG_MAP}") if there.is_success else ("POST", path)
        answer = self._api.request(method, target, body)
        if not answer.is_success:
            raise OperatorFailedError(f"the edit of the ConfigMap is refused: {answer.text}")

    def wait_ready(self, timeout: float = READY_SECONDS) -> "Operator":
        """Wait until all edits are in force and all modules are done; ``timeout`` is in seconds.

        Raises :class:`OperatorFailedError`, with the state of the modules, Events and what hooks printed, if
        an edit is refused, a module keeps failing, or it takes longer.
        """
        __tracebackhide__ = True
        began, failing_since, idle = time.monotonic(), None, 0
        while idle < _IDLE_LOOKS:
            now = time.monotonic()
            why = self._unsettled()
            idle = idle + 1 if not why else 0
            is_failing = why.startswith(_FAILS)
            # Between two tries it is running.
            failing_since = (failing_since or now) if is_failing else failing_since if why else None
            is_lost = is_failing and failing_since is not None and now - failing_since > _FAILING_SECONDS
            if why.startswith(_REFUSED) or is_lost or now - began > timeout or not self._runs():
                waited = "" if is_lost or why.startswith(_REFUSED) else f" after {now - began:.0f} s"
                raise OperatorFailedError(f"{why or 'the operator has ended'}{waited}\n\n{self.report()}")
            time.sleep(_POLL_SECONDS)
        return self

    def objects(
        self, kind: str, name: str | None = None, namespace: str | None = None
    ) -> manifests.Manifests:
        """Return the objects of a kind, as ``kubectl`` names it; by default in the operator's namespace."""
        named = [] if name is None else [f"--field-selector=metadata.name={name}"]
        arguments = [f"--namespace={namespace or self.namespace}", "get", kind, *named, "--output=json"]
        return manifests.Manifests(json.loads(self._cluster.run_kubectl(*arguments).stdout)["items"])

    def upgrade(self, *, from_: Mapping[str, Any], to: Mapping[str, Any]) -> "Upgrade":
        """Bring the modules to one state of the ConfigMap, then to another, and return what that changed.

        Raises :class:`OperatorFailedError` if either cannot be reached, such as for a field that cannot be
        changed.
        """
        __tracebackhide__ = True
        self.edit(from_)
        self.wait_ready()
        before = self._rendered()
        self.edit({key: to.get(key) for key in {**from_, **to}})
        try:
            self.wait_ready()
        except OperatorFailedError as error:
            # The API server does not always name the field.
            refused = self._refused(before)
            raise OperatorFailedError(f"{refused}\n\n{error}") if refused else error from None
        return Upgrade(before, self._rendered())

    def report(self) -> str:
        """Return what is to know when a test fails: modules, Events, what hooks and the operator said."""
        parts = {
            "modules": self._modules_report(),
            "Events": self._events_report(),
            "hooks": self._log_report(is_hook=True),
            "operator": self._log_report(is_hook=False),
        }
        return "\n\n".join(f"--- {title}\n{text or '(nothing)'}" for title, text in parts.items())

    def _rendered(self) -> manifests.Manifests:
        path = f"/module/{self._tested.name}/render"
        return manifests.rendered(self._debug.get_text(path, {"showSensitive": "true"}))

    def _refused(self, before: manifests.Manifests) -> str:
        """Say which fields the edit changes that never change, if the module can be rendered."""
        with contextlib.suppress(debug_client.DebugClientError):
            return unchangeable.refused(before, self._rendered())
        return ""

    def _runs(self) -> bool:
        return self._process is not None and self._table.is_alive(self._process)

    def _unsettled(self) -> str:
        """Say what is still to come; empty if nothing is."""
        if not self._is_ready():
            return self._failing() or "the operator is not ready"
        try:
            return self._unsettled_of(self._debug.get("/module/list.json"))
        except debug_client.DebugClientError as error:
            return str(error)

    def _unsettled_of(self, listed: Mapping[str, Any]) -> str:
        if refused := _refused_of(listed):
            return refused
        late = [each for each in self._edited_sections() if not self._is_in_force(each)]
        waiting = [each["name"] for each in listed["modules"] if each["state"] not in _SETTLED]
        tasks = self._debug.get("/queue/list.json")["summary"]["totalTasks"]
        if late:
            return f"the edit of {late[0]} is not in force"
        if failing := _failing_of(listed):
            return failing
        if waiting:
            return f"modules are not done: {', '.join(waiting)}"
        return f"{tasks} tasks wait" if tasks else ""

    def _failing(self) -> str:
        try:
            listed = self._debug.get("/module/list.json")
        except debug_client.DebugClientError as error:
            return f"{_REFUSED}{error}" if configured_object.NOTHING_RUNS in str(error) else ""
        return _refused_of(listed) or _failing_of(listed)

    def _is_ready(self) -> bool:
        with contextlib.closing(http.client.HTTPConnection(_LOOPBACK, self._port, timeout=5.0)) as connection:
            try:
                connection.request("GET", "/readyz")
                return connection.getresponse().status == http.HTTPStatus.OK
            except (OSError, http.client.HTTPException):
                return False

    def _edited_sections(self) -> list[str]:
        keys = {names.values_key(names.ModuleName(each.name)) for each in self._stage.modules}
        return [key for key in self._edits if key in keys or key == names.GLOBAL_KEY]

    def _is_in_force(self, key: str) -> bool:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps/{CONFIG_MAP}"
        data = self._api.request("GET", path).document().get("data")
        text = data.get(key, "") if isinstance(data, dict) else ""
        is_global = key == names.GLOBAL_KEY
        place = "/global/config.json" if is_global else f"/module/{names.module_name(key)}/config.json"
        known = self._debug.get(place, {"showSensitive": "true"})
        return json_documents.equal(known, yaml_reading.load(str(text), key) or {})

    def _modules_report(self) -> str:
        try:
            rows = self._debug.get("/module/list.json")["modules"]
        except debug_client.DebugClientError as error:
            return str(error)
        lines = [f"{row['name']}: {row['state']}, {row['reason']}; {row['lastError']}" for row in rows]
        return "\n".join(line.rstrip("; ") for line in lines)

    def _events_report(self) -> str:
        try:
            found = self.objects("events")
        except commands.CommandError as error:
            return str(error)
        lines = [
            f"{each.get('type')} {each.get('reason')} {each['involvedObject'].get('kind')} "
            f"{each['involvedObject'].get('name')}: {each.get('message')}"
            for each in found
        ]
        return "\n".join(lines[-_EVENTS:])

    def _log_report(self, *, is_hook: bool) -> str:
        lines = []
        for text in (
            self._stage.log.read_text(errors="replace").splitlines() if self._stage.log.exists() else ()
        ):
            try:
                record = json.loads(text)
            except ValueError:
                record = {"msg": text}
            if ("output" in record) is is_hook and (is_hook or record.get("level") != "debug"):
                who = f"{record.get('module', '')} {record.get('hook', '')}: ".strip(" :")
                said = record.get("msg") or record.get("event") or record.get("message") or text
                lines.append(f"{who}: {said}" if who else str(said))
        return "\n".join(lines[-_LINES:])


class Upgrade:
    """What an upgrade changed of the module's manifest."""

    def __init__(self, before: manifests.Manifests, after: manifests.Manifests) -> None:
        self.before: Final = before
        self.after: Final = after

    @property
    def changed(self) -> list[str]:
        """The fields that differ, such as ``Deployment web: spec.replicas``."""
        return [each.path for each in differences.between(list(self.before), list(self.after))]


_REFUSED: Final = "the edit is refused: "
_FAILS: Final = "module "


def _refused_of(listed: Mapping[str, Any]) -> str:
    wrong = listed["wrongValues"]
    return f"{_REFUSED}{'; '.join(wrong)}" if wrong else ""


def _failing_of(listed: Mapping[str, Any]) -> str:
    failed = [each for each in listed["modules"] if each["state"] == "Failed"]
    return f"module {failed[0]['name']} fails: {failed[0]['lastError']}" if failed else ""


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind((_LOOPBACK, 0))
        return int(probe.getsockname()[1])


class OperatorMaker:
    """Starts operators for one test: what the fixture ``operator`` gives."""

    def __init__(
        self,
        cluster: handle.DevCluster,
        modules: module.Modules,
        tested: module.Module | None,
        directory: pathlib.Path,
    ) -> None:
        self._cluster = cluster
        self._modules = modules
        self._tested = tested
        self._directory = directory
        self._running: list[Operator] = []

    def __call__(self, modules: Sequence[str] = (), values: Mapping[str, Any] | None = None) -> Operator:
        """Start an operator with these modules, by default the tested one alone, all of them switched on.

        ``values`` are sections and switches of its ConfigMap. Global hooks run, if there are some beside the
        modules. It is not waited for; :meth:`Operator.wait_ready` does.
        """
        __tracebackhide__ = True
        own = [] if self._tested is None else [self._tested]
        chosen = [self._modules(name) for name in modules] or own
        if not chosen:
            raise errors.ConfigurationError(
                "global hooks are tested with modules: operator(modules=[NAME, …])"
            )
        namespace = self._cluster.namespace("module-test")
        stage = staging.Stage.of(self._directory / namespace, self._modules.place, chosen)
        operator = Operator(self._cluster, namespace, stage, self._tested or chosen[0])
        self._running.append(operator)
        switches = {names.enabled_key(names.ModuleName(each.name)): True for each in chosen}
        operator.start({**switches, **(values or {})})
        return operator

    def report(self) -> str:
        """Return what is to know of all operators of a test that failed."""
        return "\n\n".join(f"namespace {each.namespace}\n{each.report()}" for each in self._running)

    def close(self, *, keep: bool) -> str:
        """End all operators and remove what they made; with ``keep``, say where that still is."""
        kept = []
        for operator in self._running:
            operator.stop()
            if keep:
                kept.append(
                    f"kept: namespace {operator.namespace} on {self._cluster.kubeconfig}, "
                    f"files in {self._directory / operator.namespace}"
                )
            else:
                self._remove(operator.namespace)
        return "\n".join(kept)

    def _remove(self, namespace: str) -> None:
        # Objects without a namespace would stay, and be in the way of the next test.
        with contextlib.suppress(commands.CommandError):
            for release in self._cluster.run_helm("list", "-aq", "--namespace", namespace).stdout.split():
                self._cluster.run_helm("uninstall", release, "--no-hooks", "--namespace", namespace)
        self._cluster.delete_namespace(namespace)
