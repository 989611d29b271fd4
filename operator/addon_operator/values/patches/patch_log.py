"""What hooks changed so far: accumulated patches, kept short, replayed when what lies below them changed.

The operator replays the log over the values of the lower sources whenever those change. Rules of a replay:

* An operation that no longer applies, such as the removal of a key that has gone, is skipped alone.
* A patch with a ``test`` is taken as its author guarded it: if the test fails now, it has no effect at all.

So that memory and the time of a replay stay bounded, operations are joined as they arrive, only in ways that
cannot change the result of a replay over *any* lower values: a write drops the earlier writes to the same
place or inside it, and an operation inside a value that the log itself wrote changes that value. Places in
lists are not stable (an insertion moves the rest), so operations on them are joined only inside a value of
our own. What still grows without bound (thousands of different tests, or additions and removals in turn on a
list from below) is finally replaced by the plain difference between the lower and the present values.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, cast

import msgspec
from msgspec import structs

from addon_operator.documents import json_documents, json_pointers
from addon_operator.kernel import json_types
from addon_operator.values.patches import patches

MAX_GUARDS: Final = 200
"""How many patches with tests are kept apart."""
MIN_WEIGHT: Final = 256 * 1024
WEIGHT_FACTOR: Final = 64
"""The log may weigh :data:`MIN_WEIGHT` bytes, or so many times the JSON text of the values it makes."""

_STEP_WEIGHT: Final = 64
_WRITES: Final = frozenset({"add", "replace", "remove"})


class _Plain(msgspec.Struct):
    """One operation without a condition; its value belongs to the log and may be changed in place."""

    step: patches.PatchStep

    def steps(self) -> Iterator[patches.PatchStep]:
        yield self.step

    def copied(self) -> "_Plain":
        return _Plain(_own(self.step))

    def replay(self, document: json_types.JsonObject) -> None:
        _applied(document, self.step)


class _Guarded(msgspec.Struct):
    """Operations that count only if all tests before them hold."""

    tests: list[patches.PatchStep]
    effect: "PatchLog"

    def steps(self) -> Iterator[patches.PatchStep]:
        yield from self.tests
        yield from self.effect.steps()

    def copied(self) -> "_Guarded":
        return _Guarded(self.tests, self.effect.copied())

    def replay(self, document: json_types.JsonObject) -> None:
        if all(_applied(document, test) for test in self.tests):
            self.effect.replay(document)


class _Sequence(msgspec.Struct):
    """A patch whose tests stand between its operations."""

    sequence: list[patches.PatchStep]

    def steps(self) -> Iterator[patches.PatchStep]:
        return iter(self.sequence)

    def copied(self) -> "_Sequence":
        return self

    def replay(self, document: json_types.JsonObject) -> None:
        trial = json_documents.copy(document)
        for step in self.sequence:
            if not _applied(trial, step) and step.kind == "test":
                return
        document.update(trial)


_Entry = _Plain | _Guarded | _Sequence


class _Node(msgspec.Struct):
    """A place: the numbers of the entries that concern it, oldest first, and the places inside it."""

    numbers: dict[int, None] = msgspec.field(default_factory=dict)
    children: dict[str, "_Node"] = msgspec.field(default_factory=dict)

    def latest(self) -> int:
        """Return the highest number here, or -1."""
        return next(reversed(self.numbers), -1)


class _RegionIndex:
    """Entries in the order of their arrival, each registered under the places (regions) that it concerns."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[_Entry, dict[json_pointers.Tokens, None]]] = {}
        self._root = _Node()
        self._next = 0

    def __iter__(self) -> Iterator[_Entry]:
        return (entry for entry, _ in self._entries.values())

    def add(self, entry: _Entry, regions: Iterable[json_pointers.Tokens]) -> None:
        """Append an entry."""
        number = self._next
        self._next += 1
        self._entries[number] = (entry, {})
        self.register(number, regions)

    def register(self, number: int, regions: Iterable[json_pointers.Tokens]) -> None:
        """Note more places that an entry concerns; no later entry may concern them."""
        known = self._entries[number][1]
        for region in regions:
            if region not in known:
                known[region] = None
                self._insert(region, number)

    def discard(self, number: int) -> None:
        """Take an entry out."""
        _, regions = self._entries.pop(number)
        for region in regions:
            self._remove(region, number)

    def latest(self, regions: Iterable[json_pointers.Tokens]) -> tuple[int, _Entry] | None:
        """Return the latest entry that concerns one of the places, or something around or in them."""
        number = max((self._latest_at(region) for region in regions), default=-1)
        return None if number < 0 else (number, self._entries[number][0])

    def _latest_at(self, region: json_pointers.Tokens) -> int:
        node, best = self._root, -1
        for token in region:
            best = max(best, node.latest())
            child = node.children.get(token)
            if child is None:
                return best
            node = child
        return max(best, max((inner.latest() for inner in _subtree(node)), default=-1))

    def _insert(self, region: json_pointers.Tokens, number: int) -> None:
        node = self._root
        for token in region:
            node = node.children.setdefault(token, _Node())
        node.numbers[number] = None

    def _remove(self, region: json_pointers.Tokens, number: int) -> None:
        path = [self._root]
        for token in region:
            path.append(path[-1].children[token])
        path[-1].numbers.pop(number, None)
        for parent, token in zip(reversed(path[:-1]), reversed(region), strict=True):
            child = parent.children[token]
            if child.numbers or child.children:
                return
            del parent.children[token]


