"""Reads one version of one chart out of the ``index.yaml`` of a repository, which may be many megabytes.

Source: "The Chart Repository Guide" of the Helm documentation.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from addon_operator.documents import yaml_reading
from addon_operator.kernel import errors, json_types

MAX_ENTRY: Final = 1024 * 1024
"""How many bytes an entry may have, or an index that Helm did not write: they are parsed whole."""
MAX_JSON: Final = 8 * MAX_ENTRY
"""The same of an index in JSON, which is parsed quicker."""
_ENTRIES: Final = re.compile(r"^entries:[ \t]*$", re.MULTILINE)


def find(text: str, name: str, version: str) -> json_types.JsonObject:
    """Return what the index says of a version; empty if it does not have it.

    Only the entry of that version is parsed where the index is written as Helm writes it.
    Raises :class:`.ConfigurationError`: what cannot be read, or what would take too much to be read.
    """
    for part in _written_by_helm(text, name, version):
        item: Any = yaml_reading.load(_bounded(part, MAX_ENTRY), "index.yaml")
        if _is(item, version):
            return dict(item[0])
    listed = _all(text).get(name)
    return next((dict(each) for each in listed or () if _is([each], version)), {})


def _is(item: object, version: str) -> bool:
    return isinstance(item, list) and isinstance(item[0], dict) and str(item[0].get("version")) == version


def _all(text: str) -> dict[str, Any]:
    found: Any
    if text.lstrip().startswith("{"):
        try:
            found = orjson.loads(_bounded(text, MAX_JSON))
        except orjson.JSONDecodeError:
            found = yaml_reading.load(_bounded(text, MAX_ENTRY), "index.yaml")
    elif _ENTRIES.search(text):
        return {}
    else:
        found = yaml_reading.load(_bounded(text, MAX_ENTRY), "index.yaml")
    entries = found.get("entries") if isinstance(found, dict) else None
    return entries if isinstance(entries, dict) else {}


def _bounded(text: str, most: int) -> str:
    if len(text) > most:
        raise errors.ConfigurationError(
            f"index.yaml has more than {most // MAX_ENTRY} MiB that must be read at once, because it is not "
            "written as 'helm repo index' writes it"
        )
    return text


def _written_by_helm(text: str, name: str, version: str) -> Iterator[str]:
    """Yield the items of the chart's list that may be that version: one key per line, by indentation."""
    start = _ENTRIES.search(text)
    if start is None:
        return
    key = re.compile(rf"^(?P<indent> +)([\"']?){re.escape(name)}\2:[ \t]*\n", re.MULTILINE)
    if (found := key.search(text, start.end())) is None:
        return
    indent = found["indent"]
    end = re.compile(rf"^(?!{indent}[ -])(?=[^\n])", re.MULTILINE).search(text, found.end())
    listed = text[found.end() : end.start() if end else len(text)]
    first = re.match(r" *- ", listed)
    if first is None:
        return
    wanted = re.compile(rf"^[ -]+version: *([\"']?){re.escape(version)}\1[ \t]*$", re.MULTILINE)
    for item in re.split(rf"^(?={re.escape(first[0])})", listed, flags=re.MULTILINE):
        if wanted.search(item):
            yield item
