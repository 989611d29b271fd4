"""The values ConfigMap and the values Secret: their edits go into the store.

Config values of hooks are written back into the ConfigMap. Nothing writes to the Secret.
"""

import asyncio
import contextlib
import functools
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Final

from msgspec import structs

from addon_operator.aio import threads, waiting
from addon_operator.engine import config_events, events, intents
from addon_operator.engine.sources import configured_object, values_files
from addon_operator.helm import memory
from addon_operator.kernel import errors, names
from addon_operator.kube import api_errors
from addon_operator.kube.objects import config_maps, values_secret
from addon_operator.values import checks, config_map, hook_writers, settings_checks, sources, store
from addon_operator.values.patches import patches
from addon_operator.values.schema import schema_violations

AWAITED: Final = "WaitsForConfigMap"
LOOK_SECONDS: Final = 60.0
"""For reading and checking all of a ConfigMap; what takes longer is wrong."""
REREAD_SECONDS: Final = 60.0
"""Between two looks at the objects themselves."""
RETRY_SECONDS: Final = 2.0
"""Between two looks at objects that were wrong at the start: nothing watches them yet."""


def _as_it_is(_kind: str, snapshot: config_maps.Snapshot) -> config_maps.Snapshot:
    return snapshot


class ConfigSync:
    """Keeps the store's config values in step with the ConfigMap and the Secret."""

    def __init__(
        self,
        values: store.ValuesStore,
        client: config_maps.ConfigMap,
        inbox: intents.Inbox,
        tell: events.Listener,
        *,
        source: str,
        secret: values_secret.ValuesSecret | None = None,
        empty_after: float | None = None,
        sleep: waiting.Sleep = asyncio.sleep,
    ) -> None:
        """``source`` is the ConfigMap's name in messages; without ``secret`` there is only the ConfigMap.

        An object that was there and is missing counts as empty after ``empty_after`` seconds; by default, as
        it was.
        """
        self._values = values
        self._checks = checks.Checks(values)
        self._files = values_files.ValuesFiles(values)
        self._client = client
        self._inbox = inbox
        self._tell = tell
        self._config = configured_object.ConfiguredObject(configured_object.CONFIG_MAP, source, client.read)
        self._objects = {self._config.kind: self._config}
        if secret is not None:
            configured = configured_object.ConfiguredObject(
                configured_object.SECRET, str(secret), secret.read, is_needed=secret.is_named
            )
            self._objects[configured.kind] = configured
        self._know_modules()
        self._said: set[str] = set()
        self.waits_for: str | None = None
        """What has to be fixed before anything starts, in a sentence without values."""
        self._not_read: set[str] = set()
        self._not_allowed: set[str] = set()
        self._empty_after = empty_after
        self.remembered: memory.Memory | None = None
        """What was there before this start; set before anything is loaded, if that matters."""
        self.is_known = asyncio.Event()
        """Set once all that was there before this start is there again, and right."""
        self._sleep = sleep
        self._proven: frozenset[names.ModuleName] = frozenset()
        """Modules whose values have been right once, so that older ones are in force if they are wrong."""
        self._written = hook_writers.HookWriters()
        self._busy = asyncio.Lock()
        self._arrived: deque[tuple[configured_object.ConfiguredObject, config_maps.Snapshot]] = deque()
        self._catching_up: set[asyncio.Task[None]] = set()
        self._counting: set[asyncio.Task[None]] = set()

    @property
    def is_refused(self) -> bool:
        """Whether an object, as it is now, is wrong, so that older values, or none, are in force."""
        wrong = (each.is_refused or each.kind in self._not_read for each in self._objects.values())
        return self.waits_for is not None or any(wrong)

    @property
    def lacks(self) -> str | None:
        """Why nothing may be removed or run yet, without values; ``None`` if all is known."""
        if self.is_known.is_set():
            return None
        lacking = (each.source for each in self._objects.values() if each.is_missing or each.is_held)
        return (
            f"{AWAITED}: {' and '.join(lacking)}, which was there before, is missing or wrong: nothing is "
            "removed or run until it is back"
        )

    def check_writable(self) -> None:
        """Raise :class:`.MissingError` while the ConfigMap is missing."""
        if self._config.is_missing:
            raise config_maps.MissingError(self._config.source)

    @property
    def warnings(self) -> list[str]:
        """What is odd about the objects and has no effect, without values."""
        return [text for each in self._objects.values() for text in each.warnings]

    @property
    def modules(self) -> Collection[names.ModuleName]:
        """Those whose keys the objects may have."""
        return self._values.modules

    @property
    def uid(self) -> str:
        """That of the ConfigMap as it was last seen; empty if there is none."""
        return self._objects[configured_object.CONFIG_MAP].seen.uid

    def _know_modules(self) -> None:
        for configured in self._objects.values():
            configured.know(self._values.modules, self._values.inspector.parse_section)

    async def load(
        self, changed: Callable[[str, config_maps.Snapshot], config_maps.Snapshot] = _as_it_is
    ) -> None:
        """Read the objects once, for a plan, and check all values of modules that are enabled.

        Modules whose own keys are wrong are withheld, and reported. What the files of one module break is
        not looked at: that module fails with it. ``changed`` gives the state of an object, by its kind, that
        counts in place of the one in the cluster.

        Raises :class:`.ConfigMapError`, or :class:`.InvalidValuesError` when schemas are broken, with all
        that is wrong if that is so for all modules, and what the client raises when an object cannot be read.
        """
        pairs = zip(self._objects, await self._read(), strict=True)
        look = await self._look([changed(kind, snapshot) for kind, snapshot in pairs])
        if (right := await self._right_of(look)) is None:
            raise look.error()
        self._refuse(look, set())
        self._begin_with(right, self._withheld(look))

    async def load_when_valid(self, sleep: waiting.Sleep = asyncio.sleep) -> None:
        """Load like :meth:`load`, but wait until somebody has fixed what is wrong for all modules.

        Modules whose own keys are wrong are withheld: nothing is done with them. Each wrong state is reported
        once. Raises what :meth:`load` raises when the files are wrong by themselves, or when the first look
        cannot be taken.
        """
        look = await self._look(await self._read())
        if look.is_wrong and (of_files := await threads.run(threads.EDITS, self._files.wrong, look)):
            raise look.with_broken(of_files).error()
        before: set[str] = set()
        while (right := await self._right_of(look)) is None:
            before = self._refuse(look, before, at_start=True)
            self.waits_for = "; ".join(each.without_values() for each in look.blamed())
            look = await self._look(await self._changed_since(look, sleep))
        for kind in self._refuse(look, before):
            self._objects[kind].is_refused = True
        self.waits_for = None
        self._begin_with(right, self._withheld(look))

    def _refuse(
        self, look: configured_object.ConfigState, before: set[str], *, at_start: bool = False
    ) -> set[str]:
        """Report what is wrong, and which objects of those ``before`` are right now; kinds of wrong ones."""
        blamed = {each.parts[0].origin.kind: each for each in look.blamed()}
        for kind, each in blamed.items():
            self._tell(
                config_events.ConfigRefused(
                    each.refusal(),
                    each.parts[0].snapshot.uid,
                    each.wrong,
                    at_start=at_start,
                    kind=kind,
                    withheld=tuple(self._withheld(each)),
                )
            )
        for kind in before - blamed.keys():
            self._tell(config_events.ConfigRight(kind))
        return set(blamed)

    async def _read(self) -> list[config_maps.Snapshot]:
        return [await self._read_one(each) for each in self._objects.values()]

    async def _read_one(self, configured: configured_object.ConfiguredObject) -> config_maps.Snapshot:
        try:
            return await configured.read() or config_maps.ABSENT
        except api_errors.Forbidden as error:
            if configured.is_needed or configured.seen is not config_maps.ABSENT:
                raise
            self._warn_once(
                f"{configured.source} counts as empty, because it must not be read: {error}; allow that, or "
                "set VALUES_SECRET to none"
            )
            self._not_allowed.add(configured.kind)
            return config_maps.ABSENT

    async def _changed_since(
        self, last: configured_object.ConfigState, sleep: waiting.Sleep
    ) -> list[config_maps.Snapshot]:
        while True:
            await sleep(RETRY_SECONDS)
            try:
                now = await self._read()
            except errors.AddonOperatorError as error:
                self._warn(f"{last.source} cannot be read: {error}; next try in {RETRY_SECONDS:.0f} s")
                continue
            # One that is missing is on its way back: nothing begins without it.
            before = (part.snapshot for part in last.parts)
            now = [old if new is config_maps.ABSENT else new for old, new in zip(before, now, strict=True)]
            if [each.data for each in now] != [part.snapshot.data for part in last.parts]:
                return now

    async def _look(self, snapshots: Sequence[config_maps.Snapshot]) -> configured_object.ConfigState:
        """Check all values, as before the start; an edit is checked by :meth:`_look_at_edit`."""

        def look() -> configured_object.ConfigState:
            pairs = zip(self._objects.values(), snapshots, strict=True)
            parts = [configured.at(snapshot) for configured, snapshot in pairs]
            state = configured_object.look_at(parts, self._checks.config_violations)
            if any(map(self._was_there, parts)):
                # What files say without it means nothing.
                return structs.replace(state, broken=())
            return structs.replace(state, broken=self._files.without_modules_own(state))

        return await self._within_bounds(look)

    async def _within_bounds(
        self, look: Callable[[], configured_object.ConfigState]
    ) -> configured_object.ConfigState:
        """Look in a thread, and tell once what programs that check settings warn of."""

        def bounded() -> tuple[configured_object.ConfigState, list[str]]:
            with (
                self._values.inspector.within(LOOK_SECONDS),
                settings_checks.within(LOOK_SECONDS) as question,
            ):
                return look(), question.warnings

        state, warnings = await threads.run(threads.EDITS, bounded)
        for warning in warnings:
            self._warn_once(warning)
        return state

    async def _look_at_edit(
        self,
        edited: configured_object.ConfiguredObject,
        now: config_maps.Snapshot,
        *,
        trusts_others: bool = False,
    ) -> configured_object.ConfigState:
        """Check an edit with what was last seen of the other object, or with what of that is in force."""

        def part_of(kept: configured_object.ConfiguredObject) -> configured_object.ObjectState:
            if kept is edited:
                return kept.at(now)
            return kept.in_force(self._values.config) if trusts_others else kept.at(kept.seen)

        def look() -> configured_object.ConfigState:
            parts = [part_of(configured) for configured in self._objects.values()]
            return configured_object.look_at(parts, self._checks.edit_violations)

        return await self._within_bounds(look)

    def _begin_with(
        self,
        look: configured_object.ConfigState,
        withheld: Mapping[names.ModuleName, frozenset[str]] | None = None,
    ) -> None:
        self._take(look, withheld or {})
        for part in look.parts:
            part.origin.seen = part.snapshot
            if self._was_there(part):
                self._miss(part.origin, self._uid_before(part.origin), at_start=True)
            self._warn_of(part)
        self._note_seen()

    def _uid_before(self, configured: configured_object.ConfiguredObject) -> str:
        return "" if self.remembered is None else self.remembered.uid(configured.kind)

    def _was_there(self, part: configured_object.ObjectState) -> bool:
        """Say whether an object that a start does not find was there before, and releases with it."""
        if part.snapshot is not config_maps.ABSENT or part.origin.kind in self._not_allowed:
            return False
        return bool(
            self._uid_before(part.origin) and self.remembered is not None and self.remembered.has_releases
        )

    def _note_seen(self) -> None:
        """Remember what is there, and let the engine begin if all is."""
        for configured in self._objects.values():
            if self.remembered is not None and not configured.is_missing:
                self.remembered.remember_uid(configured.kind, configured.seen.uid)
        if not any(each.is_missing or each.is_held for each in self._objects.values()):
            self.is_known.set()

    @property
    def has_secret(self) -> bool:
        """Whether values come from a Secret, too."""
        secret = self._objects.get(configured_object.SECRET)
        return secret is not None and (bool(secret.seen.data) or self._values.config.secret is not None)

    def violations(
        self, data: Mapping[str, str], kind: str = configured_object.CONFIG_MAP, *, alone: bool = False
    ) -> tuple[tuple[str, bool], ...]:
        """Return all that is wrong with a state of an object that somebody proposes, one sentence each.

        With each stands whether values of the Secret may be why. ``alone``: as if the other object had
        nothing in it.
        """
        proposed = self._objects[kind]
        own = proposed.proposed(data)
        others = [configured for configured in self._objects.values() if configured is not proposed]

        def found(others_seen: bool) -> tuple[tuple[str, bool], ...]:
            parts = {proposed.kind: own}
            for configured in others:
                if alone:
                    parts[configured.kind] = configured.proposed({})
                    continue
                parts[configured.kind] = (
                    configured.proposed(configured.seen.data)
                    if others_seen
                    else configured.in_force(self._values.config)
                )
            ordered = [parts[configured.kind] for configured in self._objects.values()]
            return configured_object.look_at(ordered, self._checks.edit_violations).told

        wrong = found(others_seen=False)
        # An edit may be what one of the other object waits for.
        if wrong and any(configured.is_refused for configured in others) and not found(others_seen=True):
            return ()
        return wrong

    async def set_modules(self) -> None:
        """Read the objects again for the modules that the store has now."""
        self._know_modules()
        async with self._alone():
            right = [configured for configured in self._objects.values() if not configured.is_refused]
            configured = right[0] if right else self._config
            await self._put_into_force(configured, configured.seen)

    async def _put_into_force(
        self, edited: configured_object.ConfiguredObject, now: config_maps.Snapshot
    ) -> sources.ConfigChange | None:
        """Take what was last seen into force as far as it is right, and report what of ``edited`` is wrong.

        A section that is wrong keeps what is in force of it; a wrong ``global`` holds all.
        ``edited`` counts as it is ``now``, and is marked as seen when that is settled.
        """
        look = await self._look_at_edit(edited, now)
        others = [configured for configured in self._objects.values() if configured is not edited]
        are_others_right = not look.is_wrong
        if look.is_wrong and any(configured.is_refused for configured in others):
            look = await self._look_at_edit(edited, now, trusts_others=True)
        for configured in others if are_others_right else ():
            # What could not be read of another one is still to come.
            if configured.kind not in self._not_read:
                self._note_right(configured)
        if look.is_wrong:
            edited.seen, edited.is_refused = now, True
            self._not_read.discard(edited.kind)
            right, withheld = await self._right_of(look), self._withheld(look)
            edited.is_held = right is None
            told = () if right is None else tuple(withheld)
            self._tell(
                config_events.ConfigRefused(
                    look.refusal(), now.uid, look.wrong, kind=edited.kind, withheld=told
                )
            )
            return None if right is None else self._take(right, withheld)
        self._note_right(edited)
        for part in look.parts:
            self._warn_of(part)
        # Last: what is in force already is no change to whoever tries again.
        change = self._take(look, {})
        edited.seen = now
        return change

    def _take(
        self, look: configured_object.ConfigState, withheld: Mapping[names.ModuleName, frozenset[str]]
    ) -> sources.ConfigChange:
        self._proven = frozenset(self._values.modules) - withheld.keys()
        return self._values.set_config(look.values, withheld)

    def _wrong_modules(self, look: configured_object.ConfigState) -> dict[names.ModuleName, frozenset[str]]:
        wrong = frozenset(each.key for each in look.wrong)
        own = {module: wrong.intersection(names.keys_of(module)) for module in self._values.modules}
        return {module: keys for module, keys in own.items() if keys}

    def _withheld(self, look: configured_object.ConfigState) -> dict[names.ModuleName, frozenset[str]]:
        """Return the modules that are wrong and have no older values, with their wrong keys."""
        modules = self._wrong_modules(look)
        return {module: keys for module, keys in modules.items() if module not in self._proven}

    async def _right_of(self, look: configured_object.ConfigState) -> configured_object.ConfigState | None:
        """Return the state without what is wrong of single modules; ``None`` if all of it has to wait."""
        wrong = frozenset(each.key for each in look.wrong)
        modules, withheld = self._wrong_modules(look), self._withheld(look)
        if not wrong <= frozenset[str]().union(*modules.values()):
            return None
        lasting = frozenset(key for each in modules.keys() - withheld.keys() for key in names.keys_of(each))
        unchecked = frozenset(key for each in withheld for key in names.keys_of(each))

        def violations(values: sources.ConfigValues) -> list[schema_violations.Violation]:
            # All that was right stays so where no older values come in.
            found = self._checks.edit_violations(values) if lasting else []
            return [one for one in found if one.keys[0] not in unchecked]

        # A module that is switched on with its wrong section stays off.
        for held in (wrong, wrong | lasting):
            parts = look.holding(held, self._values.config)
            right = await self._within_bounds(functools.partial(configured_object.look_at, parts, violations))
            if not right.is_wrong:
                return right
        return None

    def _note_right(self, configured: configured_object.ConfiguredObject) -> None:
        if configured.is_refused or configured.kind in self._not_read:
            configured.is_refused = configured.is_held = False
            self._not_read.discard(configured.kind)
            self._tell(config_events.ConfigRight(configured.kind))

    def received(
        self, snapshot: config_maps.Snapshot | None, kind: str = configured_object.CONFIG_MAP
    ) -> None:
        """Take in what a watch delivered; ``None`` means that the object was deleted."""
        # The watch may be faster than the answer to our own write, which must not look like an edit.
        self._arrived.append((self._objects[kind], snapshot or config_maps.ABSENT))
        self._catch_up()

    async def settled(self) -> None:
        """Wait until everything that was delivered is processed."""
        while self._catching_up:
            await asyncio.wait(self._catching_up)

    async def reread(self) -> None:
        """Look at the objects themselves: a watch that was down misses deletions.

        Raises what the client raises when one cannot be read.
        """
        for configured in self._objects.values():
            before = configured.seen
            snapshot = await self._read_one(configured)
            if snapshot is config_maps.ABSENT and (configured.seen is not before or self._arrived):
                # It was created while the answer was on its way.
                continue
            self.received(snapshot, configured.kind)

    async def keep_in_step(self, sleep: waiting.Sleep = asyncio.sleep) -> None:
        """Look at the objects themselves every :data:`REREAD_SECONDS`, until cancelled."""
        while True:
            await sleep(REREAD_SECONDS)
            try:
                await self.reread()
            except errors.AddonOperatorError as error:
                named = " and ".join(configured.source for configured in self._objects.values())
                self._warn(f"{named} cannot be read: {error}; next try in {REREAD_SECONDS:.0f} s")

    async def write(self, owner: names.ModuleName | None, patch: patches.ValuesPatch) -> bool:
        """Apply a hook's patch to the ConfigMap and to the store; whether it changed something.

        This is not an edit. What somebody else changed meanwhile counts as that person's edit. A ConfigMap is
        only created where there never was one: one that was there may be on its way back.

        Raises :class:`.MissingError` while it is missing, what :meth:`.ValuesStore.config_patched` raises
        over the fresh ConfigMap, and what the client raises when it cannot be written.
        """
        tries: list[tuple[Mapping[str, str], config_map.ConfigPatchResult, sources.ConfigValues]] = []

        async def change(data: Mapping[str, str]) -> Mapping[str, str]:
            # To read and write YAML takes milliseconds per 10 KiB.
            result, config, rendered = await threads.run(
                threads.OUTPUTS, self._config.patched, self._values, data, owner, patch
            )
            tries.append((data, result, config))
            return rendered

        async with self._alone():
            try:
                written = await self._client.update(
                    change,
                    may_create=self._config.seen is config_maps.ABSENT and not self._config.is_missing,
                )
            except config_maps.MissingError:
                # The watch may only come to report it.
                self._note_missing(self._config)
                raise
            self._written.note(patch, 0.0)
            before, result, config = tries[-1]
            self._values.set_config(config)
            if before == self._config.seen.data:
                self._config.seen = written
            else:
                self._arrived.appendleft((self._config, written))
        for warning in self._config.without_effect(patch, result, config):
            self._warn_once(warning)
        return result.changed

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Take no edit in meanwhile; what arrived is taken in afterwards, also after an error."""
        try:
            async with self._busy:
                yield
        finally:
            self._catch_up()

    def _catch_up(self) -> None:
        if self._arrived and not self._busy.locked() and not self._catching_up:
            task = asyncio.create_task(self._take_what_arrived(), name="read the values")
            self._catching_up.add(task)
            task.add_done_callback(self._caught_up)

    def _caught_up(self, task: asyncio.Task[None]) -> None:
        self._catching_up.discard(task)
        if not task.cancelled():
            self._catch_up()

    async def _take_what_arrived(self) -> None:
        async with self._busy:
            while self._arrived:
                configured, now = self._arrived[0]
                try:
                    await self._take_edit(configured, now)
                except Exception as error:  # noqa: BLE001 - a defect at one edit must not lose later ones
                    # Not marked as seen, so the next look at the object finds it again.
                    self._not_read.add(configured.kind)
                    self._tell(
                        config_events.ConfigNotRead(configured.kind, configured.source, error, REREAD_SECONDS)
                    )
                else:
                    self._note_seen()
                finally:
                    # Until here it counts as newer than an answer that was under way meanwhile.
                    self._arrived.popleft()

    async def _take_edit(self, kept: configured_object.ConfiguredObject, now: config_maps.Snapshot) -> None:
        if now.is_older_than(kept.seen):
            return
        if now is config_maps.ABSENT:
            self._note_missing(kept)
            return
        if kept.is_missing:
            kept.is_missing = False
            lost = await asyncio.to_thread(kept.lost, now, tuple(self._written.places))
            self._tell(config_events.ConfigFound(kept.kind, kept.source, now.uid, lost))
        if now.data == kept.seen.data and kept.kind not in self._not_read:
            kept.seen = now
            return
        # Whatever it holds, the loop goes on.
        if change := await self._put_into_force(kept, now):
            self._inbox.put_nowait(intents.ConfigEdited(change, kept.kind))

    def _note_missing(self, kept: configured_object.ConfiguredObject) -> None:
        """Leave all as it is: what was deleted may be on its way back."""
        if kept.seen is config_maps.ABSENT or kept.is_missing:
            return
        self._miss(kept, kept.seen.uid)

    def _miss(self, kept: configured_object.ConfiguredObject, uid: str, *, at_start: bool = False) -> None:
        kept.is_missing = True
        self._tell(
            config_events.ConfigMissing(kept.kind, kept.source, uid, self._empty_after, at_start=at_start)
        )
        if self._empty_after is not None:
            task = asyncio.create_task(self._count_as_empty(kept, self._empty_after), name="count as empty")
            self._counting.add(task)
            task.add_done_callback(self._counting.discard)

    async def _count_as_empty(self, kept: configured_object.ConfiguredObject, after: float) -> None:
        """Take it for empty if a second look does not find it either."""
        missed = kept.seen

        def is_missing() -> bool:
            return kept.is_missing and kept.seen is missed

        while is_missing():
            await self._sleep(after)
            try:
                snapshot = await self._read_one(kept)
            except errors.AddonOperatorError:
                # A look that fails says nothing.
                continue
            if snapshot is not config_maps.ABSENT:
                self.received(snapshot, kept.kind)
                continue
            async with self._alone():
                if is_missing() and not self._arrived:
                    kept.is_missing = False
                    self._tell(config_events.ConfigRight(kept.kind))
                    if change := await self._put_into_force(kept, snapshot):
                        self._inbox.put_nowait(intents.ConfigEdited(change, kept.kind))
                    self._note_seen()

    def _warn(self, text: str) -> None:
        self._tell(events.Warned(text))

    def _warn_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._warn(text)

    def _warn_of(self, part: configured_object.ObjectState) -> None:
        told = [*part.reading.values.warnings, *self._files.doubled(part)]
        for warning in part.origin.new_warnings(told):
            self._warn(warning)
