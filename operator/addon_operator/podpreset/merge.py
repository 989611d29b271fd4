"""What presets add to a pod, or why they cannot.

Source: "Conflicts" and "Behavior" of the PodPreset design, with the merge rules of Kubernetes 1.19;
``docs/reference/podpreset.md`` says what holds where the two differ.
"""

import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

import msgspec

from addon_operator.documents import json_pointers, text_parts
from addon_operator.kernel import errors, json_types
from addon_operator.podpreset import crd, env_sources, model, selection

PRESETS_MAX: Final = 1000
"""How many presets may match one pod."""
ENTRIES_MAX: Final = 50_000
"""How many entries they may have, counted once for each container."""
CHARACTERS_MAX: Final = 8 << 20
"""How many characters these entries may have; the API server takes no pod of more than 3 MiB."""


class MergeCostError(errors.AddonOperatorError):
    """The presets that match a pod are too many or too large: nothing is injected from any of them."""


def check_cost(pod: json_types.KubernetesObject, presets: Collection[model.Preset]) -> None:
    """Raise :class:`MergeCostError` if these presets are more than may be merged into the pod."""
    containers = len(env_sources.containers(pod))
    if len(presets) > PRESETS_MAX:
        raise _too_costly(f"{len(presets)} presets match the pod, and {PRESETS_MAX} may")
    entries = sum(
        containers * (len(one.env) + len(one.env_from) + len(one.volume_mounts)) + len(one.volumes)
        for one in presets
    )
    if entries > ENTRIES_MAX:
        raise _too_costly(
            f"the presets that match the pod have {entries} entries for its containers, "
            f"and {ENTRIES_MAX} may be"
        )
    if sum(preset.characters(containers) for preset in presets) > CHARACTERS_MAX:
        raise _too_costly(f"the presets that match the pod add more than {CHARACTERS_MAX} characters to it")


def _too_costly(problem: str) -> MergeCostError:
    return MergeCostError(f"No preset was injected: {problem}.")


_SUMMARY: Final = "Conflict on pod preset."


class PatchOperation(TypedDict):
    """One operation of a JSON patch (RFC 6902); nothing but ``add`` is ever needed."""

    op: str
    path: str
    value: Any


@dataclass(frozen=True, slots=True)
class AppliedPreset:
    """A preset that a pod has now."""

    name: model.PresetName
    resource_version: str
    adds: bool = field(default=True, compare=False)
    """Whether the pod gets anything from it that it did not have."""


class Injection(msgspec.Struct, frozen=True):
    """The presets fit the pod."""

    patch: tuple[PatchOperation, ...]
    """What to change; empty when there is nothing to add."""
    applied: tuple[AppliedPreset, ...]


class PresetConflict(msgspec.Struct, frozen=True):
    """What stands in the way of one preset."""

    preset: model.PresetName
    problems: tuple[str, ...]
    """One sentence each, in the order found, none twice."""

    @property
    def message(self) -> str:
        """Text of the Event on the pod."""
        return " ".join((_SUMMARY, *self.problems))


class Conflicted(msgspec.Struct, frozen=True):
    """Nothing is injected, from no preset."""

    conflicts: tuple[PresetConflict, ...]


def inject(
    pod: json_types.KubernetesObject,
    presets: Iterable[model.Preset],
    env_from_keys: env_sources.EnvFromKeys,
) -> Injection | Conflicted:
    """Merge presets that were selected for a pod into it, all of them or none.

    A pod to which the same presets were applied before gets no change. The keys of the sources named by
    :func:`.sources_needed` suffice.

    Raises :class:`.MergeCostError` when that would cost more than it may.
    """
    ordered = sorted(presets, key=lambda preset: preset.order)
    check_cost(pod, ordered)
    target = _Pod(pod, ordered, env_from_keys)
    conflicts, applied = [], []
    for number, preset in enumerate(ordered):
        before = target.additions
        problems = tuple(dict.fromkeys(target.merge(number, preset)))
        if problems:
            conflicts.append(PresetConflict(preset.name, problems))
        adds = target.additions > before
        applied.append(AppliedPreset(preset.name, preset.resource_version, adds))
    if conflicts:
        return Conflicted(tuple(conflicts))
    return Injection((*target.patch(), *_annotation_patch(pod, applied)), tuple(applied))


