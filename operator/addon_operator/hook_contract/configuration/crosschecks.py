"""Rules of bindings that no single place can break; :mod:`.binding_types` says which are for which type.

They run beside the check of the shape, so that all mistakes are reported at once: whatever does not have
the expected shape is ignored here.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self, TypeAlias

import msgspec

from addon_operator.documents import json_pointers
from addon_operator.hook_contract import crontab, violations
from addon_operator.hook_contract.configuration import (
    bindings,
    config_schemas,
    conversion_bindings,
    webhook_bindings,
)
from addon_operator.kernel.json_types import JsonObject, JsonValue

_ANY: Final = "*"
_ALL: Final = "*/*"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"


Item: TypeAlias = tuple[str, JsonObject]
"""A place, and the mapping that stands there."""


class Around(msgspec.Struct, frozen=True):
    """What the other bindings of the hook are called."""

    names: Mapping[str, int]
    """Names of kubernetes bindings, and how many have each."""
    groups: frozenset[str]
    """Groups of kubernetes bindings."""

    @classmethod
    def of(cls, document: JsonObject) -> Self:
        """Look through the kubernetes bindings of a configuration."""
        watched = [item for _, item in items(document, "kubernetes")]
        names = (item.get("name") for item in watched)
        groups = (item.get("group") for item in watched)
        return cls(
            collections.Counter(
                name if isinstance(name, str) and name else bindings.KUBERNETES_NAME for name in names
            ),
            frozenset(group for group in groups if isinstance(group, str) and group),
        )


Check: TypeAlias = Callable[[Sequence[Item], Around], Iterator[str]]
"""Yields what is wrong with the bindings of one type, each as ``place: mistake; remedy``."""


def items(document: JsonObject, key: str) -> Iterator[Item]:
    """Yield the mappings of a list, with their places."""
    for index, item in enumerate(_list_in(document, key)):
        if isinstance(item, dict):
            yield json_pointers.format_path((key, index)), item


def of_each(rule: Callable[[str, JsonObject, Around], Iterator[str]]) -> Check:
    """Return the check of a rule that each binding has to keep by itself."""

    def check(listed: Sequence[Item], around: Around) -> Iterator[str]:
        for where, item in listed:
            yield from rule(where, item, around)

    return check


@of_each
def unknown_snapshots(where: str, item: JsonObject, around: Around) -> Iterator[str]:
    """Yield which snapshots a binding includes that no other one keeps."""
    names = around.names
    for index, name in enumerate(_list_in(item, "includeSnapshotsFrom")):
        spot = f"{where}.includeSnapshotsFrom[{index}]"
        if isinstance(name, str) and names.get(name, 0) > 1:
            yield (
                f"{spot}: {names[name]} kubernetes bindings have the name {name!r}; give them different names"
            )
        elif isinstance(name, str) and name and name not in names:
            hint = violations.nearest(name, names) if names else "the hook has none"
            yield f"{spot}: no kubernetes binding has the name {name!r}; {hint}"


@of_each
def two_timezones(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield that a schedule names two time zones."""
    text, timezone = item.get("crontab"), item.get("timezone")
    zone = crontab.zone_in(text) if isinstance(text, str) else ""
    if zone and timezone and zone != timezone:
        yield f"{where}: the crontab names the time zone {zone!r} and timezone another one; remove one"


