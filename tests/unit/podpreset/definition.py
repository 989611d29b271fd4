"""The merge by its definition: every entry is compared with every other one, and every side with every other.

Slow, and short enough to be seen to be right: what the operator does has to come to the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from addon_operator.podpreset import crd, env_sources, model

Keys = Mapping[model.SourceRef, Sequence[str]]


def conflicts(pod: Mapping[str, Any], presets: Sequence[model.Preset], keys: Keys) -> dict[str, list[str]]:
    """What stands in the way of each preset that is in conflict, each sentence once, in no order."""
    ordered = sorted(presets, key=lambda preset: preset.order)
    found: dict[str, set[str]] = {preset.name: set() for preset in ordered}
    for container in env_sources.containers(pod):
        lists = {name: list(container.get(name) or ()) for name in ("env", "envFrom", "volumeMounts")}
        for preset in ordered:
            found[preset.name].update(_lists(lists, preset))
        sides = [env_sources.container_side(container), *map(env_sources.preset_side, ordered)]
        for number, preset in enumerate(ordered, start=1):
            for before in range(number):
                found[preset.name].update(_between(sides, before, number, keys))
    volumes = list(pod["spec"].get("volumes") or ())
    for preset in ordered:
        for addition in preset.volumes:
            if not _put(volumes, addition, _name, "volumes"):
                found[preset.name].add(f"Duplicate volume {addition.key}.")
    return {name: sorted(problems) for name, problems in found.items() if problems}


def _name(entry: model.Entry) -> object:
    return entry.get("name")


def _lists(lists: dict[str, list[Any]], preset: model.Preset) -> Iterator[str]:
    for addition in preset.env:
        if not _put(lists["env"], addition, _name, "env"):
            yield f"Duplicate env {addition.key}."
    for addition in preset.env_from:
        if not _put(lists["envFrom"], addition, model.env_from_key, "envFrom"):
            yield f"Duplicate envFrom {model.env_from_key(addition.entry).source}."
    for addition in preset.volume_mounts:
        yield from put_mount(lists["volumeMounts"], addition)


def _put(entries: list[Any], addition: model.Addition, key: Any, part: str) -> bool:  # noqa: ANN401 - a function
    same = [entry for entry in entries if key(entry) == addition.key]
    if same:
        return crd.canonical(part, same[-1]) == addition.canonical
    entries.append(addition.entry)
    return True


def put_mount(mounts: list[Any], addition: model.Addition) -> Iterator[str]:
    """Take a mount over unless it is there already, or tell what stands in the way."""
    path = addition.entry["mountPath"]
    here = [mount for mount in mounts if mount.get("mountPath") == path]
    if any(crd.canonical("volumeMounts", mount) == addition.canonical for mount in here):
        return
    if here:
        yield f"Duplicate mountPath {path}."
    else:
        mounts.append(addition.entry)


def _between(sides: Sequence[env_sources.Side], one: int, other: int, keys: Keys) -> Iterator[str]:
    for setter, reader in ((one, other), (other, one)):
        for name in sides[setter].names:
            for source in sides[reader].sources:
                if _defines(source, name, keys) and _is_conflict(sides, setter, reader, name, source):
                    yield f"Env {name} is also set by envFrom {source.source}."


def _defines(source: model.EnvFromKey, name: str, keys: Keys) -> bool:
    held = keys.get(source.source, ()) if source.source else ()
    return any(source.prefix + key == name for key in held)


def _is_conflict(
    sides: Sequence[env_sources.Side], setter: int, reader: int, name: str, source: model.EnvFromKey
) -> bool:
    if name in sides[0].names:
        # It is the container's, whoever repeats it.
        return setter == 0 and not any(name in side.names and source in side.sources for side in sides)
    return source not in sides[setter].sources and name not in sides[reader].names
