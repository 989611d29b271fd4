"""The inputs of a render: what the chart may know of the cluster, a checksum over all, the values' file."""

import dataclasses
import json
import pathlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, TypeAlias

import orjson

from addon_operator.helm.charts import chart_files
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import json_types, names
from addon_operator.modules import release

_VERSION: Final = b"2"
"""Part of the checksum: raised when the way of rendering changes, so that releases are compared anew."""
_RECENT_SECONDS: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Capabilities:
    """Versions of the cluster and of its API."""

    kube_version: str
    """Such as ``v1.36.3``."""
    api_versions: frozenset[str]
    """All ``group/version`` and ``group/version/Kind``, as Helm lists them."""


ReadCapabilities: TypeAlias = Callable[[], Awaitable[Capabilities]]
"""Asks the cluster."""


class CapabilityReader:
    """Asks the cluster as seldom as the charts allow: most of them only need to know its version."""

    def __init__(self, read: ReadCapabilities, clock: clocks.Clock) -> None:
        self._read = read
        self._clock = clock
        self._last: Capabilities | None = None
        self._read_at = 0.0

    async def now(self) -> Capabilities:
        """Return what is true now, custom resources included that were defined a moment ago."""
        self._last = await self._read()
        self._read_at = self._clock.monotonic()
        return self._last

    async def recent(self) -> Capabilities:
        """Return what was true within the last minute."""
        if self._last is not None and self._clock.monotonic() - self._read_at < _RECENT_SECONDS:
            return self._last
        return await self.now()


def encode_values(values: json_types.JsonObject) -> bytes:
    """Return the values as canonical JSON, which is YAML to Helm: equal values give equal bytes.

    Integers of any size survive.
    """
    try:
        return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # Integers beyond 64 bits, or halves of surrogate pairs.
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def with_enabled_modules(
    values: json_types.JsonObject, enabled: Sequence[json_types.JsonValue]
) -> json_types.JsonObject:
    """Return the values with ``global.enabledModules``, unless they have it."""
    shared = values.get(names.GLOBAL_KEY)
    if not isinstance(shared, dict) or names.ENABLED_MODULES in shared:
        return values
    return {**values, names.GLOBAL_KEY: {**shared, names.ENABLED_MODULES: list(enabled)}}


def hiding(below: json_types.JsonObject, values: json_types.JsonObject) -> json_types.JsonObject:
    """Return the values, with ``null`` for what only ``below`` has, so that Helm does not merge that in.

    ``below`` are the chart's own values. They are a source of the module's values already, and what hooks
    removed since must not come back.
    """
    nested = {
        key: hiding(beneath, value)
        for key, value in values.items()
        if isinstance(value, dict) and isinstance(beneath := below.get(key), dict)
    }
    return {**values, **nested, **{key: None for key in below if key not in values}}


def write_values(encoded: bytes, directory: pathlib.Path) -> pathlib.Path:
    """Write the values to a file in ``directory`` that nobody else may read."""
    path = directory / "values.json"
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(encoded)
    return path


def mentions(chart: chart_files.ChartFiles, values: bytes) -> chart_files.Mention:
    """Return what the templates look at; templates within the values count where the chart renders those."""
    if not chart.mentions & chart_files.Mention.TPL:
        return chart.mentions
    return chart.mentions | chart_files.mentioned(values)


def checksum(
    chart: chart_files.ChartFiles,
    values: bytes,
    helm_version: str,
    cluster: Capabilities | None,
) -> release.Checksum:
    """Sum up everything that the manifest is made from; ``cluster`` only if the chart may see it.

    Of the cluster's APIs those count that the chart or the values may ask for: APIs of others come and go.
    """
    parts = [_VERSION, chart.checksum.encode(), helm_version.encode(), chart_files.checksum(values).encode()]
    if cluster is not None:
        seen = _seen(cluster.api_versions, chart, values)
        parts += [cluster.kube_version.encode(), *sorted(map(str.encode, seen))]
    return chart_files.checksum(b"\0".join(parts))


def _seen(apis: frozenset[str], chart: chart_files.ChartFiles, values: bytes) -> Iterable[str]:
    if mentions(chart, values) & chart_files.Mention.ALL_APIS:
        return apis
    named = chart.api_groups | chart_files.named_api_groups(values)
    return (api for api in apis if "." not in (group := api.partition("/")[0]) or group in named)
