"""Variables that stand twice in ``env``: the API server takes them, and Helm 4 refuses them.

The last one counts, at its own place, as in a container. Each is told, as it is hardly meant.
"""

import collections
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from addon_operator.documents import yaml_loader

_START: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NAMED: Final = re.compile(r"""\bname["']?: *["']?([^\s,}"']+)""")
_ENV: Final = re.compile(r"""\benv["']?:""")
_OF_KUBERNETES: Final = frozenset({"v1", "apps/v1", "batch/v1"})
_CONTAINERS: Final = ("initContainers", "containers")


def once(manifest: str) -> tuple[str, tuple[str, ...]]:
    """Return a manifest in which no variable stands twice, and a sentence for each that did."""
    starts = [0, *(found.start() for found in _START.finditer(manifest)), len(manifest)]
    parts = [manifest[start:end] for start, end in itertools.pairwise(starts)]
    told: list[str] = []
    for number, part in enumerate(parts):
        # To read YAML takes long, and few documents have a name twice.
        counts = collections.Counter(_NAMED.findall(part)) if _ENV.search(part) else {}
        if max(counts.values(), default=0) > 1:
            try:
                (document,) = [each for each in yaml_loader.load_all(part) if each]
            except (yaml.YAMLError, ValueError):
                continue  # Helm says what is wrong with it.
            if found := remove(document):
                told += found
                parts[number] = f"---\n{json.dumps(document)}\n"
    return "".join(parts), tuple(told)


def remove(document: object) -> list[str]:
    """Remove from an object all but the last variable of each name; gives a sentence for each."""
    told: list[str] = []
    if not isinstance(document, dict) or document.get("apiVersion") not in _OF_KUBERNETES:
        return told
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    for container in _containers(document):
        env = [each for each in container.get("env") or () if isinstance(each, dict)]
        last = {each.get("name"): index for index, each in enumerate(env)}
        if len(last) == len(env):
            continue
        container["env"] = [each for index, each in enumerate(env) if last[each.get("name")] == index]
        for variable, count in collections.Counter(each.get("name") for each in env).items():
            if count > 1:
                told.append(
                    f"{document.get('kind')} {name}, container {container.get('name')}: env has {variable} "
                    f"{count} times, and the last one counts; remove the others from the chart"
                )
    return told


def _containers(value: object) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        return
    for key in ("spec", "template", "jobTemplate"):
        yield from _containers(value.get(key))
    for key in _CONTAINERS:
        listed = value.get(key)
        for container in listed if isinstance(listed, list) else ():
            if isinstance(container, dict) and isinstance(container.get("env"), list):
                yield container
