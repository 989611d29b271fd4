"""What health and drift of a hundred releases cost, beside an operator that follows neither.

That other operator heals only, as all of them do: it has the same watches of metadata. A third case adds
objects of others, of the same kinds, which both see in these watches and nowhere else.
"""

import concurrent.futures
import contextlib
import dataclasses
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final

from addon_operator.devcluster import handle
from addon_operator.status import module_status_writer
from tests.benchmarks import bare_helm, measures, surroundings
from tests.integration import operator_process, operator_site

MODULES: Final = 100
FOREIGN: Final = {"configmaps": 5000, "secrets": 3000, "serviceaccounts": 1500, "deployments": 500}
"""Objects of nobody's release, by kind."""
_ROUNDS: Final = 2
_SETTLES: Final = 12.0
"""Seconds after which a started operator has compared everything."""
_RESTS: Final = 20.0
"""Seconds in which nothing happens."""
_CHURN: Final = 1000
"""Writes to objects of others."""
_EDITS: Final = 20
_STATUS: Final = 2 * (module_status_writer.PAUSE_SECONDS + module_status_writer.GATHER_SECONDS)
_AT_A_TIME: Final = 4

_MEMORY_AIM: Final = 1.15
_REST_AIM: Final = 1.0
_NOTICED_AIM: Final = 0.5
_CORRECTED_AIM: Final = 1.5

_IMAGE: Final = "example.com/main:1"
_TEMPLATES: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: 1
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers:
      - name: main
        image: example.com/main:1
        ports: [{containerPort: 80}]
        env: [{name: LEVEL, value: info}]
        resources: {limits: {cpu: 100m, memory: 64Mi}}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}
stringData: {password: changeme}
---
"""
_BASES: Final = {"deployments": "/apis/apps/v1"}
_BODIES: Final[dict[str, dict[str, object]]] = {
    "configmaps": {"data": {"text": "x" * 1000}},
    "secrets": {"stringData": {"text": "x" * 1000}},
    "serviceaccounts": {},
    "deployments": {
        "spec": {
            "replicas": 0,
            "paused": True,
            "selector": {"matchLabels": {"app": "foreign"}},
            "template": {
                "metadata": {"labels": {"app": "foreign"}},
                "spec": {"containers": [{"name": "main", "image": "example.com/foreign:1"}]},
            },
        }
    },
}


def run() -> list[measures.Row]:
    """All measurements; takes about eight minutes, most of it for nothing to happen."""
    with surroundings.control_plane(nodes=True) as cluster, surroundings.site(cluster) as site:
        _write_modules(site)
        operator = _settled(site, "warn")
        noticed = _times(site, _notice)
        operator.stop()
        plain, following = _both(site, cluster)
        operator = _settled(site, "correct")
        corrected = _times(site, _correct)
        operator.stop()
        with _foreign(cluster):
            crowded_plain, crowded = _both(site, cluster)
    return [
        *_rest_rows(plain, following),
        *_edit_rows(noticed, corrected),
        *_foreign_rows(plain, following, crowded_plain, crowded),
    ]


def _write_modules(site: operator_site.Site) -> None:
    site.values("".join(f"{bare_helm.key(number)}Enabled: true\n" for number in range(MODULES)))
    for number in range(MODULES):
        values = f"{bare_helm.key(number)}: {{text: first}}\n"
        module = site.module(f"10-{bare_helm.name(number)}", values=values)
        bare_helm.write_chart(module, number)
        more = module / "templates" / "more.yaml"
        more.write_text(_TEMPLATES)


@dataclasses.dataclass(frozen=True, slots=True)
class _Cost:
    """What an operator takes that has nothing to do."""

    mebibytes: float
    """Resident."""
    percent: float
    """Processor time at rest, of one core."""
    churn: float = 0.0
    """Processor seconds for the writes to objects of others."""


def _both(site: operator_site.Site, cluster: handle.DevCluster) -> tuple[list[_Cost], list[_Cost]]:
    """Operators that only heal, and those that follow health and content, in turns."""
    plain: list[_Cost] = []
    following: list[_Cost] = []
    for _ in range(_ROUNDS):
        for found, is_followed in ((plain, False), (following, True)):
            site.follows_health = is_followed
            operator = _settled(site, "warn" if is_followed else "ignore")
            found.append(_cost(operator, cluster))
            operator.stop()
    return plain, following


def _cost(operator: operator_process.OperatorProcess, cluster: handle.DevCluster) -> _Cost:
    before = surroundings.tree_seconds(operator.pid)
    time.sleep(_RESTS)
    spent = surroundings.tree_seconds(operator.pid) - before
    mebibytes = surroundings.resident_mebibytes(operator.pid)
    return _Cost(mebibytes, spent / _RESTS * 100, _churn(operator, cluster))


def _churn(operator: operator_process.OperatorProcess, cluster: handle.DevCluster) -> float:
    """Write to objects of others, if there are any."""
    with contextlib.closing(surroundings.Api(cluster)) as api:
        if not api.request("GET", "/api/v1/namespaces/foreign"):
            return 0.0
        before = surroundings.tree_seconds(operator.pid)
        for number in range(_CHURN):
            path = f"/api/v1/namespaces/foreign/configmaps/foreign-{number}"
            patch = {"data": {"text": f"{time.time()}"}}
            api.request("PATCH", path, patch, "application/merge-patch+json")
        time.sleep(1)
        return surroundings.tree_seconds(operator.pid) - before


def _settled(site: operator_site.Site, mode: str) -> operator_process.OperatorProcess:
    """Start an operator, and let it compare everything."""
    _, operator = surroundings.seconds_until_ready(lambda: site.start(DRIFT_MODE=mode))
    time.sleep(_SETTLES)
    return operator


def _times(
    site: operator_site.Site, measure: Callable[[surroundings.Api, operator_site.Site, str], float]
) -> list[float]:
    """Edit one module after another."""
    with contextlib.closing(surroundings.Api(site.cluster)) as api:
        return [measure(api, site, bare_helm.name(number)) for number in range(_EDITS)]


def _notice(api: surroundings.Api, site: operator_site.Site, name: str) -> float:
    """Seconds from the edit of a Deployment until the module's condition says so."""
    path = f"/apis/addon-operator.io/v1alpha1/namespaces/{site.namespace}/modules/{name}"
    surroundings.until(lambda: _is_drifted(api, path) is False, f"{name} is as it should be")
    # The status of a module is written at most once in a while, and the edit before was put back just now.
    time.sleep(_STATUS)
    began = _edit(api, site, name)
    surroundings.until(lambda: _is_drifted(api, path), f"{name} has drifted")
    seconds = time.perf_counter() - began
    _edit(api, site, name, to=_IMAGE)
    return seconds


