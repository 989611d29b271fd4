"""Charts of the shape that public ones have: charts within them, a shared library, dashboards, definitions.

The figures are those of stock charts of 30 repositories: some hundred files and values each, a few charts
within them, the same library in each, and in every fourth one megabytes of CustomResourceDefinitions.
"""

import json
import pathlib
from collections.abc import Iterator
from typing import Final

import yaml

VALUES: Final = 200
FILES: Final = 300
"""Files of one chart, with those of the charts within it."""
DEFINITION_BYTES: Final = 2 * 1024 * 1024
"""In every fourth chart."""
_EVERY: Final = 4
_DEFINITIONS: Final = 8
_LIBRARY_FILES: Final = 30
_TEMPLATES: Final = 60
"""Files of templates of a chart, and of each within it; most render nothing unless a value says so."""
_OBJECTS: Final = 8
_WITHIN: Final = ("db", "cache")
_LINES: Final = 40

_HELPER: Final = """\
{{/* Names and labels number %(number)s, as every chart has them. */}}
{{- define "library.part%(number)s" -}}
{{- $name := default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- if .Capabilities.APIVersions.Has "monitoring.example.com/v1/ServiceMonitor" -}}monitored: "yes"{{- end }}
app.kubernetes.io/name: {{ $name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
"""
_OBJECT: Final = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Name }}-%(number)s
  labels: {{- include "library.part%(part)s" . | nindent 4 }}
data:
  value: {{ index .Values "value%(number)s" | default "none" | quote }}
  version: {{ .Capabilities.KubeVersion.Version | quote }}
"""
_OFF: Final = """\
{{- if and .Values.extras.enabled (.Capabilities.APIVersions.Has "networking.example.com/v1/Route") }}
{{- range $index, $each := .Values.extras.items }}
---
apiVersion: networking.example.com/v1
kind: Route
metadata:
  name: {{ $.Release.Name }}-{{ $index }}-%(number)s
spec: {{- tpl (toYaml $each) $ | nindent 2 }}
{{- end }}
{{- end }}
"""


def name(number: int) -> str:
    """The module's name."""
    return f"chart-n{number:03}"


def key(number: int) -> str:
    """Its key in the values."""
    return f"chartN{number:03}"


def write(module: pathlib.Path, number: int) -> None:
    """Write a public chart into a module's directory."""
    chart = module / "chart"
    _chart(chart, name(number), [*_WITHIN, "library"])
    for within in _WITHIN:
        _chart(chart / "charts" / within, within, [])
    _library(chart / "charts" / "library")
    if number % _EVERY == 0:
        _definitions(chart / "crds", number)
    files = sum(path.is_file() for path in chart.rglob("*"))
    dashboards = chart / "dashboards"
    dashboards.mkdir()
    for each in range(FILES - files):
        (dashboards / f"{each}.json").write_text(_dashboard(each))


def _chart(path: pathlib.Path, called: str, within: list[str]) -> None:
    (path / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": called, "version": "1.0.0"}
    needed = [{"name": each, "version": "1.0.0"} for each in within]
    (path / "Chart.yaml").write_text(yaml.safe_dump(about | ({"dependencies": needed} if needed else {})))
    (path / "values.yaml").write_text("\n".join(_values()))
    for number in range(_TEMPLATES):
        text = _OBJECT if number < _OBJECTS and within else _OFF
        parts = {"number": number, "part": number % _LIBRARY_FILES}
        comment = f"{{{{- /* {'What this is for, in a sentence or two. ' * _LINES} */}}}}\n"
        (path / "templates" / f"{number}.yaml").write_text(comment + text % parts)


def _values() -> Iterator[str]:
    yield "nameOverride: ''"
    yield "extras: {enabled: false, items: []}"
    for number in range(VALUES):
        yield f"## @param value{number} What the value number {number} of the chart is for, ref: https://example.com/"
        yield f"value{number}: some text {number}"


def _library(path: pathlib.Path) -> None:
    (path / "templates").mkdir(parents=True)
    about = {"apiVersion": "v2", "name": "library", "version": "1.0.0", "type": "library"}
    (path / "Chart.yaml").write_text(yaml.safe_dump(about))
    for number in range(_LIBRARY_FILES):
        (path / "templates" / f"_{number}.tpl").write_text(_HELPER % {"number": number} * 1)


def _definitions(path: pathlib.Path, number: int) -> None:
    path.mkdir()
    for each in range(_DEFINITIONS):
        (path / f"{each}.yaml").write_text(yaml.safe_dump(_definition(f"kind{each}n{number}s")))


def _definition(plural: str) -> dict[str, object]:
    described = {"type": "string", "description": "What the field is for, in a sentence or two. " * 4}
    fields = DEFINITION_BYTES // _DEFINITIONS // len(json.dumps(described))
    spec = {"type": "object", "properties": {f"field{each}": described for each in range(fields)}}
    group = "real.example.com"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


def _dashboard(number: int) -> str:
    panels = [{"id": each, "title": f"Panel {each}", "expr": "sum(rate(x[5m]))"} for each in range(_LINES)]
    return json.dumps({"title": f"Dashboard {number}", "panels": panels}, indent=2)
