"""The ``format`` keyword, as the Kubernetes API server checks it; unknown formats are ignored."""

import base64
import binascii
import datetime as dt
import ipaddress
import re
import urllib.parse
import uuid
from collections.abc import Callable, Mapping
from typing import Final

import jsonschema

_HOSTNAME: Final = re.compile(
    r"(?=.{1,253}\Z)[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?)*\.?"
)
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_MAC: Final = re.compile(
    r"[0-9a-fA-F]{2}(([:-])[0-9a-fA-F]{2})(\2[0-9a-fA-F]{2}){4}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}"
)
_DURATION: Final = re.compile(
    r"[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h|d|w))*)"
)
_DATE_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[-+][0-9]{2}:[0-9]{2})"
)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], object]:
    def check(text: str) -> object:
        return pattern.fullmatch(text)

    return check


def parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether a text is one that ``parse`` takes, which raises :class:`ValueError` for others."""

    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _base64(text: str) -> None:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _date(text: str) -> None:
    dt.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=dt.UTC)


def _date_time(text: str) -> None:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    _date(text[:10])


def _uri(text: str) -> None:
    if not urllib.parse.urlsplit(text).scheme or " " in text:
        raise ValueError(text)


def _cidr(text: str) -> None:
    if "/" not in text:
        raise ValueError(text)
    ipaddress.ip_interface(text)


_TEXT_FORMATS: Final[Mapping[str, Callable[[str], object]]] = {
    "byte": parses(_base64),
    "cidr": parses(_cidr),
    "date": parses(_date),
    "date-time": parses(_date_time),
    "datetime": parses(_date_time),
    "duration": _matches(_DURATION),
    "email": _matches(_EMAIL),
    "hostname": _matches(_HOSTNAME),
    "ip": parses(ipaddress.ip_address),
    "ipv4": parses(ipaddress.IPv4Address),
    "ipv6": parses(ipaddress.IPv6Address),
    "mac": _matches(_MAC),
    "uri": parses(_uri),
    "uuid": parses(uuid.UUID),
}
_INTEGER_BITS: Final = {"int32": 31, "int64": 63}


def checker() -> jsonschema.FormatChecker:
    """A checker of all known formats; each applies only to values of its type."""
    formats = jsonschema.FormatChecker(formats=())
    for name, check in _TEXT_FORMATS.items():
        formats.checks(name)(_only_text(check))
    for name, bits in _INTEGER_BITS.items():
        formats.checks(name)(_only_integer(bits))
    return formats


def _only_text(check: Callable[[str], object]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or bool(check(value))


def _only_integer(bits: int) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, int) or -(2**bits) <= value < 2**bits
