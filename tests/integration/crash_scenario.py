"""A life of two modules in three phases, and what it leaves in the cluster: lived with and without kills."""

import abc
import base64
import dataclasses
import gzip
import json
import pathlib
import secrets
import string
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from typing_extensions import override

from addon_operator.devcluster import api, handle, layout
from addon_operator.process import daemons
from tests.integration import crash_points, definitions, operator_process, operator_site

INSTALL: Final = "install"
EDIT: Final = "edit"
DISABLE: Final = "disable"
DEADLINE: Final = 180.0
"""Seconds that a phase may take, with a kill and a new start."""
_PAUSE: Final = 0.2
_BY_THE_CLUSTER: Final = "kube-root-ca.crt"

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """What there is in the cluster; names are those of the scenario, whatever the namespace."""

    objects: Json
    """ConfigMaps, the definition, the Module objects, and the manifest of each release."""
    revisions: Mapping[str, tuple[str, ...]]
    """Status of each revision of each release, the last one at the end."""


class Scenario(abc.ABC):
    """One namespace, in which the phases are lived through one after another."""

    phases: tuple[str, ...]
    """The first one is the start of the operator."""
    variables: Mapping[str, str] = MappingProxyType({})
    """What the operator is given beside the usual."""

    def __init__(self, cluster: handle.DevCluster, root: pathlib.Path) -> None:
        self._cluster = cluster
        self._api = api.ApiClient(layout.Layout(cluster.kubeconfig.parent), cluster.url)
        self._suffix = "".join(secrets.choice(string.ascii_lowercase) for _ in range(8))
        self.site = operator_site.Site(cluster, cluster.namespace(), root)
        self._environment = crash_points.environment(root / "desk", self.site.environment(self.variables))
        self.desk = crash_points.Desk(root / "desk")
        self.operator: operator_process.OperatorProcess
        self.starts = 0
        self._fatal = ""
        self._write()

    def close(self) -> None:
        """End the operator and have everything removed; once more does no harm."""
        self.site.close()
        self.site.delete("crd", f"things.{self._group}")
        self._cluster.delete_namespace(self.site.namespace)

    @property
    def _group(self) -> str:
        return f"{self._suffix}.example.com"

    def name(self, stem: str) -> str:
        return f"{stem}{self._suffix}"

    @abc.abstractmethod
    def _write(self) -> None:
        """Write the modules."""

    @abc.abstractmethod
    def _do(self, phase: str) -> None:
        """Do what a phase begins with, other than the start of the operator."""

    @abc.abstractmethod
    def is_over(self, phase: str, objects: Json) -> bool:
        """Whether a phase in which nobody was killed is over."""

    @abc.abstractmethod
    def tells_apart(self, point: str) -> bool:
        """Whether a kill there leaves something else than a kill at the point before."""

    def cost(self, point: str) -> int:
        """How many revisions more than an undisturbed life a kill there may cost."""
        return int("started helm upgrade" in point)

    def note(self, name: str, text: str) -> str:
        metadata = {"name": name, "namespace": self.site.namespace}
        note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}
        return give("KUBERNETES", json.dumps({"operation": "CreateOrUpdate", "object": note}))

    def enter(self, phase: str, fatal: str = "") -> None:
        """Begin a phase, in which the operator will be killed at the point ``fatal``, if that is given."""
        self._fatal = fatal
        self.desk.begin(phase, fatal.replace("~", self._suffix))
        if phase == self.phases[0]:
            self._start()
        else:
            self._do(phase)

    def _start(self) -> None:
        self.starts += 1
        self.operator = self.site.start_with((), self._environment)

    @property
    def points(self) -> list[str]:
        """All points that were passed so far; ``~`` stands for what makes the names unique."""
        return [point.replace(self._suffix, "~") for point in self.desk.passed]

    def settle(self, is_wanted: Callable[[Json], bool]) -> Seen:
        """Wait until the fatal point was passed, nothing is left to do and the objects are as wanted.

        A killed operator is followed by another. What there is then; fails when it does not come to that.
        """
        deadline = time.monotonic() + DEADLINE
        while True:
            is_due = bool(self.desk.fatal)
            self._keep_alive()
            if not is_due and self._is_at_rest() and is_wanted(self.look().objects):
                return self.look()
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"after {self._fatal or 'no kill'} there is {self.look()}\n{self.operator.tail()}"
                )
            time.sleep(_PAUSE)

    def _keep_alive(self) -> None:
        if daemons.ProcessTable().identify(self.operator.pid) is None:
            assert not self.desk.fatal, f"it ended by itself\n{self.operator.tail()}"
            self._start()

    def _is_at_rest(self) -> bool:
        return (
            self.operator.get("/readyz").status == 200
            and "CONVERGE_DONE" in self.operator.get("/status/converge").text
        )

    def look(self) -> Seen:
        """What there is in the cluster now."""
        site, records = self.site, self._records()
        maps = {
            each["metadata"]["name"]: _plain(each)
            for each in site.objects("configmaps")
            if each["metadata"]["name"] != _BY_THE_CLUSTER
        }
        last = {record["name"]: record["manifest"] for record in records}
        objects = {"maps": maps, "releases": last, "thing": self._definition(), "modules": self._modules()}
        revisions: dict[str, tuple[str, ...]] = {}
        for record in records:
            name = str(record["name"]).replace(self._suffix, "")
            revisions[name] = (*revisions.get(name, ()), record["info"]["status"])
        return Seen(self._neutral(objects), revisions)

    def _neutral(self, objects: Json) -> Json:
        text = json.dumps(objects, sort_keys=True).replace(self._suffix, "")
        neutral: Json = json.loads(text.replace(self.site.namespace, "NAMESPACE"))
        return neutral

    def _records(self) -> list[Json]:
        found = self.site.objects("secrets", labelSelector="owner=helm")
        records = [_decoded(secret["data"]["release"]) for secret in found]
        return sorted(records, key=lambda record: int(record["version"]))

    def _definition(self) -> Json | None:
        body = self._get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.{self._group}")
        return {"labels": body["metadata"].get("labels"), "spec": body["spec"]} if body else None

    def _get(self, path: str) -> Json:
        """An object; empty if there is none."""
        answer = self._api.request("GET", path)
        return answer.document() if answer.is_success else {}

    def _modules(self) -> Json:
        found = {}
        for stem in ("web", "api"):
            kind = f"/apis/addon-operator.io/v1alpha1/namespaces/{self.site.namespace}/modules"
            body = self._get(f"{kind}/{self.name(stem)}")
            found[stem] = self._shown(body)
        return found

    def _shown(self, body: Json) -> Json:
        """What counts of a Module object."""
        status = body.get("status", {})
        conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
        return {"state": status.get("state"), "conditions": conditions}


