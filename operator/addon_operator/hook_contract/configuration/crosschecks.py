"""Rules of a hook configuration that no single place can break.

They run beside the check of the shape, so that all mistakes are reported at once: whatever does not have
the expected shape is ignored here.
"""

import collections
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from addon_operator.documents import json_pointers
from addon_operator.hook_contract import crontab, violations
from addon_operator.hook_contract.configuration import (
    bindings,
    conversion_bindings,
    webhook_bindings,
    webhook_schemas,
)
from addon_operator.kernel.json_types import JsonObject, JsonValue

MAX_BINDINGS: Final = 500
"""Of each kind. All may be of one group: then each of them has the snapshots of all of them."""
MAX_CONVERSIONS: Final = 500
"""Of all conversion bindings of a hook together."""
_ANY: Final = "*"
_ALL: Final = "*/*"
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_Item: TypeAlias = tuple[str, JsonObject]


def too_many(document: JsonObject) -> Iterator[str]:
    """Yield which kinds of bindings are too many to look at each of them."""
    for key in ("schedule", "kubernetes", "onKubernetesEvent", *webhook_schemas.BY_KEY):
        listed = document.get(key)
        if isinstance(listed, list) and len(listed) > MAX_BINDINGS:
            yield f"{key}: it has {len(listed)} bindings, and may have {MAX_BINDINGS}; use several hooks"
    key = conversion_bindings.KEY
    rules = sum(len(_list_in(item, "conversions")) for _, item in _items(document, key))
    if rules > MAX_CONVERSIONS:
        yield f"{key}: it has {rules} conversions, and may have {MAX_CONVERSIONS}; use several hooks"


def violations_of(document: JsonObject) -> Iterator[str]:
    """Yield each violation as ``place: mistake; remedy``."""
    items = [*_items(document, "schedule"), *_items(document, "kubernetes")]
    names = collections.Counter(_name(item) for _, item in _items(document, "kubernetes"))
    for where, item in items:
        yield from _unknown_snapshots(where, item, names)
        yield from _two_names(where, item)
        yield from _two_timezones(where, item)
    for where, item in _items(document, "kubernetes"):
        yield from _no_old_object(where, item)
    for key in webhook_schemas.BY_KEY:
        webhooks = list(_items(document, key))
        for where, item in webhooks:
            yield from _unknown_snapshots(where, item, names)
            yield from _conditions(where, item)
            yield from _rules(where, item)
            yield from _versions_of_other_groups(where, item)
        if key in webhook_schemas.ADMISSION:
            yield from _same_names(webhooks)
    yield from _conversions(document)
    yield from _two_intervals(document)
    if not document.keys() - {"configVersion"}:
        yield "it binds the hook to nothing; add a binding such as 'onStartup: 10'"


def warnings_of(document: JsonObject) -> Iterator[str]:
    """Yield what is allowed and yet hardly meant."""
    if not document.keys() - {"configVersion", "settings"}:
        yield "there is no binding, so the hook never runs"
    names = collections.Counter(_name(item) for _, item in _items(document, "kubernetes"))
    for name, count in names.items():
        if count > 1:
            yield (
                f"kubernetes: {count} bindings share the name {name!r} and one snapshot; "
                "give them different names"
            )
    yield from _of_webhooks(document)
    for where, item in _items(document, "schedule"):
        yield from (f"{where}.crontab: {told}" for told in crontab.not_portable(str(item["crontab"])))
    for where, item in _items(document, "kubernetes"):
        if item.get("keepOldObject") is True and item.get("group"):
            yield f"{where}: keepOldObject has no effect in a group, whose contexts show snapshots only"
        if "watchEvent" in item:
            yield f"{where}: watchEvent is deprecated; write executeHookOnEvent"


def _of_webhooks(document: JsonObject) -> Iterator[str]:
    found = (item.get("group") for _, item in _items(document, "kubernetes"))
    groups = {group for group in found if isinstance(group, str) and group}
    for key in webhook_schemas.BY_KEY:
        for where, item in _items(document, key):
            group = item.get("group")
            if isinstance(group, str) and group and group not in groups:
                hint = violations.nearest(group, groups) if groups else "none of them is of any"
                brings = "so that it brings no snapshots"
                yield f"{where}.group: no kubernetes binding is of the group {group!r}, {brings}; {hint}"
            for index, rule in enumerate(_list_in(item, "rules")):
                for number, name in enumerate(_list_in(rule, "resources")):
                    if isinstance(name, str) and name != name.lower():
                        spot = f"{where}.rules[{index}].resources[{number}]"
                        remedy = "so that no request matches; write its lower-case plural"
                        yield f"{spot}: {name!r} is a kind, {remedy}"
            yield from _blocking(where, item)


