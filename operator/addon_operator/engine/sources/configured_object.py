"""The values ConfigMap, or the values Secret: what was last seen of it, and what its texts say."""

import dataclasses
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import structs

from addon_operator.documents import json_pointers
from addon_operator.engine import config_events
from addon_operator.kernel import errors, names
from addon_operator.kube.objects import config_maps
from addon_operator.values import config_map, config_map_reader, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations

K = TypeVar("K", bound=str)
V = TypeVar("V")
CONFIG_MAP: Final = "ConfigMap"
_ABSENT: Final = object()
SECRET: Final = "Secret"  # noqa: S105 - a kind, not a password
NOTHING_RUNS: Final = "is invalid, and nothing runs until it is fixed"


class ConfiguredObject:
    """One of the two objects in which people configure modules."""

    def __init__(
        self,
        kind: str,
        source: str,
        read: Callable[[], Awaitable[config_maps.Snapshot | None]],
        *,
        is_needed: bool = True,
    ) -> None:
        """``source`` is its name in messages; ``is_needed``: nothing begins without the right to read it."""
        self.kind: Final = kind
        self.source: Final = source
        self.read: Final = read
        self.is_needed: Final = is_needed
        self.seen = config_maps.ABSENT
        self.is_refused = False
        """Whether it, as it is now, is wrong, so that older values, or none, are in force."""
        self.is_held = False
        """Whether that holds all of it, and nothing of it as it is now is in force."""
        self.is_missing = False
        """Whether it was there and is missing, so that what was :attr:`seen` last counts on."""
        self.warnings: tuple[str, ...] = ()
        """What is odd about the state of it that is in force: keys that mean nothing."""

    def know(self, modules: Sequence[names.ModuleName], parse: config_map_reader.ParseSection) -> None:
        """Read texts of these modules from now on."""
        self._reader = self._new_reader(modules, parse)
        self._reviewer = self._new_reader(modules, parse)

    def _new_reader(
        self, modules: Sequence[names.ModuleName], parse: config_map_reader.ParseSection
    ) -> config_map_reader.ConfigMapReader:
        return config_map_reader.ConfigMapReader(modules, self.source, parse, is_secret=self.kind == SECRET)

    def at(self, snapshot: config_maps.Snapshot) -> "ObjectState":
        """Read a state of it."""
        return ObjectState(self, self._reader.read(snapshot.data, snapshot.binary), snapshot)

    def proposed(self, data: Mapping[str, str]) -> "ObjectState":
        """Read a state that somebody proposes; any thread may."""
        return ObjectState(self, self._reviewer.read(data))

    def in_force(self, config: sources.ConfigValues) -> "ObjectState":
        """Return what it says according to ``config``, the values in force."""
        if self.kind == SECRET:
            return ObjectState(
                self,
                config_map_reader.ConfigMapReading(config.secret or sources.ConfigValues(source=self.source)),
            )
        return ObjectState(self, config_map_reader.ConfigMapReading(dataclasses.replace(config, secret=None)))

    def lost(self, now: config_maps.Snapshot, written: Iterable[json_pointers.Tokens]) -> tuple[str, ...]:
        """Say what hooks had written to it, at these places among others, that it does not have any more."""
        before, after = (self._reader.read(each.data).values.sections for each in (self.seen, now))
        keys = {key for key in self.seen.of_hooks if key in self.seen.data and key not in now.data}
        places = {
            ".".join(map(str, place))
            for place in written
            if str(place[0]) not in keys
            and json_pointers.find(dict(before), place, _ABSENT) is not _ABSENT
            and json_pointers.find(dict(after), place, _ABSENT) is _ABSENT
        }
        return tuple(sorted(keys | places))

    def patched(
        self,
        values: store.ValuesStore,
        data: Mapping[str, str],
        owner: names.ModuleName | None,
        patch: patches.ValuesPatch,
    ) -> tuple[config_map.ConfigPatchResult, sources.ConfigValues, dict[str, str]]:
        """Return what a hook's patch makes of a state of it, what is in force with that, and its new data.

        Raises what :meth:`.ValuesStore.config_patched` raises.
        """
        # Only the section itself is read: another one may just now hold somebody's bad edit.
        key = names.GLOBAL_KEY if owner is None else names.values_key(owner)
        own: dict[str, str] = {key: data[key]} if key in data else {}
        parse = values.inspector.parse_section
        fresh = config_map_reader.ConfigMapReader(values.modules, self.source, parse).read(own).usable()
        result = values.config_patched(owner, patch, fresh)
        sections = {**values.config.sections, result.key: result.section}
        config = dataclasses.replace(values.config, sections=sections).laid_together()
        return result, config, config_map.render(data, result)

    def without_effect(
        self, patch: patches.ValuesPatch, result: config_map.ConfigPatchResult, config: sources.ConfigValues
    ) -> Iterator[str]:
        """Yield a sentence if a hook changed what the Secret in ``config`` sets, too."""
        if result.hidden and config.secret is not None:
            yield (
                f"{patch.source} changes {', '.join(result.hidden)} without effect: {config.secret.source} "
                f"sets that, and lies over {self.source}"
            )

    def new_warnings(self, warnings: Sequence[str]) -> Iterator[str]:
        """Give each of these warnings once, not with every edit."""
        before, self.warnings = frozenset(self.warnings), tuple(warnings)
        yield from (text for text in self.warnings if text not in before)


