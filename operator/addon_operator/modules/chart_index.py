"""Reads one version of one chart out of the ``index.yaml`` of a repository, which may be many megabytes.

An index comes from anywhere: this runs in the process whose time and memory are bounded.
Source: "The Chart Repository Guide" of the Helm documentation.
"""

import io
import ipaddress
import itertools
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any, Final

import orjson
import yaml

from addon_operator.documents import yaml_loader, yaml_reading
from addon_operator.kernel import errors, json_types, names
from addon_operator.modules import module_config

MAX_ENTRY: Final = 1024 * 1024
"""How many bytes an entry may have, or an index that Helm did not write: they are parsed whole."""
MAX_JSON: Final = 8 * MAX_ENTRY
"""The same of an index in JSON, which is parsed quicker."""
MAX_CANDIDATES: Final = 20
"""How many items of a chart's list are parsed that have the version."""
MAX_ADDRESSES: Final = 20
"""How many addresses of a version are kept: Helm takes the first."""
MAX_NAMES: Final = 5000
"""How many charts, or versions of one, are looked at for what somebody may have meant."""
_NEWEST: Final = 3
_SHOWN: Final = 60
_DEEPEST: Final = 4
"""How far fields of a version are indented at most; those of its dependencies are more."""
_ENDS_IN_NUMBER: Final = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")
_SOURCE: Final = "index.yaml"
_LIKE_HELM: Final = "because it is not written as 'helm repo index' writes it"


def find(content: bytes, name: str, version: str) -> json_types.JsonObject:
    """Return version, digest and addresses that the index says of a version, or else ``absent``: what it has.

    Only the entry of that version is parsed where the index is written as Helm writes it.
    Raises :class:`.ConfigurationError`: what cannot be read, or what would take too much to be read.
    """
    left = MAX_ENTRY
    for item in itertools.islice(_written_by_helm(content, name, version), MAX_CANDIDATES):
        left -= len(item)
        entry: Any = _parsed(_bounded(item, MAX_ENTRY if left >= 0 else 0, MAX_ENTRY))
        if isinstance(entry, list) and entry and _is(entry[0], version):
            return _kept(entry[0])
    entries = _all(content)
    listed = entries.get(name)
    items = listed if isinstance(listed, list) else []
    found = next((_kept(each) for each in items if _is(each, version)), None)
    return {"absent": _absent(content, entries, name, version)} if found is None else found


def _absent(content: bytes, entries: dict[str, Any], name: str, version: str) -> str:
    """Return a sentence about what the index has in place of a version, for a person who named it."""
    items = entries.get(name)
    parsed = [each["version"] for each in items if _has_text(each)] if isinstance(items, list) else []
    listed = itertools.islice(parsed or _versions(content, name), MAX_NAMES)
    versions = list(dict.fromkeys(each[:_SHOWN] for each in listed))
    if versions:
        return f"{_SOURCE} does not have it in version {version}, but in {names.listed(versions, _NEWEST)}"
    known = list(itertools.islice(entries or _names(content), MAX_NAMES))
    if name in known:
        return f"{_SOURCE} has no version of it that can be read"
    hint = names.nearest(name, known)
    return f"{_SOURCE} has no chart {name!r}" + (f"; did you mean {hint!r}?" if hint else "")


def _has_text(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("version"), str)


def _is(item: object, version: str) -> bool:
    return isinstance(item, dict) and _same(str(item.get("version")), version)


def _same(one: str, other: str) -> bool:
    """Say whether two versions are the same to Helm: one may begin with a ``v``."""
    return one.removeprefix("v") == other.removeprefix("v")


def _kept(item: dict[str, Any]) -> json_types.JsonObject:
    addresses, digest = item.get("urls"), item.get("digest")
    if addresses is not None and not isinstance(addresses, list):
        raise errors.ConfigurationError(f"{_SOURCE}: urls of version {item['version']} must be a list")
    listed: list[json_types.JsonValue] = list(map(str, (addresses or [])[:MAX_ADDRESSES]))
    return {"version": str(item["version"]), "digest": str(digest or ""), "urls": listed}


def _all(content: bytes) -> dict[str, Any]:
    found: Any
    if content.lstrip()[:1] == b"{":
        try:
            found = orjson.loads(_bounded(content, MAX_JSON))
        except orjson.JSONDecodeError:
            found = _parsed(_bounded(content, MAX_ENTRY))
    elif len(content) > MAX_ENTRY and any(_is_entries(line) for line in io.BytesIO(content)):
        return {}
    else:
        found = _parsed(_bounded(content, MAX_ENTRY))
    entries = found.get("entries") if isinstance(found, dict) else None
    return entries if isinstance(entries, dict) else {}


def _bounded(content: bytes, most: int, named: int = 0) -> bytes:
    if len(content) > most:
        mib = (named or most) // MAX_ENTRY
        raise errors.ConfigurationError(
            f"{_SOURCE} has more than {mib} MiB that must be read at once, {_LIKE_HELM}"
        )
    return content


