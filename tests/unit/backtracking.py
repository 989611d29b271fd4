"""Decides by the structure of a pattern of :mod:`re` whether it takes time in proportion to its text.

A pattern is an automaton whose states are its places for one character. It goes back over a text again and
again when a piece of text leads from a state ``p`` to itself, from ``p`` to another state ``q``, and from
``q`` to itself: each time the piece is repeated, there is one more way to have read all of it, and what
follows may make all of them fail. To search is to have one more place in front, which reads anything.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Iterable, Iterator

# The parser of the standard library; its types are not published.
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any, Final

_END: Final = ""
"""What comes after the last character, and before the first."""
_CHARACTERS: Final = [*map(chr, range(256)), "\u0131", "\u0660", "\u2028", "\u4e2d", "\U0001f600"]
_ALL: Final = frozenset([*_CHARACTERS, _END])
_WORD: Final = frozenset(character for character in _CHARACTERS if re.match(r"\w", character))
_LINE: Final = frozenset([_END, "\n"])
_FEW: Final = 3
"""A repetition that has an end counts as so many: its end bounds what it costs."""
_MANY: Final = 2000
"""Sets of states; beyond, a pattern is taken for one that may fail."""

Place = int
State = tuple[Place, str]
"""A place, and the character that was read there."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Way:
    """Leads from a place to another without reading, where the characters before and behind are such."""

    to: Place
    before: frozenset[str] = _ALL
    behind: frozenset[str] = _ALL
    is_again: bool = False
    """Whether it leads from the end of what is repeated to its beginning."""
    is_sure: bool = True
    """Whether nothing else decides that it is open."""

    def then(self, other: "_Way") -> "_Way":
        before, behind = self.before & other.before, self.behind & other.behind
        return _Way(other.to, before, behind, is_sure=self.is_sure and other.is_sure)


def goes_back(pattern: re.Pattern[str], uses: Iterable[str]) -> str | None:
    """Say with which use and text a pattern takes more than in proportion to the text, if there is one.

    A use is ``match``, ``fullmatch``, or ``search``: whatever begins at any character.
    """
    if not _is_endless(_parser.parse(pattern.pattern, pattern.flags)):
        return None
    for use in sorted(uses):
        for piece in _Automaton(pattern, use).repeated_pieces():
            return f"{use} goes back over {piece!r} again and again"
    return None


def _is_endless(parsed: Any) -> bool:  # noqa: ANN401 - the parser's own tree
    if isinstance(parsed, list | tuple | _parser.SubPattern):
        return any(_is_endless(each) for each in parsed)
    return parsed is _parser.MAXREPEAT