class InstallEditDisable(Scenario):
    """Two modules are installed, one of them is edited, and the other one disabled."""

    phases = (INSTALL, EDIT, DISABLE)

    @override
    def _write(self) -> None:
        web, api = self.name("web"), self.name("api")
        self.site.values(f"{web}Enabled: true\n{api}Enabled: true\n{web}: {{color: green}}\n")
        self._global_hook()
        self._web_module(web)
        self._api_module(api)

    def _global_hook(self) -> None:
        patch = '[{"op": "add", "path": "/global/stamp", "value": "made-by-a-hook"}]'
        self.site.hook(self.site.global_hooks, "stamp.sh", {"onStartup": 1}, give("VALUES_JSON", patch))

    def _web_module(self, web: str) -> None:
        module = self.site.module(
            f"010-{web}",
            {
                "color": f"{{{{ .Values.{web}.color }}}}",
                "token": f"{{{{ .Values.{web}.token }}}}",
                "size": f'"{{{{ .Values.{web}.size }}}}"',
                "stamp": "{{ .Values.global.stamp }}",
            },
        )
        (module / "crds").mkdir()
        (module / "crds" / "things.yaml").write_text(definitions.things(self._group))
        token = f'[{{"op": "add", "path": "/{web}/token", "value": "made-at-start"}}]'
        self.site.hook(module, "token.sh", {"onStartup": 1}, give("VALUES_JSON", token))
        size = f'[{{"op": "add", "path": "/{web}/size", "value": 3}}]'
        self.site.hook(module, "size.sh", {"beforeHelm": 1}, give("CONFIG_VALUES_JSON", size))
        self.site.hook(module, "note.sh", {"afterHelm": 1}, self.note("noted", "yes"))

    def _api_module(self, api: str) -> None:
        module = self.site.module(f"020-{api}", {"color": "blue"})
        self.site.hook(module, "note.sh", {"beforeDeleteHelm": 1}, self.note("leaving", "soon"))
        self.site.hook(module, "bye.sh", {"afterDeleteHelm": 1}, self.note("left", "indeed"))

    @override
    def _do(self, phase: str) -> None:
        if phase == EDIT:
            self.site.config(**{self.name("web"): "color: red\nsize: 3\n"})
        else:
            self.site.config(**{f"{self.name('api')}Enabled": "false"})

    @override
    def is_over(self, phase: str, objects: Json) -> bool:
        at_work = [each for each in objects["modules"].values() if each["state"] == "Ready"]
        if any("Unknown" in each["conditions"].values() for each in at_work):
            # Health and drift are known a moment after a run.
            return False
        if phase == INSTALL:
            return states(objects) == ("Ready", "Ready")
        if phase == EDIT:
            return color(objects) == "red" and states(objects) == ("Ready", "Ready")
        return "left" in objects["maps"] and states(objects) == ("Ready", "Disabled")

    @override
    def tells_apart(self, point: str) -> bool:
        """See :meth:`Scenario.tells_apart`.

        Before an effect the cluster is as it was after the effect that came before it, and values are memory.
        The status of Modules is written when there is time, for all that happened until then: only the first
        time at the start is sure to come.
        """
        is_status = " modules/" in point
        is_sure = point.startswith(INSTALL) and point.endswith("#1")
        is_shared = "modules.addon-operator.io" in point
        return not (": before " in point or "values of" in point or is_shared or (is_status and not is_sure))


def give(variable: str, text: str) -> str:
    """The body of a hook that writes one output."""
    return f"cat > \"${variable}_PATCH_PATH\" <<'OUTPUT'\n{text}\nOUTPUT\n"


def _plain(body: Json) -> Json:
    """What somebody wanted of an object, without what says when it was made."""
    metadata = body["metadata"]
    return {"data": body.get("data"), "labels": metadata.get("labels"), "notes": metadata.get("annotations")}


def _decoded(stored: str) -> Json:
    content: Json = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(stored))))
    return content


def color(objects: Json) -> str:
    """What the chart of web was given."""
    found: str = objects["maps"]["web"]["data"]["color"]
    return found


def states(objects: Json) -> tuple[str, ...]:
    """The states of both modules."""
    return tuple(objects["modules"][name]["state"] for name in ("web", "api"))