class ObjectState(msgspec.Struct, frozen=True):
    """One of the objects, at one moment."""

    origin: ConfiguredObject
    reading: config_map_reader.ConfigMapReading
    snapshot: config_maps.Snapshot = config_maps.ABSENT


def merged(parts: Sequence[ObjectState]) -> sources.ConfigValues:
    """Return the ConfigMap's part with the Secret's over it, if that says anything."""
    config, *above = (part.reading.values for part in parts)
    secret = above[0] if above and (above[0].sections or above[0].enabled or above[0].maintenance) else None
    return dataclasses.replace(config, secret=secret)


class ConfigState(msgspec.Struct, frozen=True):
    """A state of ConfigMap and Secret, and what is wrong with it."""

    parts: Sequence[ObjectState]
    values: sources.ConfigValues
    """What they say together."""
    broken: tuple[schema_violations.Violation, ...]
    """What breaks a schema in the sections that could be read."""

    @property
    def is_wrong(self) -> bool:
        """Whether it cannot be used."""
        return bool(self.sentences)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return all that is wrong."""
        return tuple(text for text, _ in self.told)

    @property
    def told(self) -> tuple[tuple[str, bool], ...]:
        """Return all that is wrong, and whether that may be so because of values of the Secret."""
        read = ((text, False) for part in self.parts for text in part.reading.violations)
        return (*read, *((str(violation), violation.sees_secret) for violation in self.broken))

    def blamed(self) -> Iterator["ConfigState"]:
        """Give what is wrong by the object to be edited: the Secret for what it sets, else the ConfigMap."""
        secrets = {part.origin.source for part in self.parts[1:]}
        for part in self.parts:
            is_own = part.origin.source in secrets
            broken = tuple(
                violation
                for violation in self.broken
                if (violation.origin == part.origin.source if is_own else violation.origin not in secrets)
            )
            if part.reading.violations or broken:
                yield ConfigState([part], self.values, broken)

    @property
    def source(self) -> str:
        """Return the names of the objects that are wrong."""
        blamed = self.parts if len(self.parts) == 1 else [look.parts[0] for look in self.blamed()]
        return " and ".join(part.origin.source for part in blamed)

    def with_broken(self, more: Sequence[schema_violations.Violation]) -> "ConfigState":
        """Return the same with more that breaks a schema, each once."""
        return structs.replace(self, broken=tuple(dict.fromkeys((*self.broken, *more))))

    def holding(self, keys: Collection[str], in_force: sources.ConfigValues) -> list[ObjectState]:
        """Return the parts with what is ``in_force`` of these keys in place of what they say."""

        def held(new: Mapping[K, V], old: Mapping[K, V]) -> dict[K, V]:
            kept = {key: value for key, value in new.items() if key not in keys}
            return kept | {key: value for key, value in old.items() if key in keys}

        def part_of(part: ObjectState) -> ObjectState:
            new, old = part.reading.values, part.origin.in_force(in_force).reading.values
            values = dataclasses.replace(
                new,
                sections=held(new.sections, old.sections),
                enabled=held(new.enabled, old.enabled),
                maintenance=held(new.maintenance, old.maintenance),
            )
            return ObjectState(part.origin, config_map_reader.ConfigMapReading(values), part.snapshot)

        return list(map(part_of, self.parts))

    def error(self) -> errors.AddonOperatorError:
        """Return what to raise."""
        if any(part.reading.violations for part in self.parts):
            wrong = next(part for part in self.parts if part.reading.violations)
            return sources.ConfigMapError(wrong.origin.source, self.sentences)
        return schema_violations.InvalidValuesError(self.broken)

    def refusal(self) -> sources.ConfigMapError:
        """Return what is wrong, as an error of the object."""
        return sources.ConfigMapError(self.source, self.sentences)

    @property
    def wrong(self) -> tuple[config_events.WrongKey, ...]:
        """Return all that is wrong, without values."""
        read = (problem for part in self.parts for problem in part.reading.problems)
        return (
            *(config_events.WrongKey(problem.key, problem.without_values) for problem in read),
            *(
                config_events.WrongKey(str(violation.keys[0]), violation.without_value)
                for violation in self.broken
            ),
        )

    def without_values(self) -> str:
        """Return what has to be fixed before anything starts."""
        wrong = config_events.listed_wrong(self.wrong)
        return f"{self.source} {NOTHING_RUNS}: {wrong}"


Check = Callable[[sources.ConfigValues], list[schema_violations.Violation]]


def look_at(parts: Sequence[ObjectState], check: Check) -> ConfigState:
    """Find what is wrong with what the parts say together."""
    unreadable = frozenset[str]().union(*(part.reading.unreadable for part in parts))
    values = merged(parts).laid_together()
    broken = tuple(violation for violation in check(values) if violation.keys[0] not in unreadable)
    return ConfigState(parts, values, broken)
