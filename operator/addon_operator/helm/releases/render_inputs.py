"""The inputs of a render: the chart, its values, what it may know of the cluster, and a checksum over all."""

import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import orjson

from addon_operator.helm import capabilities
from addon_operator.helm.charts import chart_files
from addon_operator.kernel import json_types, names
from addon_operator.modules import release
from addon_operator.modules.patching import manifest_changes

_VERSION: Final = b"2"
"""Part of the checksum: raised when the way of rendering changes, so that releases are compared anew."""


class RenderInputs(msgspec.Struct, frozen=True):
    """Everything that the manifest is made from."""

    chart: chart_files.ChartFiles
    document: json_types.JsonObject
    """What the chart gets."""
    values: bytes
    """:attr:`document` as JSON."""
    mentions: chart_files.Mention
    """What the chart looks at, in templates within the values, too."""
    cluster: capabilities.Capabilities | None
    """Only if the chart may see it."""
    checksum: release.Checksum
    changes: manifest_changes.ManifestChanges = manifest_changes.NOTHING
    """What is changed of what the chart renders."""

    @property
    def looks_up(self) -> bool:
        """Whether the chart may find other objects after a call of Helm than before it."""
        return bool(self.mentions & chart_files.Mention.LOOKUP)

    @property
    def is_by_chance(self) -> bool:
        """Whether the chart may render to something else each time, or after the first install."""
        return bool(self.mentions & chart_files.Mention.VARIATION)

    def rendered_to(self, manifest: release.Checksum) -> release.Rendered:
        """Return what is saved with a revision of that manifest."""
        return release.Rendered(self.checksum, manifest, self.chart.checksum)


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


def write_changes(
    changes: manifest_changes.ManifestChanges, directory: pathlib.Path, name: str = "changes.json"
) -> pathlib.Path | None:
    """Write the changes to a file in ``directory``, if there are some."""
    if not changes:
        return None
    path = directory / name
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(changes.written(), encoding="utf-8")
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
    cluster: capabilities.Capabilities | None,
    changes: manifest_changes.ManifestChanges = manifest_changes.NOTHING,
) -> release.Checksum:
    """Sum up everything that the manifest is made from; ``cluster`` only if the chart may see it.

    Of the cluster's APIs those count that the chart or the values may ask for: APIs of others come and go.
    """
    parts = [_VERSION, chart.checksum.encode(), helm_version.encode(), chart_files.checksum(values).encode()]
    if changes:
        parts.append(changes.written().encode())
    if cluster is not None:
        seen = _seen(cluster.api_versions, chart, values)
        parts += [cluster.kube_version.encode(), *sorted(map(str.encode, seen))]
    return chart_files.checksum(b"\0".join(parts))


def _seen(apis: frozenset[str], chart: chart_files.ChartFiles, values: bytes) -> Iterable[str]:
    if mentions(chart, values) & chart_files.Mention.ALL_APIS:
        return apis
    named = chart.api_groups | chart_files.named_api_groups(values)
    return (api for api in apis if "." not in (group := api.partition("/")[0]) or group in named)
