"""Ranges of versions (``>=1.29 <1.34``), as ``kubeVersion`` of a chart has them.

Source: "Checking Version Constraints" of Masterminds/semver, which Helm uses. It differs from npm's ranges in
commas, spaces and some operators; those are written as npm's here, and :mod:`semantic_version` does the rest.
"""

import itertools
import re
from typing import TYPE_CHECKING, Final

from addon_operator.kernel import errors

if TYPE_CHECKING:
    # Imported when a range is read: few modules have one, and it takes time to load.
    import semantic_version

_PLAIN: Final = r"(?:0|[1-9][0-9]*)"
_NUMBER: Final = rf"(?:{_PLAIN}|[xX*])"
_VERSION: Final = (
    rf"v?(?P<numbers>{_NUMBER}(?:\.{_NUMBER}){{0,2}})(?P<rest>-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"
)
_CLAUSE: Final = re.compile(rf"(?P<operator>!=|>=|=>|<=|=<|~>|[=<>~^]?)\s*{_VERSION}")
_HYPHEN: Final = re.compile(r"(?<!\s)\s+-\s+")
_SEPARATOR: Final = re.compile(r"\s*,\s*|\s+|$")
_SAME: Final = {"=>": ">=", "=<": "<=", "~>": "~"}
_PARTS: Final = 3
_CLUSTER: Final = re.compile(rf"v?{_PLAIN}\.{_PLAIN}(?:\.{_PLAIN})?(?:[-+][0-9A-Za-z.+-]+)?")
MAX_CHARS: Final = 256
"""How long a range may be."""


class VersionRangeError(errors.ConfigurationError):
    """A text is not a range of versions."""


def check(text: str) -> None:
    """Raise :class:`VersionRangeError` for a text that is not a range."""
    if len(text) > MAX_CHARS:
        raise VersionRangeError(f"the range has {len(text)} characters, and may have {MAX_CHARS}")
    for alternative in text.split("||"):
        _read(alternative, text)


def is_cluster_version(text: str) -> bool:
    """Say whether a text is what a cluster calls its version, such as ``v1.34.0`` or ``v1.30.4+k3s1``."""
    return len(text) <= MAX_CHARS and _CLUSTER.fullmatch(text) is not None


def fits(text: str, version: str) -> bool:
    """Say whether the version is in the range.

    Of a version such as ``v1.31.2-gke.1200`` or ``v1.30.4+k3s1`` its three numbers count.
    """
    import semantic_version

    release = semantic_version.Version.coerce(version.removeprefix("v")).truncate()
    for alternative in text.split("||"):
        allowed, excluded = _read(alternative, text)
        if release in allowed and not any(release in each for each in excluded):
            return True
    return False


def _read(alternative: str, whole: str) -> "tuple[semantic_version.NpmSpec, list[semantic_version.NpmSpec]]":
    """Read what is allowed, and what is excluded from that."""
    import semantic_version

    try:
        if len(ends := _HYPHEN.split(alternative.strip())) > 1:
            return semantic_version.NpmSpec(" - ".join(_npm(*_only_version(end)) for end in ends)), []
        allowed: list[tuple[str, str]] = []
        excluded: list[tuple[str, str]] = []
        for operator, version in _clauses(alternative.strip()):
            (excluded if operator == "!=" else allowed).append((operator, version))
        return (
            semantic_version.NpmSpec(" ".join(itertools.starmap(_npm, allowed)) or "*"),
            [semantic_version.NpmSpec(_npm("", version)) for _, version in excluded],
        )
    except ValueError:
        raise VersionRangeError(
            f"{whole!r} is not a range of versions; write one such as >=1.29, ^1.30, 1.31.x or >=1.29 <1.34"
        ) from None


def _clauses(text: str) -> list[tuple[str, str]]:
    """Split into operators and versions; raises :class:`ValueError`."""
    clauses: list[tuple[str, str]] = []
    position = 0
    while position < len(text) or not clauses:
        clause = _CLAUSE.match(text, position)
        separator = clause and _SEPARATOR.match(text, clause.end())
        if clause is None or separator is None:
            raise ValueError(text)
        clauses.append((clause["operator"], _full(clause)))
        position = separator.end()
    return clauses


def _only_version(text: str) -> tuple[str, str]:
    clauses = _clauses(text)
    if len(clauses) != 1 or clauses[0][0]:
        raise ValueError(text)
    return clauses[0]


def _full(clause: re.Match[str]) -> str:
    """Write the version in full: npm wants all three numbers before ``-0``."""
    numbers, rest = clause["numbers"], clause["rest"] or ""
    return numbers + ".0" * (_PARTS - 1 - numbers.count(".") if rest else 0) + rest


def _npm(operator: str, version: str) -> str:
    return _SAME.get(operator, operator) + version
