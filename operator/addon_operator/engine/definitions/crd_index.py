"""What CustomResourceDefinitions the modules bring, by their digests, and whose counts if several bring one.

Texts are megabytes: they are read when something is to be decided or applied, and not kept.
"""

import collections
import contextlib
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from addon_operator.helm.charts import subcharts
from addon_operator.kernel import errors, names
from addon_operator.kernel.json_types import JsonObject
from addon_operator.kube.objects import crds
from addon_operator.loading import crd_sources
from addon_operator.modules import crd_claims, crd_files, model

_SHORT: Final = 12
"""How much of a digest tells that a version changed."""
Chart: TypeAlias = Callable[[model.Module], subcharts.Subchart | None]


class _Brought(msgspec.Struct, frozen=True):
    module: model.Module
    digests: Mapping[str, str]
    """By the names of the definitions."""
    is_mixed: bool = False
    """Whether its charts may have something else beside them."""


class CrdIndex:
    """Remembers what the modules bring; threads may ask."""

    def __init__(
        self, sources: crd_sources.CrdSources, digest: Callable[[str], str], chart: Chart | None = None
    ) -> None:
        """``chart`` returns the module's chart, if others within it bring definitions."""
        self._sources = sources
        self._digest = digest
        self._chart = chart or sources.chart_with_others
        self._brought: dict[names.ModuleName, _Brought] = {}
        self._bringing: dict[str, dict[names.ModuleName, _Brought]] = {}
        self._claims: dict[tuple[names.ModuleName, str], crd_claims.Claim] = {}
        self._refused: dict[str, set[str]] = collections.defaultdict(set)
        self._not_added: dict[str, set[str]] = collections.defaultdict(set)

    def look(self, module: model.Module) -> list[str]:
        """Learn what the module brings; returns what is doubtful.

        Of the module's own definitions the last counts, of those of charts the first.
        Raises what reading them raises.
        """
        try:
            digests, doubts, is_mixed = self._read_digests(module)
        except Exception:
            self.forget([module.name])
            raise
        if digests != self.brought(module.name):
            self.forget([module.name])
        brought = self._brought[module.name] = _Brought(module, digests, is_mixed)
        for name in digests:
            self._bringing.setdefault(name, {})[module.name] = brought
        return doubts

    def _read_digests(self, module: model.Module) -> tuple[dict[str, str], list[str], bool]:
        digests: dict[str, str] = {}
        places: dict[str, str] = {}
        doubts: list[str] = []
        is_mixed = False
        for place, text, is_own in self._sources.texts(module, self._chart(module)):
            outline = crd_files.outline(text)
            is_mixed |= outline is None and not is_own
            for name, where, digest in self._outlined(place, text, outline, is_strict=is_own):
                if name in digests and not is_own:
                    continue
                if name in digests:
                    doubts.append(crd_files.defined_twice(name, where, places[name]))
                digests[name], places[name] = digest, where
        return digests, doubts, is_mixed

    def forget(self, modules: Collection[names.ModuleName]) -> None:
        """Forget what these modules bring."""
        for module in modules:
            for name in self.brought(module):
                self._bringing[name].pop(module, None)
            self._brought.pop(module, None)
        for key in [key for key in list(self._claims) if key[0] in modules]:
            self._claims.pop(key, None)

    def knows(self, module: str) -> bool:
        """Say whether it was looked at, and could be read."""
        return module in self._brought

    def brought(self, module: names.ModuleName) -> Mapping[str, str]:
        """Return the definitions of the module by name, each with a digest."""
        digests = self._brought.get(module)
        return digests.digests if digests is not None else {}

    def modules(self, name: str) -> list[model.Module]:
        """Return the modules that bring the definition, in run order."""
        return [each.module for each in self._claimants(name)]

    def _claimants(self, name: str) -> list[_Brought]:
        claimants = list(self._bringing.get(name, {}).values())
        return sorted(claimants, key=lambda each: each.module.run_order) if len(claimants) > 1 else claimants

    def decide(self, name: str) -> crd_claims.Decision:
        """Decide whose definition of that name counts; what the API server refused counts last."""
        bringing = self._claimants(name)
        plain = [_plain(each, name) for each in bringing]
        if len({each.digest for each in plain}) == 1:
            return crd_claims.Decision(plain[0])
        claims = [claim for each in bringing if (claim := self._claim(each, name)) is not None]
        refused = (frozenset(claim.get(name, ())) for claim in (self._refused, self._not_added))
        return crd_claims.decide(claims or plain, *refused)

    def said(self, module: names.ModuleName) -> Iterator[tuple[str, str]]:
        """Yield the name of each definition of the module that does not count, and a sentence."""
        for name in self.brought(module):
            if sentence := crd_claims.said(name, self.decide(name), module):
                yield name, sentence

    def refuse(self, name: str, decision: crd_claims.Decision) -> None:
        """Let what the API server does not take give way: first what was added, and then the definition."""
        if decision.added:
            self._not_added[name].update(each.digest for _, each in decision.added)
        else:
            self._refused[name].add(decision.winner.digest)
            self._not_added.pop(name, None)

    def forgive(self, name: str, digest: str) -> None:
        """Let a definition be tried again."""
        for refused in (self._refused, self._not_added):
            if name in refused:
                refused[name].discard(digest)

    def note(
        self, name: str, decision: crd_claims.Decision, live: crds.Applied | None = None
    ) -> crds.Applied:
        """Return what is to be noted of the definition; what modules added that are gone stays."""
        owners = {module.name for module in self.modules(name)}
        added = {f"{each.module}/{version}/{each.digest[:_SHORT]}" for version, each in decision.added}
        before = live if live is not None else crds.Applied()
        added |= {each for each in before.added if each.partition("/")[0] not in owners}
        winner = decision.winner
        return crds.Applied(winner.digest, winner.module, before.release, frozenset(added))

    def read(self, module: names.ModuleName, wanted: Collection[str]) -> dict[str, crd_files.Crd]:
        """Return these definitions of a module, read whole with those beside them in their files.

        Raises what reading them raises.
        """
        definitions: dict[str, crd_files.Crd] = {}
        for place, text, is_own in self._texts(module):
            outline = crd_files.outline(text)
            if outline is None or not outline.keys().isdisjoint(wanted):
                _put(definitions, crd_files.parse(text, place, is_strict=is_own), wanted, is_own=is_own)
        return definitions

    def joined(
        self, wanted: Iterable[str], known: Mapping[str, crd_files.Crd], of: str
    ) -> dict[str, tuple[crd_claims.Decision, crd_files.Crd]]:
        """Return the definitions that count, with what is added; what cannot be read gives way to the next.

        ``known`` are those of the module ``of``; those of others are read.
        """
        decided: dict[str, tuple[crd_claims.Decision, crd_files.Crd]] = {}
        pending = {name: self.decide(name) for name in wanted}
        while pending:
            read = self._read_all(pending, known, of)
            for name, decision in pending.items():
                if (crd := read[decision.winner.module].get(name)) is not None:
                    others = [(version, read[each.module].get(name)) for version, each in decision.added]
                    added = [(version, other) for version, other in others if other is not None]
                    decided[name] = decision, crd_claims.joined(crd, added)
            unread = pending.keys() - decided.keys()
            for name in unread:
                self._refused[name].add(pending[name].winner.digest)
            pending = {name: next_ for name in unread if (next_ := self._next(name)) is not None}
        return decided

    def _next(self, name: str) -> crd_claims.Decision | None:
        decided = self.decide(name)
        return None if decided.winner.digest in self._refused[name] else decided

    def _read_all(
        self, decisions: Mapping[str, crd_claims.Decision], known: Mapping[str, crd_files.Crd], of: str
    ) -> dict[names.ModuleName, Mapping[str, crd_files.Crd]]:
        wanted: dict[names.ModuleName, set[str]] = {}
        for name, decision in decisions.items():
            for each in (decision.winner, *(each for _, each in decision.added)):
                wanted.setdefault(each.module, set()).add(name)
        read: dict[names.ModuleName, Mapping[str, crd_files.Crd]] = {}
        for module, of_it in wanted.items():
            read[module] = {}
            # What is wrong with another module's files is said by that one.
            with contextlib.suppress(errors.AddonOperatorError, OSError):
                read[module] = known if module == of else self._parts(module, of_it)
        return read

    def _claim(self, brought: _Brought, name: str) -> crd_claims.Claim | None:
        """Return the claim; all those of the module about what others bring, too, are read at once."""
        module, digests = brought.module, brought.digests
        known = self._claims.get((module.name, name))
        if known is None or (known.digest, known.order) != (digests[name], module.order):
            shared = [each for each in digests if len(self._bringing.get(each, ())) > 1]
            try:
                read = self._parts(module.name, shared, brief=True)
            except (errors.AddonOperatorError, OSError):
                return None  # The module's own run says what is wrong.
            for each, crd in read.items():
                claim = crd_claims.claim(module.name, module.order, digests[each], crd)
                self._claims[module.name, each] = claim
        return self._claims.get((module.name, name))

    def _parts(
        self, module: names.ModuleName, wanted: Collection[str], *, brief: bool = False
    ) -> dict[str, crd_files.Crd]:
        """Return these definitions, read without those beside them; ``brief``: without schemas, too."""
        crds: dict[str, crd_files.Crd] = {}
        for place, text, is_own in self._texts(module):
            outline = crd_files.outline(text)
            parts = [text] if outline is None else [part for name, part in outline.items() if name in wanted]
            for part in parts:
                read = crd_files.without_schemas(part) if brief else part
                _put(crds, crd_files.parse(read, place, is_strict=is_own), wanted, is_own=is_own)
        return crds

    def is_mixed(self, name: names.ModuleName) -> bool:
        """Say whether charts of the module may have something else than definitions in ``crds/``."""
        return (brought := self._brought.get(name)) is not None and brought.is_mixed

    def beside(self, name: names.ModuleName) -> list[JsonObject]:
        """Return what charts of the module have in ``crds/`` beside definitions."""
        return [
            each
            for place, text, is_own in self._texts(name)
            if not is_own
            for each in crd_files.others(text, place)
        ]

    def _texts(self, name: names.ModuleName) -> Iterator[tuple[str, str, bool]]:
        if (brought := self._brought.get(name)) is not None:
            yield from self._sources.texts(brought.module, self._chart(brought.module))

    def _outlined(
        self, place: str, text: str, outline: Mapping[str, str] | None, *, is_strict: bool
    ) -> Iterator[tuple[str, str, str]]:
        """Yield name, place and digest of each definition of a file."""
        if outline is not None:
            yield from ((name, place, self._digest(part)) for name, part in outline.items())
            return
        for crd in crd_files.parse(text, place, is_strict=is_strict):
            yield crd.name, crd.source, self._digest(f"{crd.name}\0{text}")


def shared(
    sources: crd_sources.CrdSources, modules: Sequence[model.Module]
) -> Iterator[tuple[model.Module, str, str]]:
    """Yield modules whose definitions do not count, because others bring them, too: with name and sentence.

    What cannot be read brings nothing.
    """
    index = CrdIndex(sources, lambda text: hashlib.sha256(text.encode()).hexdigest())
    for module in modules:
        with contextlib.suppress(errors.AddonOperatorError, OSError):
            index.look(module)
    for module in modules:
        for name, sentence in index.said(module.name):
            yield module, name, sentence


def _plain(brought: _Brought, name: str) -> crd_claims.Claim:
    return crd_claims.Claim(brought.module.name, brought.module.order, brought.digests[name], ())


def _put(
    definitions: dict[str, crd_files.Crd],
    read: Iterable[crd_files.Crd],
    wanted: Collection[str],
    *,
    is_own: bool,
) -> None:
    """Add what is wanted: of the module's own definitions the last counts, of those of charts the first."""
    for crd in read:
        if crd.name in wanted and (is_own or crd.name not in definitions):
            definitions[crd.name] = crd