class _Entries:
    """A list of a pod or container, in which an entry is compared with the last one of its key."""

    __slots__ = ("_compared", "_last", "_part", "_path", "_started", "added")

    def __init__(
        self,
        path: str,
        owner: Mapping[str, Any],
        part: str,
        key: Callable[[model.Entry], Hashable],
    ) -> None:
        entries = owner.get(part) or ()
        self._path = f"{path}/{part}"
        self._part = part
        self._last = {key(entry): entry for entry in entries}
        # Entries that were compared, in the form for it: many presets may be compared with one large entry.
        self._compared: dict[Hashable, model.Entry] = {}
        self._started = bool(entries)
        self.added: list[model.Entry] = []

    def put(self, addition: model.Addition) -> bool:
        """Take an entry over unless it is there already; ``False`` when another one is."""
        key = addition.key
        found = self._last.get(key)
        if found is None:
            self._last[key] = addition.entry
            self._compared[key] = addition.canonical
            self.added.append(addition.entry)
            return True
        if key not in self._compared:
            self._compared[key] = crd.canonical(self._part, found)
        return self._compared[key] == addition.canonical

    def patch(self) -> Iterator[PatchOperation]:
        return _append(self._path, self.added, started=self._started)


class _Env(_Entries):
    """The variables of a container, whose own may refer to those that are added."""

    __slots__ = ("_own",)

    def __init__(self, path: str, container: Mapping[str, Any]) -> None:
        super().__init__(path, container, "env", _name_of)
        self._own: Sequence[model.Entry] = container.get("env") or ()

    def patch(self) -> Iterator[PatchOperation]:
        moved = self._moved()
        place = 0
        for index, entries in moved.items():
            for entry in entries:
                yield _add(f"{self._path}/{index + place}", entry)
                place += 1
        gone = {entry["name"] for entries in moved.values() for entry in entries}
        left = [entry for entry in self.added if entry["name"] not in gone]
        yield from _append(self._path, left, started=self._started)

    def _moved(self) -> dict[int, list[model.Entry]]:
        """Return what goes before which of the own entries, by its index: each sees what is before it.

        That is nothing if something that would move refers to an own entry that does not come before it.
        """
        waiting = {str(entry["name"]): (place, entry) for place, entry in enumerate(self.added)}
        last = {entry.get("name"): index for index, entry in enumerate(self._own)}
        moved: dict[int, list[model.Entry]] = {}
        for index, own in enumerate(self._own):
            found: list[tuple[int, model.Entry]] = []
            names = _referred(own) if waiting else []
            while names:
                if (one := waiting.pop(names.pop(), None)) is None:
                    continue
                found.append(one)
                inner = _referred(one[1])
                if any(last.get(name, -1) >= index for name in inner):
                    return {}
                names += inner
            if found:
                moved[index] = [entry for _, entry in sorted(found, key=operator.itemgetter(0))]
        return moved


def _referred(entry: model.Entry) -> list[str]:
    return text_parts.variables(entry.get("value") or "")


class _Mounts:
    """The mounts of a container, among which any equal one at a path is enough."""

    __slots__ = ("_compared", "_here", "_path", "_started", "added")

    def __init__(self, path: str, mounts: Collection[model.Entry]) -> None:
        self._path = path
        self._here: dict[object, list[model.Entry]] = {}
        self._compared: dict[object, set[Hashable]] = {}
        self._started = bool(mounts)
        self.added: list[model.Entry] = []
        for mount in mounts:
            self._here.setdefault(mount.get("mountPath"), []).append(mount)

    def put(self, addition: model.Addition) -> bool:
        """Take a mount over unless it is there already; ``False`` when there is only another one."""
        path = addition.entry["mountPath"]
        if path in self._here:
            return _frozen(addition.canonical) in self._mounted(path)
        self._here[path] = [addition.entry]
        self.added.append(addition.entry)
        return True

    def _mounted(self, path: object) -> set[Hashable]:
        """Return what is mounted at a path, in the form in which it is compared."""
        if path not in self._compared:
            self._compared[path] = {_frozen(crd.canonical("volumeMounts", one)) for one in self._here[path]}
        return self._compared[path]

    def patch(self) -> Iterator[PatchOperation]:
        return _append(self._path, self.added, started=self._started)


