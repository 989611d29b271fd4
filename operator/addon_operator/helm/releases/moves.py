"""Keeps calls of Helm apart of which one deletes what the other one has from then on.

What may be deleted of what a release loses is decided before the call, and holds until it ends: Helm looks at
marks that a release takes away which gains the object. So each call says what its release gains and loses
before anything is decided, and one that crosses another one under way comes later. It has said nothing while
it waits, so no two wait for each other.
"""

import asyncio
from collections.abc import Collection, Iterable

import msgspec

from addon_operator.helm import helm_errors, places
from addon_operator.kernel import names
from addon_operator.modules import manifests


class _Call(msgspec.Struct, frozen=True):
    gained: frozenset[manifests.Identity]
    lost: frozenset[manifests.Identity]

    def crosses(self, other: "_Call") -> bool:
        return not (self.gained.isdisjoint(other.lost) and self.lost.isdisjoint(other.gained))


class Moves:
    """What releases gain and lose by the calls of Helm that are under way."""

    def __init__(self, where: places.ReleaseLocations) -> None:
        self._places = where
        self._calls: dict[names.ModuleName, _Call] = {}
        self.ended = asyncio.Event()
        """Set when a call ends; then there is another one for the next."""

    @property
    def under_way(self) -> frozenset[names.ModuleName]:
        """Whose calls may be in the way of others."""
        return frozenset(self._calls)

    def begin(
        self,
        module: names.ModuleName,
        gained: Collection[manifests.ManifestResource],
        lost: Collection[manifests.ManifestResource],
    ) -> None:
        """Say what a call that is about to begin changes; raises :class:`.LeavingError` if it has to wait."""
        self.end(module)
        call = _Call(self._identities(module, gained), self._identities(module, lost))
        for other, each in self._calls.items():
            if each.crosses(call):
                moving = [
                    str(one)
                    for one in (*gained, *lost)
                    if not self._identities(module, [one]).isdisjoint(each.gained | each.lost)
                ]
                text = f"waits until Helm is done with release {self._places.title(other)}"
                raise helm_errors.LeavingError(module, f"{text}: {names.listed(moving, 3)} moves")
        self._note(module, call)

    def begin_removal(
        self, module: names.ModuleName, lost: Collection[manifests.ManifestResource]
    ) -> frozenset[manifests.ManifestResource]:
        """Say what a removal that is about to begin deletes: all but what others gain just now, and it gives.

        A removal waits for nobody.
        """
        self.end(module)
        gained = self.gained(module, lost)
        going = [each for each in lost if each not in gained]
        self._note(module, _Call(frozenset(), self._identities(module, going)))
        return gained

    def gained(
        self, module: names.ModuleName, resources: Iterable[manifests.ManifestResource]
    ) -> frozenset[manifests.ManifestResource]:
        """Return which of the objects other releases gain just now."""
        gained = frozenset[manifests.Identity]().union(
            *(each.gained for name, each in self._calls.items() if name != module)
        )
        return frozenset(
            each for each in resources if not gained.isdisjoint(self._identities(module, [each]))
        )

    def end(self, module: names.ModuleName) -> None:
        """Note that a call has ended, and all that depends on it is done."""
        if self._calls.pop(module, None) is not None:
            self.ended.set()
            self.ended = asyncio.Event()

    def _note(self, module: names.ModuleName, call: _Call) -> None:
        if call.gained or call.lost:
            self._calls[module] = call

    def _identities(
        self, module: names.ModuleName, resources: Iterable[manifests.ManifestResource]
    ) -> frozenset[manifests.Identity]:
        """Return how objects are called in all releases; without a namespace they may be in none."""
        namespace = self._places.of(module).namespace
        found = set[manifests.Identity]()
        for each in resources:
            found.add(each.identity(namespace))
            if each.namespace is None:
                found.add(each.identity(""))
        return frozenset(found)
