"""Takes away, after a revision, what objects still have of manifests that the release no longer has.

Manifests are compared first: only objects whose manifest lost something are read.
"""

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from addon_operator.documents import json_documents, json_pointers
from addon_operator.helm import places, remembered
from addon_operator.helm.releases import left_objects, live_objects
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.discovery import discovery
from addon_operator.modules import keeping, manifests
from addon_operator.modules.drift import corrections, field_drift, left_fields

APPLIES_SINCE: Final = 4
"""Major version of Helm from which on it leaves what is to be merged to the API server."""
_AT_ONCE: Final = 8
_MERGED: Final = frozenset({"v1", "apps/v1", "batch/v1"})
"""API versions with lists that Helm 3 merges by one key."""


class _Losing(msgspec.Struct, frozen=True):
    """An object that lost something from one of the manifests before to the next one."""

    resource: manifests.ManifestResource
    before: Sequence[manifests.Object]
    after: manifests.Object
    tried: Sequence[manifests.Object] = ()
    """What it had in tries that failed."""


async def clear(
    live: live_objects.LiveObjects,
    module: names.ModuleName,
    place: places.ReleaseLocation,
    before: str,
    tried: Sequence[str],
    after: str,
) -> tuple[remembered.LeftField, ...]:
    """Bring the objects of a release to what its manifest says; gives what the API server does not let go.

    ``before``: the manifest that was deployed; ``tried``: those of tries that failed since. Raises what the
    client raises when there is no answer.
    """
    losing = await asyncio.to_thread(_losing, [before], tried, after, place.namespace)
    turns = asyncio.Semaphore(_AT_ONCE)

    async def of_object(each: _Losing) -> Sequence[remembered.LeftField]:
        async with turns:
            return await _of_object(live, module, place, each)

    return tuple(itertools.chain(*await asyncio.gather(*map(of_object, losing))))


async def still(
    live: live_objects.LiveObjects,
    module: names.ModuleName,
    place: places.ReleaseLocation,
    known: Sequence[remembered.LeftField],
    after: str,
) -> list[remembered.LeftField]:
    """Return what was left over by earlier revisions, is there still, and not in the manifest again.

    Raises what the client raises when there is no answer.
    """
    wanted = {left_objects.resource_of(each).identity(place.namespace) for each in known}
    found = manifests.find_objects(after, lambda each: each.identity(place.namespace) in wanted)
    bodies = {each.identity(place.namespace): body for each, body in await asyncio.to_thread(list, found)}
    left: list[remembered.LeftField] = []
    for resource, fields in itertools.groupby(known, left_objects.resource_of):
        try:
            there, _ = await live.get(module, resource)
        except (api_errors.NotFound, api_errors.Forbidden, discovery.NoSuchKind):
            continue
        body = bodies.get(resource.identity(place.namespace), {})
        body = {**body, **field_drift.prepared(body)}
        left += [
            each
            for each in fields
            if each.uid == there["metadata"]["uid"]
            and json_pointers.find(there, each.path) is not None
            and json_pointers.find(body, each.path) is None
        ]
    return left


async def _of_object(
    live: live_objects.LiveObjects, module: names.ModuleName, place: places.ReleaseLocation, losing: _Losing
) -> Sequence[remembered.LeftField]:
    resource = losing.resource
    try:
        there, namespace = await live.get(module, resource)
    except (api_errors.NotFound, api_errors.Forbidden, discovery.NoSuchKind):
        return ()
    if not keeping.is_own(there, place.name, place.namespace):
        return ()
    found = await asyncio.to_thread(_differences, losing, there)
    if not found or await _refusal(live, module, resource, there, found) is None:
        return ()
    return [
        remembered.LeftField(
            api_version=resource.api_version,
            kind=resource.kind,
            name=resource.name,
            namespace=namespace,
            uid=str(there["metadata"]["uid"]),
            path=each.live_path,
        )
        for each in found
        if await _refusal(live, module, resource, there, [each]) and each.expected is None
    ]


async def _refusal(
    live: live_objects.LiveObjects,
    module: names.ModuleName,
    resource: manifests.ManifestResource,
    there: manifests.Object,
    found: Sequence[field_drift.Difference],
) -> api_errors.ApiError | None:
    """Change an object; gives why the API server refuses that."""
    try:
        await live.change(module, resource, corrections.json_patch(there, found))
    except (api_errors.NotFound, api_errors.Conflict):
        return None
    except (api_errors.Invalid, api_errors.Forbidden) as error:
        return error
    return None


def _losing(before: Sequence[str], tried: Sequence[str], after: str, namespace: str) -> list[_Losing]:
    """Return the objects that lost something, or are otherwise than in a try, with what they had and have."""
    texts = [set(manifests.documents(each)) for each in (*before, *tried) if each]
    there = manifests.documents(after)
    had, had_in_tries = (_otherwise(each, there, namespace) for each in (before, tried))
    both = had.keys() | had_in_tries.keys()
    now = [each for each in there if not all(each in one for one in texts)] if both else ()
    found = []
    for text in now:
        for resource, body in manifests.find_objects(text, lambda each: each.identity(namespace) in both):
            key = resource.identity(namespace)
            in_tries = [each for each in had_in_tries.get(key, ()) if each != body]
            more = [each for each in had.get(key, ()) if left_fields.loses(each, body)]
            if more or in_tries:
                found.append(_Losing(resource, [*more, *in_tries], body, in_tries))
    return found


def _otherwise(
    before: Sequence[str], there: Sequence[str], namespace: str
) -> dict[manifests.Identity, list[manifests.Object]]:
    """Return the objects of manifests that are not in these documents just so."""
    had: dict[manifests.Identity, list[manifests.Object]] = {}
    for text in set[str]().union(*map(manifests.documents, before)).difference(there):
        for resource, body in manifests.find_objects(text, lambda _: True):
            had.setdefault(resource.identity(namespace), []).append(body)
    return had


def without_twins(before: str, after: str, namespace: str) -> str:
    """Return the manifest before without what Helm 3 would take away too much of; see :mod:`.left_fields`."""
    losing = {each.resource: each.after for each in _losing([before], (), after, namespace)}
    texts, is_changed = manifests.documents(before), False
    for number, text in enumerate(texts):
        if losing.keys().isdisjoint(manifests.resources(text)):
            continue
        objects = list(manifests.find_objects(text, lambda _: True))
        kept = [
            left_fields.without_twins(body, losing.get(each)) if each.api_version in _MERGED else body
            for each, body in objects
        ]
        if kept != [body for _, body in objects]:
            is_changed = True
            texts[number] = "\n---\n".join(json_documents.encode(body).decode() for body in kept)
    return "\n---\n".join(texts) if is_changed else before


def _differences(losing: _Losing, live: manifests.Object) -> list[field_drift.Difference]:
    found: dict[field_drift.Path, field_drift.Difference] = {}
    for before in losing.before:
        found |= {each.live_path: each for each in left_fields.left(before, losing.after, live)}
    gone = list(_outermost(found))
    back = [each for before in losing.before for each in left_fields.lost(before, losing.after, live)]
    back += [each for tried in losing.tried for each in left_fields.stale(tried, losing.after, live)]
    return [*gone, *{each.path: each for each in back}.values()]


def _outermost(found: dict[field_drift.Path, field_drift.Difference]) -> Iterable[field_drift.Difference]:
    """Yield them without those that go with another one."""
    for path, each in found.items():
        if not any(path[:end] in found for end in range(1, len(path))):
            yield each
