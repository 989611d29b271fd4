"""What a hundred modules cost from the first install to a restart, beside Helm's own calls.

Whatever is compared is measured in turns, so that a machine that becomes busy slows both.
"""

import dataclasses
import statistics
import time
from typing import Final

from tests.benchmarks import bare_helm, measures, surroundings
from tests.integration import operator_process, operator_site

MODULES: Final = 100
ORDERS: Final = 10
"""Numbers among the modules: so many of them, one after another."""
_RESTARTS: Final = 3
_EDITS: Final = 9
_HEALINGS: Final = 5

_INSTALL_AIM: Final = 1.3
_RATE_AIM: Final = 4.0
_RESTART_AIM: Final = 2.0
_EDIT_AIM: Final = 1.5
_HEALING_AIM: Final = 2.0
_MEMORY_AIM: Final = 126.0


def run() -> list[measures.Row]:
    """All measurements; takes about three minutes."""
    with (
        surroundings.control_plane() as cluster,
        surroundings.site(cluster) as bare_site,
        surroundings.site(cluster) as empty,
        surroundings.site(cluster) as site,
    ):
        bare = bare_helm.BareHelm(cluster, bare_site, MODULES)
        write_modules(site, MODULES)
        installed, operator = _install(site, bare)
        api = surroundings.Api(cluster)
        edited = _edit(site, api, bare)
        healings = [_heal_one(site, api, number) for number in range(MODULES - _HEALINGS, MODULES)]
        memory = surroundings.resident_mebibytes(operator.pid)
        operator.stop()
        before = len(site.helm_calls())
        starts = [(start(empty), start(site)) for _ in range(_RESTARTS)]
        calls = len(site.helm_calls()) - before
    idle, restarts = [first for first, _ in starts], [second for _, second in starts]
    return [
        *_install_rows(installed, bare.installed),
        *_restart_rows(restarts, idle, calls),
        *_edit_rows(edited),
        *_healing_rows(healings, edited),
        _memory_row(memory, idle),
    ]


def write_modules(site: operator_site.Site, modules: int) -> None:
    """So many modules in ten orders, each with a chart of three objects."""
    numbers = range(modules)
    site.values("".join(f"{bare_helm.key(number)}Enabled: true\n" for number in numbers))
    for number in numbers:
        order = 10 + number * ORDERS // modules
        values = f"{bare_helm.key(number)}: {{text: first}}\n"
        bare_helm.write_chart(site.module(f"{order}-{bare_helm.name(number)}", values=values), number)


@dataclasses.dataclass(frozen=True, slots=True)
class _Installed:
    seconds: float
    own_processor_seconds: float
    """Of the operator's process."""
    processor_seconds: float
    """Of the operator and Helm."""


def _install(
    site: operator_site.Site, bare: bare_helm.BareHelm
) -> tuple[_Installed, operator_process.OperatorProcess]:
    """The first install of all modules, between the two halves of the bare loop."""
    half = MODULES // 2
    bare.install(range(half))
    seconds, operator = surroundings.seconds_until_ready(site.start)
    found = _Installed(
        seconds, surroundings.processor_seconds(operator.pid), surroundings.tree_seconds(operator.pid)
    )
    bare.install(range(half, MODULES))
    return found, operator


@dataclasses.dataclass(frozen=True, slots=True)
class _Edited:
    """Seconds of edits, and of Helm's share of each."""

    operator: list[float]
    bare: list[bare_helm.Edit]

    @property
    def checked(self) -> float:
        """Median of a bare template and a bare upgrade."""
        return statistics.median(each.template + each.upgrade for each in self.bare)

    @property
    def unchecked(self) -> float:
        """The same with an upgrade that validates nothing, as the operator's."""
        return statistics.median(each.template + each.unchecked_upgrade for each in self.bare)


def _edit(site: operator_site.Site, api: surroundings.Api, bare: bare_helm.BareHelm) -> _Edited:
    site.config(unused="")
    pairs = [(edit_one(site, api, number), bare.edit(number)) for number in range(_EDITS)]
    return _Edited([ours for ours, _ in pairs], [plain for _, plain in pairs])


def edit_one(site: operator_site.Site, api: surroundings.Api, number: int) -> float:
    """From the edit of one key of the ConfigMap until the release of that module is deployed anew."""
    module = bare_helm.name(number)
    path = f"/api/v1/namespaces/{site.namespace}/configmaps/{operator_site.CONFIG_MAP}"
    secret = f"/api/v1/namespaces/{site.namespace}/secrets/sh.helm.release.v1.{module}.v2"
    patch = {"data": {bare_helm.key(number): f"text: edit {number}"}}
    began = time.perf_counter()
    api.request("PATCH", path, patch, "application/merge-patch+json")
    surroundings.until(lambda: _is_deployed(api, secret), f"{module} is deployed")
    return time.perf_counter() - began


