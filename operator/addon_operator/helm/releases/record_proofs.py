"""Which records are the operator's own: a keyed digest on each, and what is remembered of its release.

Whoever edits Secrets in the namespace of a release can write records, and labels. What such a record lists,
Helm would delete or run with the operator's rights.
"""

import secrets
from typing import Final

from addon_operator.helm import helm_errors, memory, places
from addon_operator.helm.releases import record_format
from addon_operator.modules import release

_LIFE_BYTES: Final = 6


class RecordProofs:
    """Tells records of the operator from those that others wrote or changed."""

    def __init__(self, remembered: memory.Memory, where: places.ReleaseLocations) -> None:
        self._memory = remembered
        self._places = where
        self._foreign: set[tuple[str, int]] = set()

    def begin(self, name: str) -> None:
        """Let the release begin to live, if it does not."""
        if not self._memory.of(self._places.of(name)).life:
            self._memory.change(self._places.of(name), life=secrets.token_urlsafe(_LIFE_BYTES))

    def digest(self, name: str, number: int, decoded: record_format.Release) -> str:
        """Return the digest of a revision's record; takes a moment for one of megabytes."""
        place = self._places.of(name)
        life = self._memory.of(place).life
        return self._memory.digest([*place, life, str(number), *record_format.proven(decoded)])

    def check(self, found: release.Revision, digest: str) -> None:
        """Raise :class:`.ForeignRecordError` for a record that is not the operator's own as it is.

        ``found`` has the labels that the record has now, and ``digest`` is that of what it holds.
        """
        if not self._memory.is_known:
            return
        why = ""
        if release.DIGEST_LABEL not in found.labels:
            why = "it has no digest of this operator"
        elif found.labels[release.DIGEST_LABEL] != digest:
            why = "its digest is that of another content or revision"
        elif found.status == release.DEPLOYED:
            why = self._outdated(found, digest)
        if why:
            self._foreign.add((found.release, found.number))
            title = self._places.title(found.release)
            raise helm_errors.ForeignRecordError(
                f"revision {found.number} of release {title} was made or changed by others than this "
                f"operator ({why}): nothing is done by its record"
            )
        self._foreign.discard((found.release, found.number))

    def _outdated(self, found: release.Revision, digest: str) -> str:
        """Say why a deployed revision of ours is not the one that was deployed last; learn of a later one."""
        place = self._places.of(found.release)
        known = self._memory.of(place)
        is_under_way = known.call is not None and known.call.number == found.number
        if found.number in known.failed and not is_under_way:
            return "it failed"
        if found.number < known.deployed:
            return f"revision {known.deployed} was deployed after it"
        if found.number > known.deployed:
            last = max(known.last, found.number)
            self._memory.change(place, last=last, deployed=found.number, digests=(digest,))
        elif known.digests and digest not in known.digests:
            return "it is an earlier state of that revision"
        return ""

    async def expect(self, found: release.Revision, digest: str) -> None:
        """Remember what the digest of the deployed revision is about to be.

        Raises what :meth:`.Memory.write` raises.
        """
        place = self._places.of(found.release)
        known = self._memory.of(place)
        if found.number == known.deployed and known.digests:
            self._memory.change(place, digests=(known.digests[-1], digest))
            await self._memory.write()

    def is_foreign(self, found: release.Revision) -> bool:
        """Say whether others made or changed a revision, as far as that is known without reading it."""
        if not self._memory.is_known:
            return False
        return release.DIGEST_LABEL not in found.labels or (found.release, found.number) in self._foreign
