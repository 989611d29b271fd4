"""What objects of a release keep when its next manifest is written: what others rightly made of them.

It is put into what is handed to Helm, since a field that is left out would get its default. So the record
holds it; checksums are of what the chart renders to. Only objects are read that a row of :mod:`.not_ours` may
concern.
"""

import asyncio
import copy
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.documents import json_documents, json_pointers
from addon_operator.helm import remembered
from addon_operator.helm.releases import left_objects, live_objects, release_records
from addon_operator.kernel import names
from addon_operator.kube import api_errors
from addon_operator.kube.discovery import discovery
from addon_operator.modules import manifests
from addon_operator.modules.drift import corrections, field_drift, not_ours

_AT_ONCE: Final = 8
_MOST: Final = 200
"""Fields of a release of which is remembered what its chart says."""


class _Written(msgspec.Struct, frozen=True):
    """An object that is about to be written."""

    resource: manifests.ManifestResource
    before: manifests.Object | None
    after: manifests.Object


async def of_release(
    records: release_records.ReleaseRecords,
    live: live_objects.LiveObjects,
    module: names.ModuleName,
    before: str,
    after: str,
    written: Collection[manifests.Identity] = (),
) -> tuple[manifests.Fields, tuple[remembered.SaidField, ...], tuple[str, ...]]:
    """Return what objects keep, by what the next manifest calls them, and what that says there.

    And, for a person, what others own and the chart takes back, since it says otherwise than before.

    ``before``: the manifest of the deployed revision; ``written``: what others are known to have written.
    Raises what the client raises when there is no answer.
    """
    place = records.places.of(module)
    found = await asyncio.to_thread(_concerned, before, after, place.namespace, written)
    if not found:
        return {}, (), ()
    turns = asyncio.Semaphore(_AT_ONCE)

    async def read(each: _Written) -> manifests.Object | None:
        async with turns:
            try:
                there, _ = await live.get(module, each.resource)
            except (api_errors.NotFound, api_errors.Forbidden, discovery.NoSuchKind):
                return None
            return there

    there = await asyncio.gather(*map(read, found))
    pairs = [(each, body) for each, body in zip(found, there, strict=True) if body is not None]
    around = await asyncio.to_thread(not_ours.surroundings, after, place.namespace)
    if replicas := [each for each, body in pairs if _replicas(each.after) != _replicas(body)]:
        # An autoscaler need not be in the release.
        scaled = await live.scaled({each.resource.namespace or place.namespace for each in replicas})
        around = structs.replace(around, scaled=around.scaled | scaled)
    said, digest = records.memory.of(place).said, records.memory.digest
    return await asyncio.to_thread(_fields, pairs, around, said, digest)


def _concerned(
    before: str, after: str, namespace: str, written: Collection[manifests.Identity]
) -> Sequence[_Written]:
    had, has = (_may_keep(each, namespace) for each in (before, after))
    # An object may have lost what a row is about.
    if missing := {*had, *_of_manifest(written, namespace)} - has.keys():
        found = manifests.find_objects(after, lambda each: each.identity(namespace) in missing)
        has |= {each.identity(namespace): (each, body) for each, body in found}
    if missing := has.keys() - had.keys():
        found = manifests.find_objects(before, lambda each: each.identity(namespace) in missing)
        had |= {each.identity(namespace): (each, body) for each, body in found}
    return [_Written(each, had[key][1] if key in had else None, body) for key, (each, body) in has.items()]


def _of_manifest(written: Collection[manifests.Identity], namespace: str) -> Iterator[manifests.Identity]:
    """Yield what manifests call these objects: they may name a namespace for one of the whole cluster."""
    for group, kind, place, name in written:
        yield group, kind, place or namespace, name


def _may_keep(
    manifest: str, namespace: str
) -> dict[manifests.Identity, tuple[manifests.ManifestResource, manifests.Object]]:
    """Return the objects that a row of the list may concern; only documents that mention one are read."""
    texts = filter(not_ours.MENTION.search, manifests.documents(manifest))
    found = (each for text in texts for each in manifests.find_objects(text, lambda _: True))
    return {each.identity(namespace): (each, body) for each, body in found if not_ours.may_be_in(body)}


def _fields(
    pairs: Sequence[tuple[_Written, manifests.Object]],
    around: not_ours.Surroundings,
    said: Sequence[remembered.SaidField],
    digest: Callable[[Sequence[str]], str],
) -> tuple[manifests.Fields, tuple[remembered.SaidField, ...], tuple[str, ...]]:
    def text(kind: str, value: object) -> str:
        encoded = json_documents.encode(value).decode()
        return digest([encoded]) if kind == "Secret" else encoded

    def value_of(field: remembered.SaidField, after: manifests.Object) -> object:
        if field.kind != "Secret":
            return json.loads(field.said)
        now = json_pointers.find(field_drift.prepared(after), field.path)
        return now if text(field.kind, now) == field.said else ""

    fields, says, taken = {}, [], []
    for each, live in pairs:
        resource, was = each.resource, copy.deepcopy(each.before)
        for one in said:
            if was is not None and left_objects.resource_of(one).identity("") == resource.identity(""):
                manifests.put(was, one.path, value_of(one, each.after))
        found = list(corrections.live_values(each.before, was, each.after, live, around))
        taken += [
            f"{resource}: {one.pointer} is the chart's again, as that has changed; {one.manager} owns it, too"
            for one in found
            if one.live == one.expected
        ]
        if kept := [one for one in found if one.live != one.expected]:
            fields[resource.identity(around.namespace)] = [(one.path, one.live) for one in kept]
        says += [
            remembered.SaidField(
                api_version=resource.api_version,
                kind=resource.kind,
                name=resource.name,
                namespace=resource.namespace or "",
                path=one.path,
                said=text(resource.kind, one.expected),
            )
            for one in kept
        ]
    return fields, tuple(says[:_MOST]), tuple(taken)


def _replicas(body: manifests.Object) -> object:
    spec = body.get("spec")
    return spec.get("replicas") if isinstance(spec, dict) else None
