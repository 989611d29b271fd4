"""When which certificate is made again, as a pure decision.

A server's certificate can be replaced at any time, since its authority stays. A new authority signs at once;
the former one is still published for a day, for replicas that serve a certificate of it a little longer.
"""

import datetime as dt
from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.admission.certificates import certificates

_DAY: Final = dt.timedelta(days=1)


class Lives(msgspec.Struct, frozen=True):
    """How long things last."""

    authority: dt.timedelta = 3650 * _DAY
    server: dt.timedelta = 365 * _DAY
    overlap: dt.timedelta = _DAY
    """How long a former authority is published after it signed last."""


class State(msgspec.Struct, frozen=True):
    """All that the replicas share."""

    authority: certificates.KeyPair
    server: certificates.KeyPair
    """Signed by the authority."""
    former: bytes | None = None
    """Certificate of the authority before, PEM."""

    @property
    def bundle(self) -> bytes:
        """The certificates that clients should trust, PEM; the authority's first."""
        published = (self.authority.certificate, self.former)
        return b"".join(part.strip() + b"\n" for part in published if part)


def advance(state: State | None, names: Collection[str], now: dt.datetime, lives: Lives) -> State:
    """Return the state as it should be now; the same object if nothing is to be done."""
    if state is None or not has_usable_authority(state, now):
        authority = certificates.make_authority(now, lives.authority)
        return State(authority, certificates.make_server(authority, names, now, lives.server))
    return _with_server(_with_authority(state, now, lives), names, now, lives)


def has_usable_authority(state: State, now: dt.datetime) -> bool:
    """Say whether the state can be kept; otherwise all is made again."""
    return _is_usable(state.authority, now)


def is_usable(state: State, now: dt.datetime) -> bool:
    """Say whether both can be used: the authority, and the server's certificate."""
    return has_usable_authority(state, now) and _is_usable(state.server, now)


def _with_authority(state: State, now: dt.datetime, lives: Lives) -> State:
    facts = certificates.facts(state.authority.certificate)
    if now >= facts.rotate_at():
        # The server's certificate is that of the former authority still: the next step signs it again.
        return State(
            certificates.make_authority(now, lives.authority),
            state.server,
            former=state.authority.certificate,
        )
    made = facts.not_before + certificates.CLOCK_SKEW
    if state.former is not None and now >= made + lives.overlap:
        return structs.replace(state, former=None)
    return state


def _with_server(state: State, names: Collection[str], now: dt.datetime, lives: Lives) -> State:
    if _server_serves(state, names, now):
        return state
    # Replicas of two versions may be called differently: each name that one of them needs is kept.
    all_names = {*names, *_names_of(state.server)}
    return structs.replace(
        state, server=certificates.make_server(state.authority, all_names, now, lives.server)
    )


def _server_serves(state: State, names: Collection[str], now: dt.datetime) -> bool:
    return (
        _is_usable(state.server, now)
        and certificates.is_signed_by(state.server.certificate, state.authority.certificate)
        and _names_of(state.server).issuperset(names)
        and (now < certificates.facts(state.server.certificate).rotate_at() or _ends_with_authority(state))
    )


def _ends_with_authority(state: State) -> bool:
    # Another one would end at the same moment.
    ends = [certificates.facts(pair.certificate).not_after for pair in (state.server, state.authority)]
    return ends[0] >= ends[1]


def _is_usable(pair: certificates.KeyPair, now: dt.datetime) -> bool:
    try:
        # Not when it begins: a slow clock would make this replica replace what the others have just made.
        return now < certificates.facts(pair.certificate).not_after and certificates.belong_together(pair)
    except certificates.CertificateError:
        return False


def _names_of(pair: certificates.KeyPair) -> frozenset[str]:
    try:
        return certificates.facts(pair.certificate).names
    except certificates.CertificateError:
        return frozenset()
