"""Items that stand twice in a list, such as a variable in ``env``: Helm 4 refuses what the API server takes.

The last one counts, at its own place, as in a container. Each is told, as it is hardly meant.
"""

import collections
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from addon_operator.documents import yaml_loader

_START: Final = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_OF_KUBERNETES: Final = frozenset({"v1", "apps/v1", "batch/v1"})
_CONTAINERS: Final = ("initContainers", "containers")
_OF_METADATA: Final[Mapping[str, tuple[str, ...]]] = {"finalizers": ()}
_OF_ACCOUNTS: Final[Mapping[str, tuple[str, ...]]] = {"secrets": ("name",)}
_OF_PODS: Final[Mapping[str, tuple[str, ...]]] = {"imagePullSecrets": ("name",), "hostAliases": ("ip",)}
_OF_CONTAINERS: Final[Mapping[str, tuple[str, ...]]] = {
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
}
"""Lists of which the API server takes an item twice, and which keys tell their items apart."""
_DEFAULTS: Final = {"protocol": "TCP"}
_HINTS: Final = tuple(
    (
        re.compile(rf"""\b{name}["']?:"""),
        re.compile(rf"""\b{keys[0]}["']?: *["']?([^\s,}}"']+)""" if keys else "()"),
    )
    for lists in (_OF_METADATA, _OF_ACCOUNTS, _OF_PODS, _OF_CONTAINERS)
    for name, keys in lists.items()
)
"""Of each of these lists its name, and what may stand twice in it, in a text."""


def once(manifest: str) -> tuple[str, tuple[str, ...]]:
    """Return a manifest in which no such item stands twice, and a sentence for each that did."""
    starts = [0, *(found.start() for found in _START.finditer(manifest)), len(manifest)]
    parts = [manifest[start:end] for start, end in itertools.pairwise(starts)]
    told: list[str] = []
    for number, part in enumerate(parts):
        # To read YAML takes long, and few documents have a name twice.
        if any(_has_twice(key.findall(part)) for name, key in _HINTS if name.search(part)):
            try:
                (document,) = [each for each in yaml_loader.load_all(part) if each]
            except (yaml.YAMLError, ValueError):
                continue  # Helm says what is wrong with it.
            if found := remove(document):
                told += found
                parts[number] = f"---\n{json.dumps(document)}\n"
    return "".join(parts), tuple(told)


def _has_twice(found: list[str]) -> bool:
    return len(set(found)) < len(found)


def remove(document: object) -> list[str]:
    """Remove from an object all but the last of equal items; gives a sentence for each."""
    told: list[str] = []
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(metadata, dict):
        return told
    for where, owner, lists in _owners(document, metadata):
        for name, keys in lists.items():
            items = owner.get(name)
            if not isinstance(items, list) or not all(
                isinstance(each, dict if keys else str) for each in items
            ):
                continue
            said = [_told_apart_by(each, keys) for each in items]
            last = {text: index for index, text in enumerate(said)}
            owner[name] = [each for index, each in enumerate(items) if last[said[index]] == index]
            told += [
                f"{document.get('kind')} {metadata.get('name')}{where}: {name} has {text} {count} times, and "
                "the last one counts; remove the others from the chart"
                for text, count in collections.Counter(said).items()
                if count > 1
            ]
    return told


def _told_apart_by(item: Any, keys: tuple[str, ...]) -> str:  # noqa: ANN401 - JSON
    return "/".join(str(item.get(key, _DEFAULTS.get(key))) for key in keys) if keys else str(item)


def _owners(
    document: dict[str, Any], metadata: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], Mapping[str, tuple[str, ...]]]]:
    """Yield what has such lists, after where it is."""
    yield "", metadata, _OF_METADATA
    if document.get("apiVersion") not in _OF_KUBERNETES:
        return
    if document.get("kind") == "ServiceAccount":
        yield "", document, _OF_ACCOUNTS
    spec = document.get("spec")
    while isinstance(spec, dict):
        yield "", spec, _OF_PODS
        for key in _CONTAINERS:
            listed = spec.get(key)
            for container in listed if isinstance(listed, list) else ():
                if isinstance(container, dict):
                    yield f", container {container.get('name')}", container, _OF_CONTAINERS
        inner = spec.get("jobTemplate") or spec.get("template")
        spec = inner.get("spec") if isinstance(inner, dict) else None