def _is_drifted(api: surroundings.Api, path: str) -> bool | None:
    conditions = api.request("GET", path).get("status", {}).get("conditions", ())
    status = next((each["status"] for each in conditions if each["type"] == "Drifted"), None)
    return None if status is None else status == "True"


def _correct(api: surroundings.Api, site: operator_site.Site, name: str) -> float:
    """Seconds from the edit of a Deployment until it is as its chart says."""
    began = _edit(api, site, name)
    surroundings.until(lambda: _image(api, site, name) == _IMAGE, f"{name} is corrected")
    return time.perf_counter() - began


def _edit(api: surroundings.Api, site: operator_site.Site, name: str, *, to: str = "evil:1") -> float:
    """Change an image; when that began."""
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": to}]
    began = time.perf_counter()
    api.request("PATCH", _deployment(site, name), patch, "application/json-patch+json")
    return began


def _image(api: surroundings.Api, site: operator_site.Site, name: str) -> str:
    found = api.request("GET", _deployment(site, name))
    return str(found["spec"]["template"]["spec"]["containers"][0]["image"])


def _deployment(site: operator_site.Site, name: str) -> str:
    return f"/apis/apps/v1/namespaces/{site.namespace}/deployments/{name}"


@contextlib.contextmanager
def _foreign(cluster: handle.DevCluster) -> Iterator[None]:
    """Objects of nobody's release, made while the context begins."""
    with contextlib.closing(surroundings.Api(cluster)) as api:
        api.request("POST", "/api/v1/namespaces", {"metadata": {"name": "foreign"}})
    names = [(kind, number) for kind, count in FOREIGN.items() for number in range(count)]
    with concurrent.futures.ThreadPoolExecutor(_AT_A_TIME) as pool:
        list(pool.map(lambda start: _make(cluster, names[start::_AT_A_TIME]), range(_AT_A_TIME)))
    yield


def _make(cluster: handle.DevCluster, names: list[tuple[str, int]]) -> None:
    with contextlib.closing(surroundings.Api(cluster)) as api:
        for kind, number in names:
            path = f"{_BASES.get(kind, '/api/v1')}/namespaces/foreign/{kind}"
            api.request("POST", path, {"metadata": {"name": f"foreign-{number}"}, **_BODIES[kind]})


# The report.


def _rest_rows(plain: list[_Cost], following: list[_Cost]) -> list[measures.Row]:
    case, name = f"{MODULES} modules of 5 resources, at rest", "health and drift off"
    memory, less = (min(each.mebibytes for each in costs) for costs in (following, plain))
    percent, idle = (min(each.percent for each in costs) for costs in (following, plain))
    return [
        measures.Row("drift", case, "MiB resident", memory, name, less,
                     f"<= {_MEMORY_AIM:g} baselines", memory <= _MEMORY_AIM * less),
        measures.Row("drift", case, "processor time, % of a core", percent, name, idle,
                     f"<= {_REST_AIM:g}", percent <= _REST_AIM),
    ]  # fmt: skip


def _edit_rows(noticed: list[float], corrected: list[float]) -> list[measures.Row]:
    case = f"an edit of a Deployment of one of {MODULES} modules"
    told, back = statistics.median(noticed), statistics.median(corrected)
    return [
        measures.Row("drift", case, "s until the module is Drifted, p50", told, "", None,
                     f"<= {_NOTICED_AIM:g}", told <= _NOTICED_AIM),
        measures.Row("drift", case, f"s until it is so, longest of {_EDITS}", max(noticed), ""),
        measures.Row("drift", case, "s until it is corrected, p50", back, "", None,
                     f"<= {_CORRECTED_AIM:g}", back <= _CORRECTED_AIM),
        measures.Row("drift", case, f"s until it is so, longest of {_EDITS}", max(corrected), ""),
    ]  # fmt: skip


def _foreign_rows(
    plain: list[_Cost], following: list[_Cost], crowded_plain: list[_Cost], crowded: list[_Cost]
) -> list[measures.Row]:
    case = f"{sum(FOREIGN.values())} objects of others, of the same kinds"
    more, less = (
        min(each.mebibytes for each in with_them) - min(each.mebibytes for each in without)
        for with_them, without in ((crowded, following), (crowded_plain, plain))
    )
    name = "health and drift off"
    percent, idle = (min(each.percent for each in costs) for costs in (crowded, crowded_plain))
    churn, seen = (min(each.churn for each in costs) for costs in (crowded, crowded_plain))
    return [
        measures.Row("drift", case, "MiB resident more", more, name, less),
        measures.Row("drift", case, "processor time at rest, % of a core", percent, name, idle),
        measures.Row("drift", case, f"processor s for {_CHURN} writes to them", churn, name, seen),
    ]  # fmt: skip