def _subtree(root: _Node) -> Iterator[_Node]:
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(node.children.values())


class PatchLog:
    """The accumulated patches of one section; all paths begin with the section's key."""

    def __init__(self) -> None:
        self._index: _RegionIndex = _RegionIndex()
        self._guards = 0
        self._weight = 0

    def copied(self) -> "PatchLog":
        """Return a log that may be appended to while others read this one."""
        log = PatchLog()
        log._guards, log._weight = self._guards, self._weight
        for entry in self._index:
            log._index.add(entry.copied(), _regions(entry.steps()))
        return log

    def append(self, steps: Sequence[patches.PatchStep]) -> None:
        """Remember the operations of one patch, which applied to the present values."""
        self.append_owned(owned(steps))

    def append_owned(self, own: list[patches.PatchStep]) -> None:
        """Append operations that nobody else keeps, like :meth:`append`."""
        self._weight += sum(_weight(step) for step in own)
        remaining = list(
            itertools.dropwhile(lambda step: step.kind == "test" and self._is_certain(step), own)
        )
        if not any(step.kind == "test" for step in remaining):
            for step in remaining:
                self._append_step(step)
        else:
            self._append_conditional(remaining)

    def replay(self, document: json_types.JsonObject) -> None:
        """Apply what the log says to a document of sections, in place; never fails."""
        for entry in self._index:
            entry.replay(document)

    def steps(self) -> Iterator[patches.PatchStep]:
        """Yield all operations that are kept, in their order."""
        for entry in self._index:
            yield from entry.steps()

    def entries(self) -> Iterator[Iterator[patches.PatchStep]]:
        """Return the same, by what counts only together."""
        return (entry.steps() for entry in self._index)

    def operations(self) -> list[patches.Operation]:
        """Return all operations that are kept, as RFC 6902 writes them; a copy."""
        return [cast("patches.Operation", json_documents.copy(dict(step.operation))) for step in self.steps()]

    def is_excessive(self, size: int) -> bool:
        """Say whether the log outgrew values whose JSON text has ``size`` bytes; :meth:`fold` helps."""
        limit = max(MIN_WEIGHT, WEIGHT_FACTOR * size)
        if self._weight > limit:
            # Joined operations were counted when they came: count what is left of them.
            self._weight = sum(_weight(step) for step in self.steps())
        return self._guards > MAX_GUARDS or self._weight > limit

    def fold(self, lower: json_types.JsonObject, present: json_types.JsonObject) -> None:
        """Keep only what makes ``present`` out of ``lower`` (documents of sections)."""
        self._index = _RegionIndex()
        self._guards = self._weight = 0
        self.append(difference(lower, present))

    def _is_certain(self, test: patches.PatchStep) -> bool:
        """Say whether the log itself makes the test true over any lower values."""
        latest = self._index.latest([json_pointers.stable_prefix(test.path)])
        if latest is None or not isinstance(latest[1], _Plain):
            return False
        written = latest[1].step
        # A section and the keys right under it can always be written; deeper writes may miss their parent.
        certain = written.kind == "add" and len(written.path) <= 2 and _is_stable(written.path)
        if not certain or not json_pointers.is_prefix(written.path, test.path):
            return False
        return _try_inside(written, test)

    def _append_step(self, step: patches.PatchStep) -> None:
        while (latest := self._index.latest(_regions([step]))) is not None:
            number, entry = latest
            if not isinstance(entry, _Plain):
                break
            if self._absorb(entry, step):
                return
            if not _supersedes(step, entry.step):
                break
            self._index.discard(number)
        self._index.add(_Plain(step), _regions([step]))

    def _absorb(self, entry: _Plain, step: patches.PatchStep) -> bool:
        if entry.step.kind not in {"add", "replace"} or entry.step.path[-1] == "-":
            return False
        if step.kind == "replace" and step.path == entry.step.path:
            entry.step = _with_value(entry.step, step.value)
            return True
        outer = entry.step.path
        is_inside = all(
            len(each) > len(outer) and json_pointers.is_prefix(outer, each) for each in step.pointers
        )
        return is_inside and _try_inside(entry.step, step)

    def _append_conditional(self, steps: list[patches.PatchStep]) -> None:
        tests = list(itertools.takewhile(lambda step: step.kind == "test", steps))
        effect = steps[len(tests) :]
        if any(step.kind == "test" for step in effect):
            self._add_guarded(_Sequence(steps))
            return
        latest = self._index.latest(_regions(steps))
        if latest is not None and _same_condition(latest[1], tests, effect):
            number, entry = latest
            cast("_Guarded", entry).effect.append(effect)
            self._index.register(number, _regions(effect))
        else:
            log = PatchLog()
            log.append(effect)
            self._add_guarded(_Guarded(tests, log))

    def _add_guarded(self, entry: _Guarded | _Sequence) -> None:
        self._guards += 1
        self._index.add(entry, _regions(entry.steps()))


