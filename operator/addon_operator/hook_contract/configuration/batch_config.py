"""The configuration of a program that holds many hooks, as it prints it when started with ``hook config``.

It is that of the Go SDK for modules of Deckhouse. What a nested hook is bound to is turned into a
configuration like that of any hook, and read as one.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

import msgspec

from addon_operator.documents import json_documents, json_pointers
from addon_operator.hook_contract import violations
from addon_operator.hook_contract.configuration import binding_types, config_schemas, hook_config
from addon_operator.hook_contract.configuration.bindings import WatchEvent
from addon_operator.kernel.json_types import JsonObject, JsonValue

MAX_HOOKS: Final = 500
"""How many hooks a program may hold."""
GROUP: Final = "main"
"""The group of all bindings of a nested hook: each run sees the snapshots of all of them."""
VERSION: Final = "v1"
_LISTED: Final = re.compile(r"Found [0-9]+ items:")
_NAME_CHARS: Final = 200
_WITHOUT_EFFECT: Final = "enableSchedulesOnStartup"

_BOOL: Final = {"type": "boolean"}
_TEXT: Final = {"type": "string"}
_ORDER: Final = {"type": "integer", "minimum": 0, "maximum": 2**53}
_ANY: Final[Mapping[str, Any]] = {}


_OF_OTHER_HOOKS: Final = (
    "a program cannot have it; write a hook for it that answers --config, such as a script beside the program"
)
_CALLED_OTHERWISE: Final = {
    "group": "all bindings of a program are in one group; remove it",
    "watchEvent": "write 'executeHookOnEvent', true or false",
    "executionMinPeriod": "write 'executionMinInterval', in nanoseconds",
}


def _object(
    properties: Mapping[str, Any],
    required: tuple[str, ...] = (),
    *,
    others: Mapping[str, Any] = _ANY,
) -> Mapping[str, Any]:
    """Return the schema of a mapping; ``others`` is that of the same in a hook that answers ``--config``."""
    more = (key for key in others.get("properties", ()) if key not in properties)
    elsewhere = {key: _CALLED_OTHERWISE.get(key, _OF_OTHER_HOOKS) for key in more}
    return config_schemas.mapping(properties, required, {**others.get("x-elsewhere", {}), **elsewhere})


_OTHER: Final = binding_types.CURRENT[config_schemas.HookKind.MODULE]
_SETTINGS: Final = _object(
    {
        "executionMinInterval": {"type": "integer", "minimum": 0},
        "executionBurst": {"type": "integer", "minimum": 0},
        _WITHOUT_EFFECT: _BOOL,
    },
    others=_OTHER["properties"]["settings"],
)
_SCHEDULE: Final = _object(
    {"name": _TEXT, "crontab": _TEXT, "queue": _TEXT},
    required=("crontab",),
    others=_OTHER["properties"]["schedule"]["items"],
)
_SHARED: Final = (
    "name",
    "apiVersion",
    "kind",
    "queue",
    "jqFilter",
    "allowFailure",
    "executeHookOnSynchronization",
    "waitForSynchronization",
    "resynchronizationPeriod",
    "includeSnapshotsFrom",
    "labelSelector",
    "nameSelector",
    "fieldSelector",
    "namespace",
)
"""Keys of a ``kubernetes`` binding that mean what they mean in any hook; they are checked there."""
_KUBERNETES: Final = _object(
    {
        **dict.fromkeys(_SHARED, _ANY),
        "executeHookOnEvent": _BOOL,
        "keepFullObjectsInMemory": _BOOL,
    },
    required=("kind",),
    others=_OTHER["properties"]["kubernetes"]["items"],
)
_METADATA: Final = _object({"name": {**_TEXT, "minLength": 1}, "path": _TEXT}, required=("name",))
_STEPS: Final = config_schemas.LIFECYCLE[config_schemas.HookKind.MODULE]
_HOOK: Final = _object(
    {
        "configVersion": {"const": "v1"},
        "metadata": _METADATA,
        **{step.value: _ORDER for step in _STEPS},
        "allowFailure": _BOOL,
        "logLevel": _TEXT,
        "settings": _SETTINGS,
        "schedule": config_schemas.listing(_SCHEDULE),
        "kubernetes": config_schemas.listing(_KUBERNETES),
    },
    required=("metadata",),
    others=_OTHER,
)
_PROGRAM: Final = _object(
    {
        "version": {"enum": [VERSION]},
        "hooks": config_schemas.listing(_ANY),
        "readiness": {"type": "object"},
        "has_settings_check": _BOOL,
    },
    others={
        "x-elsewhere": dict.fromkeys(_HOOK["properties"], "it belongs to a hook, in the list 'hooks'"),
    },
)
_PROGRAM_CHECKER: Final = violations.Checker(_PROGRAM)
_HOOK_CHECKER: Final = violations.Checker(_HOOK)


class NestedHook(msgspec.Struct, frozen=True):
    """One hook of a program."""

    number: int
    """By which the program is asked to run it."""
    name: str
    """As the program calls it; several may share a name."""
    config: hook_config.HookConfig
    source: str = ""
    """How messages name it."""


class BatchConfig(msgspec.Struct, frozen=True):
    """All that a program holds."""

    hooks: tuple[NestedHook, ...] = ()
    has_readiness: bool = False
    """Whether it can be asked if its module is ready."""
    has_settings_check: bool = False
    """Whether it can be asked if settings of its module are right."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and yet hardly meant, one sentence each."""
        return tuple(warning for hook in self.hooks for warning in hook.config.warnings)


