"""Answers ``module why``: where objects, and their fields, come from."""

import asyncio
import itertools
import pathlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from addon_operator.debug import field_causes
from addon_operator.documents import json_pointers, manifest_diff
from addon_operator.engine.modules import module_releases
from addon_operator.helm import helm_errors, messages, release_types
from addon_operator.helm.charts import plain_files, subcharts
from addon_operator.helm.releases import releases
from addon_operator.helm.repositories import chart_cache
from addon_operator.kernel import errors, json_types, names
from addon_operator.loading import module_files, value_origins
from addon_operator.modules import chart_values, model
from addon_operator.values import coalescing, store
from addon_operator.values.schema import schemas

FIELDS: Final = 200
"""Fields of an object that are told; of more, ask for one."""
_SHOWN: Final = 200
_MAX_TEMPLATE: Final = 1 << 20
_DATA: Final = ("data", "stringData")
_VALUES: Final = ".Values"
_ACTION: Final = "{{"
_BLOCKS: Final = re.compile(r"\{\{-?\s*(if|with|range|define|block|end)\b")


class WhyError(errors.AddonOperatorError):
    """There is no such object, or no such field."""


class Why:
    """Looks for causes in the values that are in force."""

    def __init__(
        self, manager: releases.ReleaseManager, values: store.ValuesStore, charts: chart_cache.ChartCache
    ) -> None:
        self._manager = manager
        self._values = values
        self._charts = charts
        self._turn = asyncio.Semaphore(1)

    async def of(self, module: model.Module, wanted: str, path: str, *, paths: bool = False) -> object:
        """Tell of the object ``KIND/NAME`` (all if empty), and of its field (all if empty).

        With ``paths``, only say which fields there are, without another render.

        Raises :class:`WhyError`, and what a render raises.
        """
        if not module.has_chart:
            raise WhyError(f"module {module.name} has no chart")
        async with self._turn:
            await self._charts.ensure(module)
            values = self._values.snapshot(module.name)
            request = await asyncio.to_thread(module_releases.request_of, values, module)
            base = await self._manager.render(request)
            documents = await asyncio.to_thread(
                lambda: list(manifest_diff.objects(manifest_diff.parse(base)))
            )
            if not wanted:
                return {"objects": [_object(module, each) for each in documents]}
            document = _chosen(documents, wanted)
            if paths:
                return {
                    **_object(module, document),
                    "paths": [json_pointers.render(each) for each in _known(document, _leaves)],
                }
            tried = await asyncio.to_thread(_with_defaults, module, request.values)
            return {
                **_object(module, document),
                "fields": await self._fields(_Asked(module, values, request, document, base, tried), path),
            }

    async def _fields(self, asked: "_Asked", path: str) -> list[dict[str, Any]]:
        pointers = (
            [await asyncio.to_thread(_pointer, asked.document, path)]
            if path
            else list(itertools.islice(_leaves(asked.document.body), FIELDS))
        )

        async def render(values: json_types.JsonObject) -> str:
            # Schemas do not allow marks.
            changed = structs.replace(asked.request, values=values, skips_schemas=True)
            return await self._manager.render(changed)

        key = asked.document.key
        causes = await asyncio.to_thread(
            field_causes.FieldCauses, render, asked.tried, (key.kind, key.name), asked.base
        )
        found = [(pointer, await causes.of(pointer)) for pointer in pointers]
        return await asyncio.to_thread(lambda: [_told(asked, *each) for each in found])


class _Asked(msgspec.Struct, frozen=True):
    """One object of a module."""

    module: model.Module
    values: store.ValuesStore
    request: release_types.ReleaseRequest
    document: manifest_diff.ManifestDocument
    base: str
    tried: json_types.JsonObject
    """What the chart reads: the values of the request, and its own defaults."""


def _with_defaults(module: model.Module, values: json_types.JsonObject) -> json_types.JsonObject:
    """Lay values over those of a public chart, and of the charts within it, as Helm does."""
    if module.stock is None:
        return values
    try:
        chart = subcharts.read(module.name, module.chart_directory, is_stock=True)
    except helm_errors.ChartError:
        return values  # Helm read it: whatever is too much for us, the values alone can be tried.
    return _with_nulls(coalescing.coalesced(coalescing.remaining(chart, values), values), values)