class _Container:
    """A container and what was added to it."""

    __slots__ = ("_clashes", "_env", "_env_from", "_mounts")

    def __init__(
        self,
        path: str,
        container: dict[str, Any],
        sides: Sequence[env_sources.Side],
        known: env_sources.KnownKeys,
    ) -> None:
        self._env = _Env(path, container)
        self._env_from = _Entries(path, container, "envFrom", model.env_from_key)
        self._mounts = _Mounts(f"{path}/volumeMounts", container.get("volumeMounts") or ())
        self._clashes = env_sources.Sides(env_sources.container_side(container), sides).clashes(known)

    def merge(self, number: int, preset: model.Preset) -> Iterator[str]:
        for addition in preset.env:
            if not self._env.put(addition):
                yield f"Duplicate env {addition.key}."
        for addition in preset.env_from:
            if not self._env_from.put(addition):
                yield f"Duplicate envFrom {model.env_from_key(addition.entry).source}."
        for clash in self._clashes[number]:
            yield f"Env {clash.name} is also set by envFrom {clash.source}."
        for addition in preset.volume_mounts:
            if not self._mounts.put(addition):
                yield f"Duplicate mountPath {addition.entry['mountPath']}."

    @property
    def additions(self) -> int:
        return len(self._env.added) + len(self._env_from.added) + len(self._mounts.added)

    def patch(self) -> Iterator[PatchOperation]:
        yield from self._env.patch()
        yield from self._env_from.patch()
        yield from self._mounts.patch()


class _Pod:
    """A pod and what was added to it."""

    __slots__ = ("_containers", "_volumes")

    def __init__(
        self,
        pod: json_types.KubernetesObject,
        presets: Iterable[model.Preset],
        env_from_keys: env_sources.EnvFromKeys,
    ) -> None:
        spec = pod.get("spec") or {}
        sides = [env_sources.preset_side(preset) for preset in presets]
        known = env_sources.KnownKeys(env_from_keys)
        self._containers = [
            _Container(f"/spec/{field}/{index}", container, sides, known)
            for field in env_sources.CONTAINER_LISTS
            for index, container in enumerate(spec.get(field) or ())
        ]
        self._volumes = _Entries("/spec", spec, "volumes", _name_of)

    def merge(self, number: int, preset: model.Preset) -> Iterator[str]:
        """Add what fits of a preset, the one of this number, and report what does not."""
        for container in self._containers:
            yield from container.merge(number, preset)
        for addition in preset.volumes:
            if not self._volumes.put(addition):
                yield f"Duplicate volume {addition.key}."

    @property
    def additions(self) -> int:
        """How many entries were added so far."""
        return len(self._volumes.added) + sum(container.additions for container in self._containers)

    def patch(self) -> Iterator[PatchOperation]:
        for container in self._containers:
            yield from container.patch()
        yield from self._volumes.patch()


def _name_of(entry: model.Entry) -> Hashable:
    return entry.get("name")


def _frozen(value: object) -> Hashable:
    """Return the same for values that are equal, to look them up."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _append(path: str, entries: Sequence[model.Entry], *, started: bool) -> Iterator[PatchOperation]:
    if not started and entries:
        yield _add(path, entries)
        return
    for entry in entries:
        yield _add(f"{path}/-", entry)


def is_new(one: AppliedPreset, given: Mapping[str, str]) -> bool:
    """Say whether a pod with these annotations has the preset for the first time.

    A pod may bring an annotation along, as a copy of another pod does, and a second admission may serve one
    more container: only the first of the two has another version to write.
    """
    version = given.get(selection.applied_key(one.name))
    return version is None or (one.adds and version != one.resource_version)


def _annotation_patch(
    pod: json_types.KubernetesObject, applied: Iterable[AppliedPreset]
) -> Iterator[PatchOperation]:
    """Yield the annotations of the applied presets.

    A version that is there already stays if its preset adds nothing: the first of two admissions wrote it.
    """
    metadata = pod.get("metadata")
    annotations = (metadata or {}).get("annotations") or {}
    missing = {
        selection.applied_key(one.name): one.resource_version for one in applied if is_new(one, annotations)
    }
    if not missing:
        return
    if metadata is None:
        yield _add("/metadata", {"annotations": missing})
    elif not annotations:
        yield _add("/metadata/annotations", missing)
    else:
        for key, version in missing.items():
            yield _add(json_pointers.render(("metadata", "annotations", key)), version)


def _add(path: str, value: object) -> PatchOperation:
    return {"op": "add", "path": path, "value": value}