@of_each
def not_portable(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield what the Go operator refuses in a crontab."""
    yield from (f"{where}.crontab: {text}" for text in crontab.not_portable(str(item["crontab"])))


@of_each
def contradictions(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield what in a kubernetes binding excludes something else."""
    named = _list_in(item.get("nameSelector"), "matchNames")
    fields = _list_in(item.get("fieldSelector"), "matchExpressions")
    if named and any(isinstance(raw, dict) and raw.get("field") == "metadata.name" for raw in fields):
        yield f"{where}: nameSelector and a fieldSelector on metadata.name exclude each other; remove one"
    is_kept = item.get("keepFullObjectsInMemory", True) is not False or bool(item.get("jqFilter"))
    if item.get("keepOldObject") is True and not is_kept:
        yield (
            f"{where}: keepOldObject has nothing to show, as nothing is kept of objects; "
            "remove keepFullObjectsInMemory, or add a jqFilter"
        )


@of_each
def hardly_meant(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield what in a kubernetes binding is deprecated, or has no effect."""
    if item.get("keepOldObject") is True and item.get("group"):
        yield f"{where}: keepOldObject has no effect in a group, whose contexts show snapshots only"
    if "watchEvent" in item:
        yield f"{where}: watchEvent is deprecated; write executeHookOnEvent"


def shared_names(_: Sequence[Item], around: Around) -> Iterator[str]:
    """Yield which kubernetes bindings have one name."""
    for name, count in around.names.items():
        if count > 1:
            yield (
                f"kubernetes: {count} bindings share the name {name!r} and one snapshot; "
                "give them different names"
            )


@of_each
def without_group(where: str, item: JsonObject, around: Around) -> Iterator[str]:
    """Yield that a binding is of a group whose snapshots nobody keeps."""
    group = item.get("group")
    if isinstance(group, str) and group and group not in around.groups:
        hint = violations.nearest(group, around.groups) if around.groups else "none of them is of any"
        brings = "so that it brings no snapshots"
        yield f"{where}.group: no kubernetes binding is of the group {group!r}, {brings}; {hint}"


@of_each
def kinds_as_resources(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield which resources of a webhook are kinds; the API server takes them, too."""
    for index, rule in enumerate(_list_in(item, "rules")):
        for number, name in enumerate(_list_in(rule, "resources")):
            if isinstance(name, str) and name != name.lower():
                spot = f"{where}.rules[{index}].resources[{number}]"
                yield f"{spot}: {name!r} is a kind, so that no request matches; write its lower-case plural"


@of_each
def conditions(where: str, item: JsonObject, around: Around) -> Iterator[str]:
    """Yield what the API server refuses in the match conditions of a webhook."""
    listed, most = _list_in(item, "matchConditions"), config_schemas.MOST_CONDITIONS
    if len(listed) > most:
        yield f"{where}.matchConditions: it has {len(listed)} items, and the API server takes {most}"
    named = ((f"{where}.matchConditions[{at}]", each) for at, each in enumerate(listed))
    yield from same_names([(place, each) for place, each in named if isinstance(each, dict)], around)


@of_each
def rules(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield what the API server refuses in rules, which would keep other hooks from being registered.

    Source: the validation of ``admissionregistration.k8s.io/v1`` in the Kubernetes API.
    """
    locks = item.get("failurePolicy", "Fail") == "Fail" and item.get("locks") != "cluster"
    for index, rule in enumerate(_list_in(item, "rules")):
        spot = f"{where}.rules[{index}]"
        for key in ("apiGroups", "apiVersions", "operations"):
            listed = _list_in(rule, key)
            if _ANY in listed and len(listed) > 1:
                yield f"{spot}.{key}: {_ANY!r} stands for all of them; remove the others"
        resources = _list_in(rule, "resources")
        names = dict.fromkeys(name for name in resources if isinstance(name, str))
        for name in names:
            resource, _slash, part = name.partition("/")
            covering = [_ALL, *([f"{resource}/*", f"*/{part}"] if part else [_ANY])]
            found = next((wide for wide in covering if wide in names and wide != name), None)
            if found is not None:
                yield f"{spot}.resources: {found!r} stands for {name!r}, too; remove one of the two"
        if locks and webhook_bindings.is_wide(_list_in(rule, "apiGroups"), resources):
            locks = False
            yield (
                f"{spot}: with '*' in apiGroups or resources and failurePolicy Fail, nobody "
                "can change anything in the cluster while no operator answers; name groups and resources, or "
                "write 'failurePolicy: Ignore', or 'locks: cluster' if that is meant"
            )


@of_each
def blocking(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield that a webhook about pods of namespaces that it names keeps an operator there from starting."""
    namespace = item.get("namespace")
    selector = namespace.get("labelSelector") if isinstance(namespace, dict) else None
    labels = selector.get("matchLabels") if isinstance(selector, dict) else None
    names = [name] if isinstance(labels, dict) and isinstance(name := labels.get(_NAME_LABEL), str) else []
    for each in _list_in(selector, "matchExpressions"):
        if isinstance(each, dict) and (each.get("key"), each.get("operator")) == (_NAME_LABEL, "In"):
            names += map(str, _list_in(each, "values"))
    if item.get("failurePolicy", "Fail") == "Fail" and names:
        for rule in _list_in(item, "rules"):
            groups, resources = _list_in(rule, "apiGroups"), _list_in(rule, "resources")
            if ("" in groups or _ANY in groups) and not {"pods", _ANY, _ALL}.isdisjoint(map(str, resources)):
                yield (
                    f"{where}: with failurePolicy Fail, no pod starts in {', '.join(names)} while no "
                    "operator answers; if one of these is the operator's own namespace, it blocks its "
                    "own pods"
                )
                return


@of_each
def versions_of_other_groups(where: str, item: JsonObject, _: Around) -> Iterator[str]:
    """Yield which versions of a conversion are of another group than the definition's."""
    crd = item.get("crdName")
    group = crd.partition(".")[2] if isinstance(crd, str) else ""
    for index, rule in enumerate(_list_in(item, "conversions")):
        for key in ("fromVersion", "toVersion"):
            version = rule.get(key) if isinstance(rule, dict) else None
            if isinstance(version, str) and group:
                other = conversion_bindings.full_version(version, f"x.{group}").partition("/")[0]
                if other != group:
                    spot = f"{where}.conversions[{index}].{key}"
                    yield f"{spot}: {version!r} is of group {other!r}, and {crd} of {group!r}; correct one"


def same_names(listed: Sequence[Item], _: Around) -> Iterator[str]:
    """Yield which items have the name of an earlier one, by which the API server knows them."""
    first: dict[str, str] = {}
    for where, item in listed:
        name = item.get("name")
        if isinstance(name, str) and first.setdefault(name, where) != where:
            yield f"{where}.name: {first[name]} has the name {name!r}, too; give them different names"


def conversions(listed: Sequence[Item], _: Around) -> Iterator[str]:
    """Yield which conversions lead nowhere, or are declared twice."""
    seen: dict[tuple[str, str, str], str] = {}
    for where, item in listed:
        crd = item.get("crdName")
        for index, raw in enumerate(_list_in(item, "conversions")):
            versions = _versions(raw, crd)
            if versions is None:
                continue
            spot = f"{where}.conversions[{index}]"
            if versions[1] == versions[2]:
                yield f"{spot}: it converts {versions[1]} to itself; write two versions"
            elif (first := seen.setdefault(versions, spot)) != spot:
                yield f"{spot}: {first} converts {versions[1]} to {versions[2]}, too; remove one"


def _versions(raw: JsonValue, crd: JsonValue) -> tuple[str, str, str] | None:
    before, after = (raw.get("fromVersion"), raw.get("toVersion")) if isinstance(raw, dict) else (None, None)
    if not (isinstance(crd, str) and isinstance(before, str) and isinstance(after, str)):
        return None
    return (crd, *conversion_bindings.ConversionRule(before, after).full(crd))


def _list_in(value: JsonValue, key: str) -> list[JsonValue]:
    items = value.get(key) if isinstance(value, dict) else None
    return items if isinstance(items, list) else []
