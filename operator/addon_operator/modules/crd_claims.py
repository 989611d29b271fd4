"""Which of several modules' CustomResourceDefinitions of one name counts: the rule, as pure functions.

The one counts that serves newer or more versions, by the version priority of Kubernetes; then the one of a
newer release; then that of the module that runs first. Served versions that only others have are added to it,
so that nothing that a module uses goes away. Source: "Version priority" in "Versions in
CustomResourceDefinitions" of the Kubernetes documentation.
"""

import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from addon_operator.kernel import names
from addon_operator.kernel.json_types import JsonObject, JsonValue
from addon_operator.modules import crd_files

_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STAGES: Final = {"alpha": 1, "beta": 2, None: 3}
_RELEASE: Final = re.compile(r"v?([0-9]+(?:\.[0-9]+)*)(-[0-9A-Za-z.-]+)?(?:\+.*)?")
_PART: Final = re.compile(r"[0-9]+|[A-Za-z]+")
_GENERATOR: Final = "controller-gen.kubebuilder.io/version"
_OF_RELEASE: Final = ("version", "bundle-version")
_LONGEST: Final = 63
"""How many characters a version may have to be read: no label may have more."""

_Key: TypeAlias = tuple[object, ...]


class Claim(msgspec.Struct, frozen=True):
    """What decides about the definition of one module."""

    module: names.ModuleName
    order: int
    """The module's order: of equals that of the lowest counts."""
    digest: str
    """Of its text: equal ones are one definition."""
    served: tuple[str, ...]
    """The versions that it serves, the newest first."""
    release: _Key = ()
    """Sort key of the release that its labels and annotations name."""


class Decision(msgspec.Struct, frozen=True):
    """Which of the claims counts."""

    winner: Claim
    others: tuple[Claim, ...] = ()
    """Those that differ from it, the best first."""
    added: tuple[tuple[str, Claim], ...] = ()
    """Versions that are served besides, each with the claim it is of."""
    refused: frozenset[str] = frozenset()
    """Digests of those that the API server does not take."""


def claim(module: names.ModuleName, order: int, digest: str, crd: crd_files.Crd) -> Claim:
    """Return the claim of a module with that definition; schemas are not needed."""
    served = tuple(api.rpartition("/")[2] for api in crd.apis)
    return Claim(module, order, digest, tuple(sorted(served, key=priority, reverse=True)), _release(crd))


def decide(
    claims: Iterable[Claim], refused: frozenset[str] = frozenset(), not_added: frozenset[str] = frozenset()
) -> Decision:
    """Decide about the definitions of one name; their order makes no difference. There is at least one.

    By their digests: what is ``refused`` counts only if all are; nothing of ``not_added`` is added to others.
    """
    by_order = sorted(claims, key=lambda each: (each.order, each.module))
    # Sorting keeps the order of equals, and a definition that serves all of another and more comes before it.
    best = sorted(by_order, key=lambda each: (_versions(each), each.release), reverse=True)
    winner = next((each for each in best if each.digest not in refused), best[0])
    others = tuple(each for each in best if each.digest != winner.digest)
    without = refused | not_added
    added: dict[str, Claim] = {}
    for other in others:
        for version in other.served:
            if version not in winner.served and other.digest not in without:
                added.setdefault(version, other)
    return Decision(winner, others, tuple(added.items()), without)


def said(name: str, decision: Decision, module: names.ModuleName) -> str:
    """Return a sentence for the module whose definition does not count; empty for others."""
    mine = next((each for each in decision.others if each.module == module), None)
    if mine is None:
        return ""
    winner = decision.winner
    added = ", ".join(version for version, each in decision.added if each.digest == mine.digest)
    besides = f"; {added} of this module is served, too" if added else ""
    return (
        f"CustomResourceDefinition {name} is that of module {winner.module}, not this module's: "
        f"{_reason(winner, mine, decision.refused)}{besides}"
    )


def joined(crd: crd_files.Crd, added: Sequence[tuple[str, crd_files.Crd]]) -> crd_files.Crd:
    """Return the definition with versions of others, which are served but not stored."""
    wanted = {version for version, _ in added}
    versions: list[JsonValue] = [
        {**each, "served": True} if each.get("name") in wanted else each
        for each in crd_files.versions_of(crd.spec)
    ]
    for version, other in added:
        if version not in crd.versions:
            versions += ({**each, "storage": False} for each in _named(other, version))
    return dataclasses.replace(crd, spec={**crd.spec, "versions": versions})


def priority(version: str) -> tuple[int, ...]:
    """Return the sort key of an API version, highest for what Kubernetes prefers: v2, v1, v1beta1, others."""
    matched = _VERSION.fullmatch(version) if len(version) <= _LONGEST else None
    if matched is None:
        # By the alphabet, the first one is preferred, and of two that begin alike the shorter one.
        return (0, *(-ord(letter) for letter in version[:_LONGEST]), 1)
    return (_STAGES[matched[2]], int(matched[1]), int(matched[3] or 0))


def _versions(of: Claim) -> tuple[tuple[int, ...], ...]:
    return tuple(map(priority, of.served))


def _reason(winner: Claim, mine: Claim, refused: frozenset[str]) -> str:
    if mine.digest in refused:
        return "the API server refuses this one"
    if winner.served != mine.served:
        told = f"({', '.join(winner.served)} against {', '.join(mine.served) or 'none'})"
        return f"it serves newer or more versions {told}"
    if winner.release != mine.release:
        return "it is of a newer release"
    return "of equals that of the module that runs first counts"


def _named(crd: crd_files.Crd, version: str) -> Iterator[JsonObject]:
    return (each for each in crd_files.versions_of(crd.spec) if each.get("name") == version)


def _release(crd: crd_files.Crd) -> _Key:
    """Return the newest release that labels and annotations name; then the version of the generator."""
    said_by = {**crd.labels, **crd.annotations}
    own = [
        _number(value)
        for key, value in said_by.items()
        if key != _GENERATOR and key.rpartition("/")[2] in _OF_RELEASE
    ]
    return (max(own, default=()), _number(said_by.get(_GENERATOR)))


def _number(value: JsonValue) -> _Key:
    """Return the sort key of a version such as ``v1.2.0-rc.1``; that of what is none is lower."""
    matched = _RELEASE.fullmatch(value) if isinstance(value, str) and len(value) <= _LONGEST else None
    if matched is None:
        return ()
    numbers = [int(part) for part in matched[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    before = tuple((not each.isdigit(), each.zfill(_LONGEST)) for each in _PART.findall(matched[2] or ""))
    return (tuple(numbers), not before, before)