def _parsed(content: bytes) -> json_types.JsonValue:
    text = content.decode("utf-8", "replace")
    document = yaml_reading.load(text, _SOURCE)
    if "&" in text and "*" in text and _has_aliases(yaml.compose(text, Loader=yaml_loader.Loader)):
        raise errors.ConfigurationError(f"{_SOURCE} has aliases, {_LIKE_HELM}")
    return document


def _has_aliases(root: yaml.Node | None) -> bool:
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            return True
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            pending += itertools.chain.from_iterable(node.value)
        elif isinstance(node, yaml.SequenceNode):
            pending += node.value
    return False


def _is_entries(line: bytes) -> bool:
    return line.startswith(b"entries:") and not _value(line.partition(b":")[2])


def _value(text: bytes) -> bytes:
    """Return a scalar on one line without what is around it."""
    text = text.partition(b" #")[0].strip()
    return text[1:-1] if len(text) > 1 and text[:1] == text[-1:] and text[:1] in b"'\"" else text


def _indent(line: bytes) -> int:
    return len(line) - len(line.lstrip(b" "))


def _lines(content: bytes) -> Iterator[bytes]:
    """Yield the lines of the entries, without those that are empty or comments."""
    lines = iter(io.BytesIO(content))
    for line in lines:
        if _is_entries(line):
            break
    for line in lines:
        if (text := line.strip()) and not text.startswith(b"#"):
            if _indent(line) == 0 and not text.startswith(b"-"):
                return
            yield line


def _written_by_helm(content: bytes, name: str, version: str) -> Iterator[bytes]:
    """Yield the items of the chart's list that have the version in their own mapping, by indentation."""
    item: list[bytes] = []
    has_version = False
    column = 0
    for line in _listed(content, name.encode()):
        if _starts_item(line, item):
            if has_version:
                yield b"".join(item)
            item, has_version = [], False
            column = _indent(line.replace(b"-", b" ", 1))
        item.append(line)
        own = line.replace(b"-", b" ", 1) if len(item) == 1 else line
        has_version = has_version or (_indent(own) == column and _has_version(own, version))
    if has_version:
        yield b"".join(item)


def _versions(content: bytes, name: str) -> Iterator[str]:
    """Yield the versions that an index as Helm writes it has of a chart, the newest first."""
    for line in _listed(content, name.encode()):
        key, colon, value = line.replace(b"-", b" ", 1).partition(b":")
        if colon and _indent(line) <= _DEEPEST and _value(key) == b"version":
            yield _value(value).decode(errors="replace")


def _names(content: bytes) -> Iterator[str]:
    """Yield the charts of an index as Helm writes it."""
    column = -1
    for line in _lines(content):
        column = _indent(line) if column < 0 else column
        key, colon, value = line.rpartition(b":")
        if _indent(line) == column and colon and not _value(value):
            yield _value(key).decode(errors="replace")


def _starts_item(line: bytes, item: list[bytes]) -> bool:
    is_dash = line.lstrip(b" ").startswith((b"- ", b"-\n"))
    return is_dash and (not item or _indent(line) == _indent(item[0]))


def _has_version(line: bytes, version: str) -> bool:
    key, colon, value = line.partition(b":")
    return (
        bool(colon) and _value(key) == b"version" and _same(_value(value).decode(errors="replace"), version)
    )


def _listed(content: bytes, name: bytes) -> Iterator[bytes]:
    """Yield the lines of one chart's list."""
    column, is_inside = -1, False
    for line in _lines(content):
        indent = _indent(line)
        column = indent if column < 0 else column
        is_key = indent <= column and not line.lstrip(b" ").startswith((b"- ", b"-\n"))
        if is_key and is_inside:
            return
        if is_inside:
            yield line
        elif is_key and indent == column:
            key, colon, value = line.rpartition(b":")
            is_inside = bool(colon) and not _value(value) and _value(key) == name


def refused_address(repository: str, address: str) -> str:
    """Say why no chart is fetched from an address in an index, as a phrase; empty if it may be.

    This machine, and what is only reachable from it, are for repositories on this machine alone: an index
    of somebody else must not have the operator ask its neighbours.
    """
    if any(char <= " " or char in "\\\x7f" for char in address):
        return "which is not an address"
    try:
        place = urllib.parse.urlsplit(urllib.parse.urljoin(f"{repository.rstrip('/')}/", address))
        host, _ = place.hostname or "", place.port
        is_here = module_config.is_loopback(repository)
    except ValueError:
        return "which is not an address"
    if place.scheme not in ("https", "http", "oci") or not host:
        return "which is not an address of HTTPS"
    if _is_near(host):
        return "" if is_here else "which is on this machine, and the repository is not"
    if place.scheme == "http":
        return "which is plain HTTP, and that is only for this machine itself; have it served by HTTPS"
    return ""


def _is_near(host: str) -> bool:
    """Say whether a host is this machine, or can only be reached from it."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address: Any = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        # Some take numbers with other bases or fewer parts for addresses, too.
        return _ENDS_IN_NUMBER.search(name) is not None
    address = getattr(address, "ipv4_mapped", None) or address
    return bool(
        address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
    )
