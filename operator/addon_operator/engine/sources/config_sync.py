"""The values ConfigMap, both ways: edits go into the store, config values of hooks are written back."""

import asyncio
import dataclasses
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from addon_operator.aio import waiting
from addon_operator.engine import events, intents
from addon_operator.kernel import errors, names
from addon_operator.kube.client import config_maps
from addon_operator.values import config_map, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schemas

LOOK_SECONDS: Final = 60.0
"""For reading and checking all of a ConfigMap; what takes longer is wrong."""
REREAD_SECONDS: Final = 60.0
"""Between two looks at the ConfigMap itself."""
RETRY_SECONDS: Final = 2.0
"""Between two looks at a ConfigMap that was wrong at the start: nothing watches it yet."""

_Check: TypeAlias = Callable[[sources.ConfigValues], list[schemas.Violation]]


class ConfigSync:
    """Keeps the store's config values in step with the ConfigMap."""

    def __init__(
        self,
        values: store.ValuesStore,
        client: config_maps.ConfigMap,
        inbox: intents.Inbox,
        tell: events.Listener,
        *,
        source: str,
    ) -> None:
        """``source`` is the ConfigMap's name in messages."""
        self._values = values
        self._client = client
        self._inbox = inbox
        self._tell = tell
        self._source = source
        self._reader, self._reviewer = self._new_reader(), self._new_reader()
        self._warned: frozenset[str] = frozenset()
        self._seen = config_maps.ABSENT
        self.is_refused = False
        """Whether the ConfigMap, as it is now, is wrong, so that older values, or none, are in force."""
        self.waits_for: str | None = None
        """What has to be fixed in the ConfigMap before anything starts, in a sentence without values."""
        self._busy = asyncio.Lock()
        self._arrived: deque[config_maps.Snapshot | None] = deque()
        self._catching_up: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Read the ConfigMap for the first time, and check all values of modules that are enabled.

        Raises :class:`.ConfigMapError` when it is wrong,
        :class:`.InvalidValuesError` when it and the values files break schemas,
        both with all that is wrong, and what the client raises when it cannot be read.
        """
        look = await self._look(await self._client.read() or config_maps.ABSENT)
        if look.is_wrong:
            raise look.error(self._source)
        self._begin_with(look)

    async def load_when_valid(self, sleep: waiting.Sleep = asyncio.sleep) -> None:
        """Like :meth:`load`, but an invalid ConfigMap is waited for until somebody has fixed it.

        Each wrong state is reported once. Raises what :meth:`load` raises when the files are wrong by
        themselves, or when the first look cannot be taken.
        """
        look = await self._look(await self._client.read() or config_maps.ABSENT)
        if look.is_wrong and await asyncio.to_thread(self._are_files_wrong, look):
            raise look.error(self._source)
        while look.is_wrong:
            self.is_refused, self.waits_for = True, look.without_values(self._source)
            error = sources.ConfigMapError(self._source, look.sentences)
            self._tell(events.ConfigRefused(error, look.snapshot.uid, at_start=True))
            look = await self._look(await self._changed_since(look.snapshot, sleep))
        self.is_refused, self.waits_for = False, None
        self._begin_with(look)

    async def _changed_since(self, last: config_maps.Snapshot, sleep: waiting.Sleep) -> config_maps.Snapshot:
        while True:
            await sleep(RETRY_SECONDS)
            try:
                now = await self._client.read() or config_maps.ABSENT
            except errors.AddonOperatorError as error:
                self._warn(f"{self._source} cannot be read: {error}; next try in {RETRY_SECONDS:.0f} s")
                continue
            if now.data != last.data:
                return now

    async def _look(self, snapshot: config_maps.Snapshot) -> "_Look":
        """Check all values, as before the start; an edit is checked by :meth:`_look_at_edit`."""
        return await asyncio.to_thread(self._read, snapshot, self._values.config_violations)

    async def _look_at_edit(self, snapshot: config_maps.Snapshot) -> "_Look":
        return await asyncio.to_thread(self._read, snapshot, self._values.edit_violations)

    def _read(self, snapshot: config_maps.Snapshot, check: _Check) -> "_Look":
        with self._values.inspector.within(LOOK_SECONDS):
            reading = self._reader.read(snapshot.data)
            return _Look(snapshot, reading, _broken(reading, check))

    def _are_files_wrong(self, look: "_Look") -> bool:
        """Whether something is wrong that the ConfigMap neither set nor left out."""
        is_there = look.snapshot is not config_maps.ABSENT
        return any(
            found in look.broken or found.keys[0] in look.reading.unreadable
            for found in self._values.config_violations(sources.ConfigValues())
            if not (is_there and found.is_missing_key)
        )

    def _begin_with(self, look: "_Look") -> None:
        self._values.set_config(look.reading.values)
        self._warn_of(look.reading)
        self._seen = look.snapshot

    def violations(self, data: Mapping[str, str]) -> tuple[str, ...]:
        """All that is wrong with a state of the ConfigMap that somebody proposes, one sentence each."""
        reading = self._reviewer.read(data)
        return (*reading.violations, *map(str, _broken(reading, self._values.edit_violations)))

    def _new_reader(self) -> sources.ConfigMapReader:
        parse = self._values.inspector.parse_section
        return sources.ConfigMapReader(self._values.modules, self._source, parse)

    async def set_modules(self) -> None:
        """Read the ConfigMap again for the modules that the store has now."""
        self._reader, self._reviewer = self._new_reader(), self._new_reader()
        async with self._busy:
            self._set_unless_wrong(await self._look_at_edit(self._seen))
        self._catch_up()

    def _set_unless_wrong(self, look: "_Look") -> store.ConfigChange | None:
        self.is_refused = look.is_wrong
        if look.is_wrong:
            error = sources.ConfigMapError(self._source, look.sentences)
            self._tell(events.ConfigRefused(error, look.snapshot.uid))
            return None
        self._warn_of(look.reading)
        return self._values.set_config(look.reading.values)

    def received(self, snapshot: config_maps.Snapshot | None) -> None:
        """Take in what a watch delivered; ``None`` means that the ConfigMap was deleted."""
        # The watch may be faster than the answer to our own write, which must not look like an edit.
        self._arrived.append(snapshot)
        self._catch_up()

    async def settled(self) -> None:
        """Wait until everything that was delivered is processed."""
        while self._catching_up:
            await asyncio.wait(self._catching_up)

    async def reread(self) -> None:
        """Look at the ConfigMap itself: a watch that was down misses deletions.

        Raises what the client raises when it cannot be read.
        """
        before = self._seen
        snapshot = await self._client.read()
        if snapshot is None and (self._seen is not before or self._arrived):
            # It was created while the answer was on its way.
            return
        self.received(snapshot)

    async def keep_in_step(self, sleep: waiting.Sleep = asyncio.sleep) -> None:
        """Look at the ConfigMap itself every :data:`REREAD_SECONDS`, until cancelled."""
        while True:
            await sleep(REREAD_SECONDS)
            try:
                await self.reread()
            except errors.AddonOperatorError as error:
                self._warn(f"{self._source} cannot be read: {error}; next try in {REREAD_SECONDS:.0f} s")

    async def write(self, owner: names.ModuleName | None, patch: patches.ValuesPatch) -> bool:
        """Apply a hook's patch to the ConfigMap and to the store; whether it changed something.

        This is not an edit. What somebody else changed meanwhile counts as that person's edit.

        Raises what :meth:`.ValuesStore.apply_config_patch` raises over the fresh
        ConfigMap, and what the client raises when it cannot be written.
        """
        tries: list[tuple[Mapping[str, str], config_map.ConfigPatchResult]] = []

        async def change(data: Mapping[str, str]) -> Mapping[str, str]:
            # To read and write YAML takes milliseconds per 10 KiB.
            result, rendered = await asyncio.to_thread(self._try, data, owner, patch)
            tries.append((data, result))
            return rendered

        async with self._busy:
            written = await self._client.update(change)
            before, result = tries[-1]
            self._set_section(result)
            if before == self._seen.data:
                self._seen = written
            else:
                self._arrived.appendleft(written)
        self._catch_up()
        return result.changed

    def _catch_up(self) -> None:
        if self._arrived and not self._busy.locked() and not self._catching_up:
            task = asyncio.create_task(self._take_what_arrived(), name="read the ConfigMap")
            self._catching_up.add(task)
            task.add_done_callback(self._caught_up)

    def _caught_up(self, task: asyncio.Task[None]) -> None:
        self._catching_up.discard(task)
        if not task.cancelled():
            self._catch_up()

    async def _take_what_arrived(self) -> None:
        async with self._busy:
            while self._arrived:
                await self._take(self._arrived.popleft() or config_maps.ABSENT)

    async def _take(self, now: config_maps.Snapshot) -> None:
        if _older(now, self._seen):
            return
        same = now.data == self._seen.data
        self._seen = now
        if same:
            return
        # Whatever it holds, the loop goes on.
        if change := self._set_unless_wrong(await self._look_at_edit(now)):
            self._inbox.put_nowait(intents.ConfigEdited(change))

    def _try(
        self, data: Mapping[str, str], owner: names.ModuleName | None, patch: patches.ValuesPatch
    ) -> tuple[config_map.ConfigPatchResult, dict[str, str]]:
        # Only the section itself is read: another one may just now hold somebody's bad edit.
        key = names.GLOBAL_KEY if owner is None else names.values_key(owner)
        own: dict[str, str] = {key: data[key]} if key in data else {}
        fresh = self._new_reader().read(own).usable()
        result = self._values.apply_config_patch(owner, patch, fresh)
        return result, config_map.render(data, result)

    def _set_section(self, result: config_map.ConfigPatchResult) -> None:
        config = self._values.config
        sections = {**config.sections, result.key: result.section}
        self._values.set_config(dataclasses.replace(config, sections=sections))

    def _warn(self, text: str) -> None:
        self._tell(events.Warned(text))

    def _warn_of(self, reading: sources.ConfigMapReading) -> None:
        """Warn of each thing once, not with every edit."""
        warnings = reading.values.warnings
        for warning in warnings:
            if warning not in self._warned:
                self._warn(warning)
        self._warned = frozenset(warnings)


@dataclasses.dataclass(frozen=True, slots=True)
class _Look:
    """A state of the ConfigMap, and what is wrong with it."""

    snapshot: config_maps.Snapshot
    reading: sources.ConfigMapReading
    broken: tuple[schemas.Violation, ...]

    @property
    def is_wrong(self) -> bool:
        return bool(self.reading.violations or self.broken)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All that is wrong."""
        return (*self.reading.violations, *map(str, self.broken))

    def error(self, source: str) -> errors.AddonOperatorError:
        if self.reading.violations:
            return sources.ConfigMapError(source, self.sentences)
        return schemas.InvalidValuesError(self.broken)

    def without_values(self, source: str) -> str:
        # What is said of text that cannot be read may quote it.
        places = [text.partition(": ")[0] for text in self.reading.violations]
        wrong = "; ".join([*places, *(found.without_value for found in self.broken)])
        return f"{source} is invalid, and nothing runs until it is fixed: {wrong}"


def _broken(reading: sources.ConfigMapReading, check: _Check) -> tuple[schemas.Violation, ...]:
    """Return what breaks a schema in the sections that could be read."""
    return tuple(found for found in check(reading.values) if found.keys[0] not in reading.unreadable)


def _older(now: config_maps.Snapshot, seen: config_maps.Snapshot) -> bool:
    versions = (now.resource_version, seen.resource_version)
    if not all(version.isdecimal() for version in versions):
        return False
    return int(versions[0]) < int(versions[1])
