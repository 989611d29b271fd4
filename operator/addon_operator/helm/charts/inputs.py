"""The inputs of a render: a checksum over them, and the files that hand them to Helm."""

import json
import pathlib
from typing import Final

import orjson

from addon_operator.helm import capabilities
from addon_operator.helm.charts import chart_files
from addon_operator.kernel import json_types
from addon_operator.modules import release

_VERSION: Final = b"2"
"""Part of the checksum: raised when the way of rendering changes, so that releases are compared anew."""


def encode_values(values: json_types.JsonObject) -> bytes:
    """Values as canonical JSON, which is YAML to Helm: equal values give equal bytes.

    Integers of any size survive.
    """
    try:
        return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        # Integers beyond 64 bits, or halves of surrogate pairs.
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def hiding(below: json_types.JsonObject, values: json_types.JsonObject) -> json_types.JsonObject:
    """The values, with ``null`` for what only ``below`` has, so that Helm does not merge that in.

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
    """The values as a file in ``directory`` that nobody else may read."""
    path = directory / "values.json"
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(encoded)
    return path


def sees_capabilities(chart: chart_files.ChartFiles, values: bytes) -> bool:
    """Whether the manifest may depend on the version and the APIs of the cluster."""
    return bool(_mentions(chart, values) & chart_files.Mention.CAPABILITIES)


def looks_up(chart: chart_files.ChartFiles, values: bytes) -> bool:
    """Whether the chart may ask the cluster for objects."""
    return bool(_mentions(chart, values) & chart_files.Mention.LOOKUP)


def varies(chart: chart_files.ChartFiles, values: bytes) -> bool:
    """Whether two renders with the same inputs may differ: before and after a call of Helm, or at random."""
    return bool(_mentions(chart, values) & (chart_files.Mention.LOOKUP | chart_files.Mention.VARIATION))


def is_random(chart: chart_files.ChartFiles, values: bytes) -> bool:
    """Whether two renders may differ although nothing happened between them."""
    return bool(_mentions(chart, values) & chart_files.Mention.VARIATION)


def checksum(
    chart: chart_files.ChartFiles,
    values: bytes,
    helm_version: str,
    cluster: capabilities.Capabilities | None,
) -> release.Checksum:
    """Over everything that the manifest is made from; ``cluster`` only if the chart may see it."""
    parts = [_VERSION, chart.checksum.encode(), helm_version.encode(), chart_files.checksum(values).encode()]
    if cluster is not None:
        parts += [cluster.kube_version.encode(), *sorted(map(str.encode, cluster.api_versions))]
    return chart_files.checksum(b"\0".join(parts))


def _mentions(chart: chart_files.ChartFiles, values: bytes) -> chart_files.Mention:
    """What the templates look at; templates within the values count where the chart renders those."""
    if not chart.mentions & chart_files.Mention.TPL:
        return chart.mentions
    return chart.mentions | chart_files.mentioned(values)