def _with_nulls(complete: json_types.JsonObject, given: json_types.JsonObject) -> json_types.JsonObject:
    """Return values with each ``null`` of those that were given: without it, Helm takes the default."""
    filled = {**complete, **{key: None for key, value in given.items() if value is None}}
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(inner := complete.get(key), dict):
            filled[key] = _with_nulls(inner, value)
    return filled


def _object(module: model.Module, document: manifest_diff.ManifestDocument) -> dict[str, Any]:
    key = document.key
    return {"object": f"{key.kind}/{key.name}", "template": _file(module, document)}


def _file(module: model.Module, document: manifest_diff.ManifestDocument) -> str:
    return messages.in_module(document.source, module.chart_directory)


_SHORT_KINDS: Final = {
    "cj": "cronjob",
    "cm": "configmap",
    "crd": "customresourcedefinition",
    "crds": "customresourcedefinition",
    "deploy": "deployment",
    "ds": "daemonset",
    "hpa": "horizontalpodautoscaler",
    "ing": "ingress",
    "netpol": "networkpolicy",
    "ns": "namespace",
    "pdb": "poddisruptionbudget",
    "po": "pod",
    "pvc": "persistentvolumeclaim",
    "rs": "replicaset",
    "sa": "serviceaccount",
    "sts": "statefulset",
    "svc": "service",
}
"""As kubectl takes them."""


def _chosen(
    documents: Sequence[manifest_diff.ManifestDocument], wanted: str
) -> manifest_diff.ManifestDocument:
    found = {f"{each.key.kind}/{each.key.name}": each for each in documents if each.body is not None}
    by_name = {name.lower(): each for name, each in found.items()}
    kind, _, name = wanted.lower().partition("/")
    for each in (kind, _SHORT_KINDS.get(kind, kind), kind.removesuffix("s"), kind.removesuffix("es")):
        if (document := by_name.get(f"{each}/{name}")) is not None:
            return document
    listed = names.listed(list(found), 10) or "none"
    hint = names.did_you_mean(wanted, list(found)[:_COMPARED], f"there are: {listed}")
    raise WhyError(f"the chart renders no object {wanted}; {hint}")


def _pointer(document: manifest_diff.ManifestDocument, path: str) -> json_pointers.Tokens:
    try:
        pointer = json_pointers.of_path(path)
    except ValueError as error:
        raise WhyError(f"{path!r} is not a path: {error}") from None
    if field_causes.is_absent(field_causes.field_of(document.body, pointer)):
        hint = _near(document, path) or (
            "write it as /spec/replicas or spec.replicas, and leave it out to see all"
        )
        raise WhyError(f"{document.key} has no field {path}; {hint}")
    return pointer


_COMPARED: Final = 2000
"""Fields of an object, and what they lie in, that are offered in place of one that is not there."""
_OFFERED: Final = 3


def _known(
    document: manifest_diff.ManifestDocument, walk: Callable[[Any], Iterator[json_pointers.Tokens]]
) -> list[json_pointers.Tokens]:
    return list(itertools.islice(walk(document.body), _COMPARED))


def _near(document: manifest_diff.ManifestDocument, path: str) -> str:
    """Ask whether the nearest path was meant, or one that ends in the same key; empty if nothing is near."""
    written = {_written(each): each for each in _known(document, _all)}
    asked = json_pointers.of_path(path)
    last = asked[-1].lower()
    nearest = names.nearest(".".join(asked), written)
    same = [text for text, pointer in written.items() if pointer[-1].lower() == last]
    found = list(dict.fromkeys([*([nearest] if nearest else []), *same]))[:_OFFERED]
    return f"did you mean {' or '.join(found)}?" if found else ""


def _written(pointer: json_pointers.Tokens) -> str:
    """Return a path in dots, or as a pointer if a key has some."""
    if any("." in key or "/" in key for key in pointer):
        return json_pointers.render(pointer)
    return ".".join(pointer)


def _all(body: Any, path: json_pointers.Tokens = ()) -> Iterator[json_pointers.Tokens]:  # noqa: ANN401
    """Yield the paths of all fields, also of those that hold others."""
    if isinstance(body, dict | list):
        for key, inner in body.items() if isinstance(body, dict) else enumerate(body):
            yield (*path, str(key))
            yield from _all(inner, (*path, str(key)))