def owned(steps: Iterable[patches.PatchStep]) -> list[patches.PatchStep]:
    """Copy operations for :meth:`PatchLog.append_owned`."""
    return [_own(step) for step in steps]


def _own(step: patches.PatchStep) -> patches.PatchStep:
    if "value" not in step.operation:
        return step
    return _with_value(step, json_documents.copy_value(step.value))


def _with_value(step: patches.PatchStep, value: json_types.JsonValue) -> patches.PatchStep:
    return structs.replace(step, operation={**step.operation, "value": value})


def _weight(step: patches.PatchStep) -> int:
    return _STEP_WEIGHT + len(json_documents.encode(step.operation.get("value")))


def _regions(steps: Iterable[patches.PatchStep]) -> list[json_pointers.Tokens]:
    return [json_pointers.stable_prefix(pointer) for step in steps for pointer in step.pointers]


def _is_stable(path: json_pointers.Tokens) -> bool:
    return json_pointers.stable_prefix(path) == path


def _supersedes(step: patches.PatchStep, earlier: patches.PatchStep) -> bool:
    """Say whether the earlier operation leaves no trace once ``step`` was applied, or could not be."""
    if step.kind not in _WRITES or not _is_stable(step.path):
        return False
    if step.kind == "replace" and earlier.path == step.path and earlier.kind == "remove":
        return False
    return all(json_pointers.is_prefix(step.path, pointer) for pointer in earlier.pointers)


def _try_inside(outer: patches.PatchStep, step: patches.PatchStep) -> bool:
    """Apply ``step`` to the value that ``outer`` writes, in place; false if it does not apply there."""
    depth = len(outer.path)
    document = {_ROOT: outer.value}
    if not _applied(document, _rebase(step, depth)):
        return False
    cast("dict[str, json_types.JsonValue]", outer.operation)["value"] = document[_ROOT]
    return True


_ROOT: Final = "value"


def _rebase(step: patches.PatchStep, depth: int) -> patches.PatchStep:
    path = (_ROOT, *step.path[depth:])
    operation = {**step.operation, "path": json_pointers.render(path)}
    if step.origin is None:
        return patches.PatchStep(operation, path)
    origin = (_ROOT, *step.origin[depth:])
    return patches.PatchStep({**operation, "from": json_pointers.render(origin)}, path, origin)


def _same_condition(entry: _Entry, tests: list[patches.PatchStep], effect: list[patches.PatchStep]) -> bool:
    """Say whether both patches apply under the same tests, and neither changes what is tested."""
    if not isinstance(entry, _Guarded) or len(entry.tests) != len(tests):
        return False
    if not all(
        json_documents.equal(left.operation, right.operation)
        for left, right in zip(entry.tests, tests, strict=True)
    ):
        return False
    written = _regions([*entry.effect.steps(), *effect])
    tested = _regions(tests)
    return not any(json_pointers.overlap(place, test) for place in written for test in tested)


def _applied(document: json_types.JsonObject, step: patches.PatchStep) -> bool:
    """Apply an operation in place, or a test; whether it applies."""
    try:
        patches.apply_step(document, step)
    except patches.StepError:
        return False
    return True


def replay(document: json_types.JsonObject, steps: Iterable[patches.PatchStep]) -> None:
    """Apply what applies of some operations, in place."""
    for step in steps:
        _applied(document, step)


def fill_writes(
    steps: Sequence[patches.PatchStep], fill: Callable[[json_pointers.Tokens, json_types.JsonValue], None]
) -> list[patches.PatchStep]:
    """Return the operations with what ``fill`` adds (in place) to the values that they write.

    A ``test`` of something that was filled before it in the same patch is left out: it held when it came.
    """
    result: list[patches.PatchStep] = []
    changed: list[json_pointers.Tokens] = []
    for step in steps:
        if step.kind in {"add", "replace"}:
            filled = _own(step)
            fill(filled.path[1:], filled.value)
            if not json_documents.equal(filled.value, step.value):
                changed.append(json_pointers.stable_prefix(step.path))
            result.append(filled)
        elif step.kind != "test" or not any(json_pointers.overlap(step.path, place) for place in changed):
            result.append(step)
    return result


def difference(lower: json_types.JsonObject, present: json_types.JsonObject) -> list[patches.PatchStep]:
    """Return the operations that make ``present`` out of ``lower``; lists are replaced whole."""
    return list(_difference((), lower, present))


def _difference(
    path: json_pointers.Tokens, lower: json_types.JsonObject, present: json_types.JsonObject
) -> Iterator[patches.PatchStep]:
    for key in [key for key in lower if key not in present]:
        yield patches.step({"op": "remove", "path": json_pointers.render((*path, key))})
    for key, value in present.items():
        below = lower.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            yield from _difference((*path, key), below, value)
        elif key not in lower or not json_documents.equal(below, value):
            yield patches.step({"op": "add", "path": json_pointers.render((*path, key)), "value": value})
