"""Checks the part of a kubeconfig that is used, and reads it if it is simple.

The library that reads all others (``kubernetes.aio.config``) has messages for programmers, and passes over
some mistakes in silence: a user that is not there means anonymous requests.
"""

import dataclasses
import os
import pathlib
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import yaml

from addon_operator.documents import yaml_loader
from addon_operator.kube import api_errors

Entry = Mapping[str, Any]

_SERVED_PROVIDERS: Final = ("gcp", "oidc")
_PLAIN_CLUSTER: Final = frozenset(
    {
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "proxy-url",
    }
)
_PLAIN_USER: Final = frozenset(
    {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token"}
)
_FILE_KEYS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")

_OTHER_FILE: Final = "--kubeconfig or KUBECONFIG"


@dataclasses.dataclass(frozen=True, slots=True)
class Plain:
    """What entries say that have nothing but a token and certificates: nothing has to be run or asked."""

    server: str
    token: str | None = dataclasses.field(repr=False)
    authority: pathlib.Path | bytes | None = dataclasses.field(repr=False)
    """A file, or its content, as for the other two."""
    certificate: pathlib.Path | bytes | None = dataclasses.field(repr=False)
    key: pathlib.Path | bytes | None = dataclasses.field(repr=False)
    verify: bool
    tls_server_name: str | None
    proxy: str | None


class Chosen(msgspec.Struct, frozen=True):
    """The context that will be used, with what it leads to."""

    files: str
    """For messages: the path, or the paths joined by colons."""
    context: str
    server: str
    user: Entry
    """The user's entry; empty for anonymous access."""
    namespace: str | None = None
    """The context's namespace."""
    plain: Plain | None = None
    """All that the entries say, if that is simple."""


class _Item(msgspec.Struct, frozen=True):
    """A cluster, context or user, and the file that it stands in."""

    body: Entry
    path: pathlib.Path


def choose(paths: Sequence[pathlib.Path], context: str | None) -> Chosen:
    """Return the context of these kubeconfig files, checked; of two entries with one name the first counts.

    Raises :class:`.AccessError` with one sentence for files that cannot be read, a
    context that is not there, and entries that cannot be used.
    """
    paths = [path.absolute() for path in paths]
    documents = [(path, _read(path)) for path in paths]
    files = ":".join(map(str, paths))
    contexts = _items(documents, "contexts", "context")
    name = _context_name(documents, contexts, context, files)
    chosen = contexts[name].body
    where = f"context {name!r} of {files}"
    cluster = _referred(chosen, "cluster", _items(documents, "clusters", "cluster"), where)
    if cluster is None:
        raise api_errors.AccessError(f"{where} names no cluster")
    user = _referred(chosen, "user", _items(documents, "users", "user"), where)
    for problem in (*_server_problems(cluster), *_file_problems(cluster), *_user_problems(user)):
        raise api_errors.AccessError(f"{where} cannot be used: {problem}")
    return Chosen(
        files=files,
        context=name,
        server=cluster.body["server"],
        user=user.body if user else {},
        namespace=chosen.get("namespace"),
        plain=_plain(cluster, user),
    )


def contexts(paths: Sequence[pathlib.Path]) -> list[str]:
    """Return the names of all contexts of these files; raises :class:`.AccessError`."""
    return sorted(_items([(path, _read(path)) for path in paths], "contexts", "context"))


def _plain(cluster: _Item, user: _Item | None) -> Plain | None:
    identity = user.body if user else {}
    if not (cluster.body.keys() <= _PLAIN_CLUSTER and identity.keys() <= _PLAIN_USER):
        return None
    secure = cluster.body["server"].startswith("https")
    return Plain(
        server=cluster.body["server"],
        token=identity.get("token") or None,
        authority=_file_or_data(cluster, "certificate-authority") if secure else None,
        certificate=_file_or_data(user, "client-certificate") if secure else None,
        key=_file_or_data(user, "client-key") if secure else None,
        verify=not cluster.body.get("insecure-skip-tls-verify"),
        tls_server_name=cluster.body.get("tls-server-name"),
        proxy=cluster.body.get("proxy-url"),
    )


def _file_or_data(item: _Item | None, key: str) -> pathlib.Path | bytes | None:
    if item is None:
        return None
    if data := item.body.get(f"{key}-data"):
        return yaml_loader.base64_bytes(str(data))
    path = item.body.get(key)
    return item.path.parent / str(path) if path else None


def _read(path: pathlib.Path) -> Entry:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise api_errors.AccessError(
            f"the kubeconfig {path} cannot be read: {error.strerror}; name another one with KUBE_CONFIG or "
            "--kubeconfig"
        ) from error
    try:
        document = yaml_loader.load(text.decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise api_errors.AccessError(f"{path} is not a valid kubeconfig: {_one_line(error)}") from error
    if not isinstance(document, dict):
        what = "it is empty" if document is None else "it does not hold a mapping"
        raise api_errors.AccessError(
            f"{path} is not a valid kubeconfig: {what}; name another one with {_OTHER_FILE}"
        )
    return document


def _one_line(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    problem = getattr(error, "problem", None) or "no valid YAML"
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _items(documents: Sequence[tuple[pathlib.Path, Entry]], key: str, body_key: str) -> dict[str, _Item]:
    items: dict[str, _Item] = {}
    for path, document in documents:
        entries = document.get(key) or []
        if not isinstance(entries, list):
            raise api_errors.AccessError(f"{path} is not a valid kubeconfig: '{key}' is not a list")
        for index, entry in enumerate(entries):
            name, body = _named(path, f"{key}[{index}]", entry, body_key)
            items.setdefault(name, _Item(body, path))
    return items


def _named(path: pathlib.Path, where: str, entry: object, body_key: str) -> tuple[str, Entry]:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise api_errors.AccessError(f"{path} is not a valid kubeconfig: {where} has no name")
    body = entry.get(body_key) or {}
    if not isinstance(body, dict):
        raise api_errors.AccessError(f"{path} is not a valid kubeconfig: {where}.{body_key} is not a mapping")
    return entry["name"], body


def _context_name(
    documents: Sequence[tuple[pathlib.Path, Entry]],
    contexts: Mapping[str, _Item],
    wanted: str | None,
    files: str,
) -> str:
    if not contexts:
        raise api_errors.AccessError(f"{files} has no contexts: name another kubeconfig with {_OTHER_FILE}")
    there = ", ".join(repr(name) for name in sorted(contexts))
    current = next((doc["current-context"] for _, doc in documents if doc.get("current-context")), None)
    name = wanted or current
    if not isinstance(name, str):
        raise api_errors.AccessError(
            f"{files} has no current-context: choose a context with --context or KUBE_CONTEXT; it has {there}"
        )
    if name not in contexts:
        raise api_errors.AccessError(
            f"the context {name!r} is not in {files}: it has {there}; choose one of them with --context, or "
            f"another kubeconfig with {_OTHER_FILE}"
        )
    return name


def _referred(context: Entry, key: str, there: Mapping[str, _Item], where: str) -> _Item | None:
    name = context.get(key)
    if not name:
        return None
    if name not in there:
        raise api_errors.AccessError(f"{where} names the {key} {name!r}, which is not there")
    return there[name]


def _server_problems(cluster: _Item) -> Iterator[str]:
    server = cluster.body.get("server")
    try:
        url = urllib.parse.urlsplit(server if isinstance(server, str) else "")
        usable = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        usable = False
    if not usable:
        yield f"the server of its cluster, {server!r}, is not an http or https URL"


def _file_problems(item: _Item) -> Iterator[str]:
    for key in _FILE_KEYS:
        data = item.body.get(f"{key}-data")
        if data is not None:
            yield from _data_problems(key, data)
        elif path := item.body.get(key):
            # Relative paths are relative to the kubeconfig.
            full = item.path.parent / str(path)
            if not os.access(full, os.R_OK) or not full.is_file():
                yield f"{key} {full} is not a readable file"


def _data_problems(key: str, data: object) -> Iterator[str]:
    try:
        yaml_loader.base64_bytes(str(data))
    except ValueError:
        yield f"{key}-data is not base64"


def _user_problems(user: _Item | None) -> Iterator[str]:
    if user is None:
        return
    yield from _file_problems(user)
    body = user.body
    if ("client-certificate" in body or "client-certificate-data" in body) != (
        "client-key" in body or "client-key-data" in body
    ):
        yield "client-certificate and client-key must be given together"
    provider = body.get("auth-provider") or {}
    if provider and (not isinstance(provider, dict) or provider.get("name") not in _SERVED_PROVIDERS):
        yield "its auth-provider is not served: use an exec plugin"
    if "exec" in body and not (isinstance(body["exec"], dict) and body["exec"].get("command")):
        yield "its exec plugin has no command"