class _Automaton:
    """The places of a pattern, and the ways between them."""

    def __init__(self, pattern: re.Pattern[str], use: str) -> None:
        self._flags = pattern.flags
        self._reads: dict[Place, frozenset[str]] = {}
        self._ways: list[list[_Way]] = []
        self._groups: dict[int, Any] = {}
        self._inside: frozenset[Place] = frozenset()
        self._held: list[frozenset[Place]] = []
        """For each place, the ends of the atomic groups that it is in."""
        start = self._place()
        self._search = None
        if use == "search":
            self._search = self._place(_ALL)
            self._way(self._search, _Way(self._search))
            self._way(self._search, _Way(start))
        end = self._sequence(start, _parser.parse(pattern.pattern, pattern.flags))
        self._accepted = self._place()
        self._way(end, _Way(self._accepted, behind=frozenset([_END]) if use == "fullmatch" else _ALL))
        self._letters = self._of_each_kind()

    def _place(self, reads: frozenset[str] | None = None) -> Place:
        place = len(self._ways)
        self._ways.append([])
        self._held.append(self._inside)
        if reads is not None:
            self._reads[place] = reads - {_END}
        return place

    def _way(self, start: Place, way: _Way) -> None:
        self._ways[start].append(way)

    def _sequence(self, start: Place, parsed: Iterable[Any]) -> Place:
        for item in parsed:
            start = self._item(start, *item)
        return start

    def _item(self, start: Place, kind: Any, argument: Any) -> Place:  # noqa: ANN401, PLR0911 - a kind each
        match str(kind):
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeated(start, *argument)
            case "POSSESSIVE_REPEAT":
                return self._atomic(start, [(_parser.MAX_REPEAT, argument)])
            case "ATOMIC_GROUP":
                return self._atomic(start, argument)
            case "SUBPATTERN":
                self._groups[argument[0]] = argument[-1]
                return self._sequence(start, argument[-1])
            case "GROUPREF":
                return self._sequence(start, self._groups[argument])
            case "BRANCH":
                end = self._place()
                for branch in argument[1]:
                    self._way(self._sequence(start, branch), _Way(end))
                return end
            case "AT":
                return self._at(start, str(argument))
            case "ASSERT" | "ASSERT_NOT":
                return self._assertion(start, *argument, is_wanted=str(kind) == "ASSERT")
        place = self._place(_set_of((kind, argument), self._flags))
        self._way(start, _Way(place))
        return place

    def _repeated(self, start: Place, least: int, most: int, repeated: Any) -> Place:  # noqa: ANN401
        end = self._place()
        is_endless = most == _parser.MAXREPEAT
        for _ in range(min(least - is_endless, _FEW)):
            start = self._sequence(start, repeated)
        if is_endless:
            first = self._place()
            self._way(start, _Way(first))
            last = self._sequence(first, repeated)
            self._way(last, _Way(first, is_again=True))
            start = last if least else first
        for _ in range(0 if is_endless else min(most - least, _FEW)):
            self._way(start, _Way(end))
            start = self._sequence(start, repeated)
        self._way(start, _Way(end))
        return end

    def _atomic(self, start: Place, parsed: Iterable[Any]) -> Place:
        end = self._place()
        outside, self._inside = self._inside, self._inside | {end}
        first = self._place()
        self._way(start, _Way(first))
        self._way(self._sequence(first, parsed), _Way(end))
        self._inside = outside
        return end

    def _at(self, start: Place, where: str) -> Place:
        begins = _LINE if self._flags & re.MULTILINE else frozenset([_END])
        ways = {
            "AT_BEGINNING": [(begins, _ALL)],
            "AT_BEGINNING_STRING": [(frozenset([_END]), _ALL)],
            "AT_END": [(_ALL, _LINE)],
            "AT_END_STRING": [(_ALL, frozenset([_END]))],
            "AT_BOUNDARY": [(_WORD, _ALL - _WORD), (_ALL - _WORD, _WORD)],
            "AT_NON_BOUNDARY": [(_WORD, _WORD), (_ALL - _WORD, _ALL - _WORD)],
        }[where]
        end = self._place()
        for before, behind in ways:
            self._way(start, _Way(end, before, behind))
        return end

    def _assertion(self, start: Place, direction: int, parsed: Any, *, is_wanted: bool) -> Place:  # noqa: ANN401
        end = self._place()
        allowed = _set_of(parsed[0], self._flags) if len(parsed) == 1 else None
        if allowed is None:
            if direction > 0:
                # It costs what it costs and leads nowhere; what looks back has a length.
                self._sequence(start, parsed)
            self._way(start, _Way(end, is_sure=False))
        else:
            allowed = allowed if is_wanted else _ALL - allowed
            self._way(start, _Way(end, behind=allowed) if direction > 0 else _Way(end, before=allowed))
        return end

    def _of_each_kind(self) -> list[str]:
        """Return one character of each kind that the pattern tells from others."""
        kinds = {*self._reads.values()}
        kinds.update(each for ways in self._ways for way in ways for each in (way.before, way.behind))
        found: dict[tuple[bool, ...], str] = {}
        for character in sorted(_CHARACTERS, key=lambda each: (not each.isalnum(), not each.isprintable())):
            found.setdefault(tuple(character in kind for kind in kinds), character)
        return list(found.values())

    @functools.cached_property
    def _looping(self) -> dict[Place, frozenset[Place]]:
        """The places that read and come again: each with those that it leads to and that lead back."""
        leads = {place: {way.to for way in self._steps(place)} & self._reads.keys() for place in self._reads}
        reached = {place: _reachable(place, leads) for place in leads}
        return {
            place: frozenset(other for other in reached[place] if place in reached[other])
            for place in leads
            if place in reached[place]
        }

    @functools.cache  # noqa: B019 - each lives for one question
    def _steps(self, place: Place) -> list[_Way]:
        """Return all ways on: to what reads next, to ends, and to what lies between."""
        found = []
        pending: list[tuple[_Way, frozenset[_Way]]] = [(_Way(place), frozenset())]
        while pending:
            done, again = pending.pop()
            for way in self._ways[done.to]:
                # What is repeated without reading anything is not repeated once more.
                if way in again:
                    continue
                both = done.then(way)
                if both.before and both.behind:
                    found.append(both)
                    if way.to not in self._reads:
                        pending.append((both, again | {way} if way.is_again else again))
        return found

    @functools.cache  # noqa: B019
    def _next(self, state: State) -> dict[str, list[State]]:
        """Return the states that come next, by what they read: one of them twice if two ways lead there."""
        place, last = state
        found: dict[str, list[State]] = {}
        for way in self._steps(place):
            if way.to in self._reads and last in way.before:
                for letter in self._letters:
                    if letter in way.behind and letter in self._reads[way.to]:
                        found.setdefault(letter, []).append((way.to, letter))
        return found

    @functools.cache  # noqa: B019
    def _ends(self, state: State, behind: str, end: Place) -> bool:
        """Say whether the end is there, before such a character."""
        place, last = state
        return any(
            way.to == end and way.is_sure and last in way.before and behind in way.behind
            for way in self._steps(place)
        )

    def _may_fail(self, state: State, piece: str, end: Place) -> bool:
        """Say whether some text leads to no end after a piece of text that leads from a state to itself."""
        first = {state}
        for letter in piece:
            if state[0] != self._search and any(self._ends(each, letter, end) for each in first):
                return False
            first = self._read(first, letter)
        return state[0] == self._search or self._leads_nowhere(frozenset(first), end)

    def _read(self, states: Iterable[State], letter: str) -> set[State]:
        return {after for state in states for after in self._next(state).get(letter, ())}

    @functools.cache  # noqa: B019
    def _leads_nowhere(self, first: frozenset[State], end: Place) -> bool:
        """Say whether some text leads from these states to no end."""
        seen = {first}
        pending = [first]
        for states in pending:
            for letter in [*self._letters, _END]:
                if any(self._ends(each, letter, end) for each in states):
                    continue
                after = frozenset(self._read(states, letter))
                if not after or len(seen) > _MANY:
                    return True
                if after not in seen:
                    seen.add(after)
                    pending.append(after)
        return False

    def repeated_pieces(self) -> Iterator[str]:
        """Yield texts that, repeated, are read in more and more ways, all of which may fail."""
        for p, q in itertools.product(self._looping, repeat=2):
            # What an atomic group has read is not tried anew once the group was left.
            if self._held[p] <= self._held[q] and (between := self._between(p, q)):
                # Inside one, it goes back only until its end is found.
                end = max(self._held[p], default=self._accepted)
                for last in self._letters:
                    if last in self._reads[p] and last in self._reads[q]:
                        yield from self._pieces((p, last), (q, last), between, end)

    def _between(self, p: Place, q: Place) -> set[Place]:
        """Return the places on the way from one to the other, if it reads what both read again and again."""
        onward = self._onward(self._often(p) & self._often(q))
        return {place for place in onward[p] if place == q or q in onward[place]}

    @functools.cache  # noqa: B019
    def _onward(self, letters: frozenset[str]) -> dict[Place, set[Place]]:
        """Return the places that come after each, where all that is read between may be one of these."""
        leads = {
            place: {
                way.to
                for way in self._steps(place)
                if way.to in self._reads and self._reads[way.to] & letters
            }
            for place in self._reads
        }
        return {place: _reachable(place, leads) for place in leads}

    @functools.cache  # noqa: B019
    def _often(self, place: Place) -> frozenset[str]:
        return frozenset().union(*(self._reads[each] for each in self._looping[place]))

    def _pieces(self, p: State, q: State, between: set[Place], end: Place) -> Iterator[str]:
        """Yield texts that lead from ``p`` to ``p``, from ``p`` to ``q``, and from ``q`` to ``q``."""
        if p == q:
            # Two ways from one place to the next lead to ``p`` twice.
            for letter, after in self._again(p, p[0]).items():
                if len(after) > len(set(after)) and self._may_fail(p, letter, end):
                    yield letter
            return
        came = {(p, p, q): ""}
        pending = [(p, p, q)]
        for x, y, z in pending:
            first, last = self._again(x, p[0]), self._again(z, q[0])
            for letter in first.keys() & last.keys() & self._next(y).keys():
                piece = came[x, y, z] + letter
                middle = [after for after in self._next(y)[letter] if after[0] in between]
                for three in itertools.product(first[letter], middle, last[letter]):
                    if three == (p, q, q) and self._may_fail(q, piece, end):
                        yield piece
                    if three not in came:
                        came[three] = piece
                        pending.append(three)

    @functools.cache  # noqa: B019
    def _again(self, state: State, place: Place) -> dict[str, list[State]]:
        """Return the states that come next, by what they read, from which it comes to a place again."""
        looping = self._looping[place]
        again = {
            letter: [after for after in states if after[0] in looping]
            for letter, states in self._next(state).items()
        }
        return {letter: states for letter, states in again.items() if states}


def _set_of(item: Any, flags: int) -> frozenset[str] | None:  # noqa: ANN401 - the parser's own tree
    """Return the characters that an item of a pattern reads, if it reads one."""
    kind, argument = item
    match str(kind):
        case "IN":
            return _read_by(kind, tuple(argument), flags)
        case "LITERAL" | "NOT_LITERAL" | "ANY":
            return _read_by(kind, argument, flags)
    return None


@functools.cache
def _read_by(kind: Any, argument: Any, flags: int) -> frozenset[str]:  # noqa: ANN401
    state = _parser.State()
    state.flags = flags
    item = (kind, list(argument) if isinstance(argument, tuple) else argument)
    one = _compiler.compile(_parser.SubPattern(state, [item]), flags)
    return frozenset(character for character in _CHARACTERS if one.fullmatch(character))


def _reachable(start: Place, leads: dict[Place, set[Place]]) -> set[Place]:
    """Return the places that come after one; that one itself if it comes again."""
    found: set[Place] = set()
    pending = [start]
    while pending:
        new = leads[pending.pop()] - found
        found |= new
        pending.extend(new)
    return found