def is_list(text: str) -> bool:
    """Say whether this is what such a program answers to ``hook list``."""
    return _LISTED.fullmatch(text.partition("\n")[0].rstrip("\r")) is not None


def parse(text: str, kind: hook_config.HookKind, source: str) -> BatchConfig:
    """Read a configuration; ``source`` names the program in errors and warnings.

    Raises :class:`.HookConfigError` with everything that is wrong.
    """
    document = _document(text, source)
    wrong = _PROGRAM_CHECKER.find(document)
    listed = document.get("hooks") or []
    if not wrong and isinstance(listed, list) and len(listed) > MAX_HOOKS:
        wrong = [f"hooks: it has {len(listed)} hooks, and may have {MAX_HOOKS}; use several programs"]
    if wrong:
        raise hook_config.HookConfigError(source, *wrong)
    return BatchConfig(
        _hooks(cast("list[JsonValue]", listed), kind, source),
        document.get("readiness") is not None,
        document.get("has_settings_check") is True,
    )


def has_settings_check(printed: bytes) -> bool:
    """Say whether a program checks settings, by what it prints; whatever else is wrong there."""
    try:
        document = json_documents.decode(printed)
    except ValueError:
        return False
    return isinstance(document, dict) and document.get("has_settings_check") is True


def _document(text: str, source: str) -> JsonObject:
    if not text.strip():
        raise hook_config.HookConfigError(source, "'hook config' printed nothing; print JSON")
    try:
        document = _without_nulls(json_documents.decode_unambiguous(text))
    except json_documents.AmbiguousError as error:
        raise hook_config.HookConfigError(source, f"in what 'hook config' printed, {error}") from error
    except (ValueError, RecursionError) as error:
        raise hook_config.HookConfigError(source, f"'hook config' printed no JSON: {error}") from error
    if isinstance(document, list):
        # The older form.
        return {"hooks": document}
    if not isinstance(document, dict):
        raise hook_config.HookConfigError(source, "'hook config' printed neither a mapping nor a list")
    return document


def _without_nulls(value: JsonValue) -> JsonValue:
    """Return the same without keys that Go writes for what is not set."""
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    return [_without_nulls(member) for member in value] if isinstance(value, list) else value


def _hooks(listed: list[JsonValue], kind: hook_config.HookKind, source: str) -> tuple[NestedHook, ...]:
    hooks, wrong = [], list[str]()
    for number, raw in enumerate(listed):
        name = _name(raw)
        place = json_pointers.format_path(("hooks", number)) + (f" ({name})" if name else "")
        found = _HOOK_CHECKER.find(raw)
        if found:
            wrong += (f"{place}: {text}" for text in found)
            continue
        document = cast("JsonObject", raw)
        try:
            own = f"{source}, {place}"
            read = hook_config.read(_translated(document), kind, own)
        except hook_config.HookConfigError as error:
            wrong += (f"{place}: {text}" for text in error.violations)
            continue
        odd = (f"{own}: {text}" for text in _without_effect(document))
        hooks.append(NestedHook(number, name, replace(read, warnings=(*read.warnings, *odd)), own))
    if wrong:
        raise hook_config.HookConfigError(source, *wrong)
    return tuple(hooks)


def _name(raw: JsonValue) -> str:
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return " ".join(name.split())[:_NAME_CHARS] if isinstance(name, str) else ""


def _translated(hook: JsonObject) -> JsonObject:
    """Return a nested hook's configuration as one of ``configVersion: v1``."""
    raw = cast("Mapping[str, Any]", hook)
    may_fail = raw.get("allowFailure", False)
    common = {"group": GROUP, "allowFailure": may_fail}
    document: dict[str, Any] = {
        "configVersion": hook_config.VERSION,
        "settings": _settings(raw.get("settings", {})),
        **{step.value: raw[step.value] for step in _STEPS if step.value in raw},
        "schedule": [{**common, **item} for item in raw.get("schedule", ())],
        "kubernetes": [{**common, **_kubernetes(item)} for item in raw.get("kubernetes", ())],
    }
    return {key: value for key, value in document.items() if value != []}


def _settings(raw: Mapping[str, Any]) -> dict[str, Any]:
    settings = {}
    if nanoseconds := raw.get("executionMinInterval"):
        settings["executionMinInterval"] = f"{nanoseconds}ns"
    if burst := raw.get("executionBurst"):
        settings["executionBurst"] = burst
    return settings


def _kubernetes(raw: Mapping[str, Any]) -> dict[str, Any]:
    item = {key: raw[key] for key in _SHARED if key in raw and not _is_unset(raw[key])}
    if isinstance(namespace := item.get("namespace"), dict):
        item["namespace"] = {key: part for key, part in namespace.items() if not _is_unset(part)}
        if not item["namespace"]:
            del item["namespace"]
    item["keepFullObjectsInMemory"] = raw.get("keepFullObjectsInMemory", False)
    item["executeHookOnEvent"] = list(WatchEvent) if raw.get("executeHookOnEvent", True) else []
    return item


def _is_unset(part: Any) -> bool:  # noqa: ANN401 - whatever JSON has
    """Say whether Go writes it for a selector, or a text, that says nothing."""
    if isinstance(part, dict):
        return all(map(_is_unset, part.values()))
    return part in ("", [])


def _without_effect(hook: JsonObject) -> Iterator[str]:
    settings = hook.get("settings")
    if isinstance(settings, dict) and settings.get(_WITHOUT_EFFECT) is True:
        yield f"settings.{_WITHOUT_EFFECT} has no effect: schedules begin after the first converge"
