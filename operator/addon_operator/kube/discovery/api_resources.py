"""Kinds of the API as discovery documents list them; no requests."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from addon_operator.kernel import names
from addon_operator.kube import paths


class Resource(msgspec.Struct, frozen=True):
    """A kind that objects can have."""

    api_version: str
    """``v1`` or ``group/version``."""
    kind: str
    plural: str
    """Name in paths and in RBAC."""
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    singular: str = ""
    short_names: tuple[str, ...] = ()
    has_status: bool = False
    """Whether it has a status subresource."""

    def path(self, *, namespace: str | None = None, name: str | None = None) -> str:
        """Return the path of all its objects, of those in a namespace, or of one."""
        return paths.of(self.api_version, self.plural, namespace=namespace, name=name)

    def is_called(self, name: str) -> bool:
        """Say whether ``name`` means this kind: as kind, plural, singular or short name, in any case."""
        return name.lower() in {self.kind.lower(), self.plural, self.singular, *self.short_names}


class GroupVersion(msgspec.Struct, frozen=True):
    """One version of an API group."""

    name: str
    """``v1`` or ``group/version``."""
    resources: tuple[Resource, ...] = ()
    subresource_kinds: frozenset[str] = frozenset()
    """Kinds that only subresources have, such as ``Scale``; Helm counts them."""

    @property
    def capabilities(self) -> Iterator[str]:
        """Names in Helm's ``.Capabilities.APIVersions``."""
        yield self.name
        for kind in {resource.kind for resource in self.resources} | self.subresource_kinds:
            yield f"{self.name}/{kind}"


def from_aggregated(document: Mapping[str, Any]) -> tuple[list[GroupVersion], list[str]]:
    """Return all versions in an ``APIGroupDiscoveryList``, and the names of those that are stale."""
    groups: list[GroupVersion] = []
    stale: list[str] = []
    for item in document.get("items") or []:
        group = (item.get("metadata") or {}).get("name") or ""
        for version in item.get("versions") or []:
            name = f"{group}/{version['version']}" if group else version["version"]
            if version.get("freshness") == "Stale":
                stale.append(name)
                # The group is still there for Helm, only its kinds are not known.
                groups.append(GroupVersion(name))
            else:
                groups.append(_from_version(name, version.get("resources") or []))
    return groups, stale


def _from_version(name: str, entries: Iterable[Mapping[str, Any]]) -> GroupVersion:
    resources, kinds = [], set()
    for entry in entries:
        if kind := _response_kind(entry):
            resources.append(
                Resource(
                    api_version=name,
                    kind=kind,
                    plural=entry["resource"],
                    namespaced=entry.get("scope") == "Namespaced",
                    verbs=frozenset(entry.get("verbs") or ()),
                    singular=entry.get("singularResource") or "",
                    short_names=tuple(entry.get("shortNames") or ()),
                    has_status=any(
                        sub.get("subresource") == "status" for sub in entry.get("subresources") or ()
                    ),
                )
            )
        kinds |= {_response_kind(sub) for sub in entry.get("subresources") or []}
    return GroupVersion(name, tuple(resources), frozenset(kinds - {""}))


def _response_kind(entry: Mapping[str, Any]) -> str:
    return (entry.get("responseKind") or {}).get("kind") or ""


def find(groups: Iterable[GroupVersion], kind: str, api_version: str | None = None) -> Resource | None:
    """Return the resource of that kind: exactly so in ``api_version``, else by any of its names.

    Without ``api_version`` the first group that has it counts, in the server's order: core first.
    """
    offered = [group for group in groups if api_version in (None, group.name)]
    resources = [resource for group in offered for resource in group.resources]
    exact = (resource for resource in resources if resource.kind == kind)
    return next(exact, None) or next((resource for resource in resources if resource.is_called(kind)), None)


def with_kept(
    now: Sequence[GroupVersion], before: Sequence[GroupVersion], is_kept: Callable[[str, str], bool]
) -> tuple[GroupVersion, ...]:
    """Return the versions of ``now`` with those kinds of ``before`` that are kept, by version and kind.

    A version that is not in ``now`` comes behind the others of its group: they are what a kind without a
    version means.
    """
    merged = list(now)
    place = 0
    for old in before:
        at = next((index for index, each in enumerate(merged) if each.name == old.name), None)
        kept = tuple(each for each in old.resources if is_kept(old.name, each.kind))
        if at is not None:
            fresh = merged[at]
            place = at + 1
            if kept:
                merged[at] = GroupVersion(
                    fresh.name, fresh.resources + kept, fresh.subresource_kinds | old.subresource_kinds
                )
        elif kept:
            while place < len(merged) and _group_of(merged[place].name) == _group_of(old.name):
                place += 1
            merged.insert(place, GroupVersion(old.name, kept, old.subresource_kinds))
            place += 1
    return tuple(merged)


_ALIKE: Final = 0.8
"""A kind that is less like the wanted one is most likely not meant: its definition is missing."""
_MOST_COMPARED: Final = 2000


def nearest(groups: Sequence[GroupVersion], kind: str, api_version: str | None = None) -> Resource | None:
    """Return the resource whose kind looks most like ``kind``, in ``api_version`` before all others.

    For a group that the server does not have, that is nobody: no kind of another one is meant.
    """
    if api_version is not None and _group_of(api_version) not in {_group_of(each.name) for each in groups}:
        return None
    for offered in ([each for each in groups if each.name == api_version], groups):
        found = itertools.chain.from_iterable(each.resources for each in offered)
        by_kind: dict[str, Resource] = {}
        for resource in itertools.islice(found, _MOST_COMPARED):
            by_kind.setdefault(resource.kind, resource)
        if near := names.nearest(kind, by_kind, _ALIKE):
            return by_kind[near]
    return None


def _group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def versions_of(groups: Iterable[GroupVersion], kind: str) -> tuple[str, ...]:
    """Return ``group/version`` of all that serve the kind, under exactly this name, in the server's order."""
    return tuple(group.name for group in groups if any(resource.kind == kind for resource in group.resources))
