"""Content as large as it may be, made of what patterns, parsers and masks like least."""

import json
import pathlib
import shutil
import tarfile
from typing import Any, Final

KIB: Final = 1024
LIKED: Final = "{{ $( \"'\\ a.b.c {[ :- # %} /x@y: "
"""What patterns begin at, and do not find the end of."""
SEARCHED: Final = 1 * KIB
"""How much of what is searched for names and actions is nothing but their beginnings."""

Object = dict[str, Any]


def text(size: int, of: str = LIKED) -> str:
    """A text of that many characters."""
    return (of * (size // len(of) + 1))[:size]


def values(size: int) -> Object:
    """A section of about that many bytes as JSON, large in each of the ways in which one can be."""
    share = size // 5
    deep: Object = {"end": text(100)}
    for number in range(60):
        deep = {f"level{number}": deep, "beside": number}
    return {
        "long": text(share),
        "braces": text(SEARCHED, "{") + text(SEARCHED, "a.a"),
        "short": [f"s{number:05}" for number in range(share // 9)],
        "keys": {f"k{number}.example/{number}": {"value": "x", "on": True} for number in range(share // 50)},
        "deep": deep,
        text(1000, "aB"): {f"c{number}": number for number in range(share // 14)},
    }


def schema(properties: int) -> Object:
    """A schema that allows everything, with so many properties, some of them sensitive."""
    return {
        "type": "object",
        "additionalProperties": True,
        "properties": {
            f"property{number}": {
                "type": "object",
                "description": text(200),
                "properties": {
                    "name": {"type": "string", "pattern": "^(a+)+b?$|^.*$", "maxLength": 1000},
                    "password": {"type": "string", "x-sensitive": True},
                    "more": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                },
            }
            for number in range(properties)
        },
    }


def definition(number: int, fields: int) -> Object:
    """A CustomResourceDefinition with so many fields."""
    wide = {
        "type": "object",
        "properties": {
            f"field{each}": {"type": "string", "description": text(300)} for each in range(fields)
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": wide}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"larges{number}.content.example.com"},
        "spec": {
            "group": "content.example.com",
            "scope": "Namespaced",
            "names": {"plural": f"larges{number}", "singular": f"large{number}", "kind": f"Large{number}"},
            "versions": [version],
        },
    }


def config_map(name: str, namespace: str, size: int, **labels: str) -> Object:
    """A ConfigMap of that many bytes."""
    data = {"long": text(size // 2)} | {f"k{number}": text(20) for number in range(size // 60)}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def lines(*documents: Object) -> str:
    """Documents as hooks write them, one on each line."""
    return "".join(json.dumps(document) + "\n" for document in documents)


_OBJECTS: Final = """\
{{- $length := len (toJson .Values) }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}}
stringData:
  apis: {{ .Capabilities.APIVersions.Has "apps/v1" | quote }}
{{- range $n, $_ := until 1000 }}
  k{{ $n }}: secret-{{ $n }}-{{ $length }}
{{- end }}
{{- range $n, $_ := until 150 }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ $n }}}
data:
  large: {{ $.Files.Get "files/f0.txt" | repeat 10 | quote }}
{{- end }}
"""


def chart(path: pathlib.Path, name: str, *, depth: int = 2, size: int = 100 * KIB) -> None:
    """Write a chart of 400 files, 150 objects, and subcharts so deep, each of them twice; one is packed."""
    _chart(path, name, depth, size)
    (path / "templates" / "objects.yaml").write_text(_OBJECTS)
    for number in range(400):
        (path / "files" / f"f{number}.txt").write_text(text(200))


def _chart(path: pathlib.Path, name: str, depth: int, size: int) -> None:
    for directory in ("templates", "files"):
        (path / directory).mkdir(parents=True)
    about: Object = {"apiVersion": "v2", "name": name, "version": "0.1.0"}
    if depth:
        about["dependencies"] = [
            {"name": f"{name}-sub", "version": "0.1.0", "alias": alias} for alias in ("left", "right")
        ]
        below = path / "charts" / f"{name}-sub"
        _chart(below, f"{name}-sub", depth - 1, size // 2)
        if depth == 1:
            with tarfile.open(f"{below}.tgz", "w:gz") as packed:
                packed.add(below, below.name)
            shutil.rmtree(below)
    own = {"own": values(size), "global": {"shared": text(size)}}
    (path / "Chart.yaml").write_text(json.dumps(about))
    (path / "values.yaml").write_text(json.dumps(own))
    (path / "values.schema.json").write_text(json.dumps(schema(size // 2000)))
    (path / "templates" / "_braces.tpl").write_text("{{/* " + text(SEARCHED, "{") + " */}}")
    (path / "templates" / "_names.tpl").write_text("{{/* " + text(SEARCHED, "a.a-") + " */}}")
    (path / "templates" / "_liked.tpl").write_text("{{/* " + text(SEARCHED) + " */}}")


def failing_chart(path: pathlib.Path) -> None:
    """Write a chart that Helm refuses with as much text as it takes."""
    (path / "templates").mkdir(parents=True)
    (path / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": "broken", "version": "0.1.0"}))
    said = json.dumps(text(1000))
    (path / "templates" / "fails.yaml").write_text("{{ fail (repeat 500 " + said + ") }}")


def module(path: pathlib.Path, name: str) -> None:
    """Write a module with a chart of its own, large values, schemas and definitions."""
    chart(path, name)
    for directory in ("openapi", "crds"):
        (path / directory).mkdir()
    for file in ("values.yaml", "config-values.yaml"):
        (path / "openapi" / file).write_text(json.dumps(schema(1000)))
    for number in range(2):
        (path / "crds" / f"{number}.yaml").write_text(json.dumps(definition(number, 1000)))
    (path / "values.yaml").write_text(json.dumps({name: values(300 * KIB), f"{name}Enabled": True}))