def _leaves(body: Any, path: json_pointers.Tokens = ()) -> Iterator[json_pointers.Tokens]:  # noqa: ANN401
    if isinstance(body, dict | list) and body:
        items = body.items() if isinstance(body, dict) else enumerate(body)
        for key, inner in items:
            yield from _leaves(inner, (*path, str(key)))
    else:
        yield path


def _told(asked: _Asked, pointer: json_pointers.Tokens, cause: field_causes.Cause) -> dict[str, Any]:
    value = field_causes.field_of(asked.document.body, pointer)
    is_secret = asked.document.key.kind == "Secret" and pointer[:1] in {(part,) for part in _DATA}
    shown = schemas.HIDDEN if is_secret else asked.request.redact(str(value))[:_SHOWN]
    line = _line(_lines(asked), pointer, cause)
    if not cause.values and line is not None:
        # What was tried may only have made no difference, such as both sides of a limit, or have failed.
        is_constant = cause.is_constant and _VALUES not in line.text
        cause = structs.replace(cause, is_constant=is_constant or line.is_literal)
    return {
        "path": json_pointers.render(pointer),
        "value": shown,
        "cause": _in_words(cause),
        "values": [_value(asked, path) for path in cause.values],
        "line": None if line is None else line.number,
        "renders": cause.renders,
    }


def _in_words(cause: field_causes.Cause) -> str:
    if cause.values:
        return "worked out from" if cause.is_derived else "made of"
    return "written in the chart" if cause.is_constant else "unknown"


def _value(asked: _Asked, path: json_pointers.Path) -> dict[str, str]:
    """Return the key of a value, as people write it, and its origin."""
    module, values = asked.module, asked.values
    if chart_values.has_section(module):
        owner = None if path[0] == names.GLOBAL_KEY else module.name
        below = path[1:]
    else:
        owner, below = (None, path[1:]) if path[0] == names.GLOBAL_KEY else (module.name, path)
    if not _is_in(asked.request.values, path):
        default = value_origins.default_in_file(module.chart_directory / module_files.VALUES_FILE, path)
        return {"key": json_pointers.format_path((module.key, *path)), "origin": default}
    found: json_types.JsonValue = asked.request.values
    for key in path:
        found = found[key]  # type: ignore[index]  # a path of this document
    key = names.GLOBAL_KEY if owner is None else module.key
    return {
        "key": json_pointers.format_path((key, *below)),
        "origin": value_origins.ValueOrigins(values, owner).of(below, found),
    }


def _is_in(values: json_types.JsonValue, path: json_pointers.Path) -> bool:
    for key in path:
        if not isinstance(values, dict) or key not in values:
            return False
        values = values[str(key)]
    return True


class _Line(msgspec.Struct, frozen=True):
    """A line of a template."""

    number: int
    text: str
    is_literal: bool
    """Whether it stands for itself, whatever the values are."""


def _lines(asked: _Asked) -> list[_Line]:
    """Return the lines of the object's template; none if it cannot be read."""
    file = pathlib.Path(_file(asked.module, asked.document))
    try:
        texts = plain_files.read_text(file, _MAX_TEMPLATE, errors="replace").splitlines()
    except OSError:
        return []
    lines, depth = [], 0
    for number, text in enumerate(texts, 1):
        lines.append(_Line(number, text, depth == 0 and _ACTION not in text))
        depth += sum(-1 if word == "end" else 1 for word in _BLOCKS.findall(text))
    return lines


def _line(lines: Sequence[_Line], pointer: json_pointers.Tokens, cause: field_causes.Cause) -> _Line | None:
    """Return the line of the template that seems to make the field; ``None`` if there is not just one."""
    key = next((token for token in reversed(pointer) if not token.isdecimal()), "")
    named = [f".{path[-1]}" for path in cause.values if isinstance(path[-1], str)]
    found = [
        line
        for line in lines
        if f"{key}:" in line.text and (not cause.values or any(name in line.text for name in named))
    ]
    return found[0] if len(found) == 1 else None