def _items(document: JsonObject, key: str) -> Iterator[_Item]:
    listed = document.get(key)
    for index, item in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(item, dict):
            yield json_pointers.format_path((key, index)), item


def _name(item: JsonObject) -> str:
    name = item.get("name")
    return name if isinstance(name, str) and name else bindings.KUBERNETES_NAME


def _unknown_snapshots(where: str, item: JsonObject, names: Mapping[str, int]) -> Iterator[str]:
    listed = item.get("includeSnapshotsFrom")
    for index, name in enumerate(listed if isinstance(listed, list) else ()):
        spot = f"{where}.includeSnapshotsFrom[{index}]"
        if isinstance(name, str) and names.get(name, 0) > 1:
            yield (
                f"{spot}: {names[name]} kubernetes bindings have the name {name!r}; give them different names"
            )
        elif isinstance(name, str) and name and name not in names:
            hint = violations.nearest(name, names) if names else "the hook has none"
            yield f"{spot}: no kubernetes binding has the name {name!r}; {hint}"


def _conditions(where: str, item: JsonObject) -> Iterator[str]:
    listed, most = _list_in(item, "matchConditions"), webhook_schemas.MOST_CONDITIONS
    if len(listed) > most:
        yield f"{where}.matchConditions: it has {len(listed)} items, and the API server takes {most}"
    named = ((f"{where}.matchConditions[{at}]", each) for at, each in enumerate(listed))
    yield from _same_names((place, each) for place, each in named if isinstance(each, dict))


def _rules(where: str, item: JsonObject) -> Iterator[str]:
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
            resource, _, part = name.partition("/")
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


def _blocking(where: str, item: JsonObject) -> Iterator[str]:
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


def _versions_of_other_groups(where: str, item: JsonObject) -> Iterator[str]:
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


def _same_names(items: Iterable[_Item]) -> Iterator[str]:
    """Yield which items have the name of an earlier one, by which the API server knows them."""
    first: dict[str, str] = {}
    for where, item in items:
        name = item.get("name")
        if isinstance(name, str) and first.setdefault(name, where) != where:
            yield f"{where}.name: {first[name]} has the name {name!r}, too; give them different names"


def _two_names(where: str, item: JsonObject) -> Iterator[str]:
    named = _list_in(item.get("nameSelector"), "matchNames")
    fields = _list_in(item.get("fieldSelector"), "matchExpressions")
    by_field = [raw for raw in fields if isinstance(raw, dict) and raw.get("field") == "metadata.name"]
    if named and by_field:
        yield f"{where}: nameSelector and a fieldSelector on metadata.name exclude each other; remove one"


def _no_old_object(where: str, item: JsonObject) -> Iterator[str]:
    is_kept = item.get("keepFullObjectsInMemory", True) is not False or bool(item.get("jqFilter"))
    if item.get("keepOldObject") is True and not is_kept:
        yield (
            f"{where}: keepOldObject has nothing to show, as nothing is kept of objects; "
            "remove keepFullObjectsInMemory, or add a jqFilter"
        )


def _two_timezones(where: str, item: JsonObject) -> Iterator[str]:
    text, timezone = item.get("crontab"), item.get("timezone")
    zone = crontab.zone_in(text) if isinstance(text, str) else ""
    if zone and timezone and zone != timezone:
        yield f"{where}: the crontab names the time zone {zone!r} and timezone another one; remove one"


def _two_intervals(document: JsonObject) -> Iterator[str]:
    settings = document.get("settings")
    if isinstance(settings, dict) and {"executionMinInterval", "executionMinPeriod"} <= settings.keys():
        yield "settings: executionMinInterval and executionMinPeriod are two names of one thing; remove one"


def _conversions(document: JsonObject) -> Iterator[str]:
    """Yield which conversions lead nowhere, or are declared twice."""
    seen: dict[tuple[str, str, str], str] = {}
    for where, item in _items(document, conversion_bindings.KEY):
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