def _is_deployed(api: surroundings.Api, path: str) -> bool:
    found = api.request("GET", path)
    return bool(found) and found["metadata"]["labels"]["status"] == "deployed"


def _heal_one(site: operator_site.Site, api: surroundings.Api, number: int) -> float:
    """From the deletion of a ConfigMap of a release until it is back."""
    module = bare_helm.name(number)
    path = f"/api/v1/namespaces/{site.namespace}/configmaps/{module}"
    gone = api.request("GET", path)["metadata"]["uid"]
    began = time.perf_counter()
    api.request("DELETE", path)
    surroundings.until(
        lambda: api.request("GET", path).get("metadata", {}).get("uid") not in (None, gone),
        f"{module} is back",
    )
    return time.perf_counter() - began


@dataclasses.dataclass(frozen=True, slots=True)
class Start:
    """One start of an operator that has nothing to do."""

    seconds: float
    """Until it was ready."""
    processor_seconds: float
    """Of its process and its children."""
    mebibytes: float
    """Resident."""


def start(site: operator_site.Site) -> Start:
    """Start an operator, and end it when it is ready."""
    seconds, operator = surroundings.seconds_until_ready(site.start)
    spent = surroundings.tree_seconds(operator.pid)
    memory = surroundings.resident_mebibytes(operator.pid)
    operator.stop()
    return Start(seconds, spent, memory)


# The report.


def _install_rows(installed: _Installed, bare: bare_helm.Spent) -> list[measures.Row]:
    case, loop = f"first install of {MODULES} modules", f"bare loop, {bare_helm.AT_A_TIME} at a time"
    rate, bare_rate = MODULES / installed.seconds, MODULES / bare.seconds
    return [
        measures.Row("lifecycle", case, "s until ready", installed.seconds, loop, bare.seconds,
                     f"<= {_INSTALL_AIM:g} baselines", installed.seconds <= _INSTALL_AIM * bare.seconds),
        measures.Row("lifecycle", case, "releases per second", rate, loop, bare_rate,
                     f">= {_RATE_AIM:g}", rate >= _RATE_AIM),
        measures.Row("lifecycle", case, "processor s of Helm and operator", installed.processor_seconds,
                     "Helm in the bare loop", bare.processor_seconds),
        measures.Row("lifecycle", case, "processor s of the operator itself",
                     installed.own_processor_seconds, "Helm in the bare loop", bare.processor_seconds),
    ]  # fmt: skip


def _restart_rows(restarts: list[Start], idle: list[Start], calls: int) -> list[measures.Row]:
    case = f"restart with {MODULES} unchanged modules"
    best, plain = (min(each.seconds for each in starts) for starts in (restarts, idle))
    spent, plain_spent = (min(each.processor_seconds for each in starts) for starts in (restarts, idle))
    return [
        measures.Row("lifecycle", case, f"s until ready, best of {_RESTARTS}", best, "without modules", plain,
                     f"<= {_RESTART_AIM:g}", best <= _RESTART_AIM),
        measures.Row("lifecycle", case, f"processor s until ready, best of {_RESTARTS}", spent,
                     "without modules", plain_spent),
        measures.Row("lifecycle", case, "Helm processes, without 'helm version'", calls, "", None,
                     "0", calls == 0),
    ]  # fmt: skip


def _edit_rows(edited: _Edited) -> list[measures.Row]:
    case, found = f"edit of one of {MODULES} modules", statistics.median(edited.operator)
    plain, unchecked = edited.checked, edited.unchecked
    return [
        measures.Row("lifecycle", case, "s until deployed, p50", found, "bare template + upgrade", plain,
                     f"<= {_EDIT_AIM:g} baselines", found <= _EDIT_AIM * plain),
        measures.Row("lifecycle", case, "s until deployed, p50", found, "the same, unchecked", unchecked),
    ]  # fmt: skip


def _healing_rows(healings: list[float], edited: _Edited) -> list[measures.Row]:
    case, helm = (
        f"a deleted ConfigMap of one of {MODULES} releases",
        "bare template + upgrade, unchecked",
    )
    return [
        measures.Row("lifecycle", case, "s until it is back, p50", statistics.median(healings),
                     helm, edited.unchecked),
        measures.Row("lifecycle", case, f"s until it is back, longest of {len(healings)}", max(healings),
                     helm, edited.unchecked, f"<= {_HEALING_AIM:g}", max(healings) <= _HEALING_AIM),
    ]  # fmt: skip


def _memory_row(memory: float, idle: list[Start]) -> measures.Row:
    return measures.Row(
        "lifecycle", f"{MODULES} modules, edited and healed", "MiB resident", memory, "without modules",
        idle[-1].mebibytes, f"<= {_MEMORY_AIM:g}", memory <= _MEMORY_AIM,
    )  # fmt: skip
