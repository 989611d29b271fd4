"""What a setting's text may look like and what it means.

Only form is checked here: whether a directory exists is the business of whoever opens it.
"""

import ipaddress
import math
import pathlib
import re
import urllib.parse
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

import msgspec
from msgspec import structs

from addon_operator.kernel import clock, errors, json_types, names, quantities
from addon_operator.podpreset import volume_types

if TYPE_CHECKING:
    from addon_operator.modules import windows
    from addon_operator.modules.health import health_config

T = TypeVar("T")
Plain = json_types.JsonValue


class SettingType(msgspec.Struct, Generic[T], frozen=True):
    """How one kind of setting is read, described and shown."""

    parse: Callable[[str], T]
    """Gives the value; raises ``ValueError`` or a ``ConfigurationError`` for what is not allowed."""
    allowed: str
    """What is allowed, as it ends the sentence "… is not allowed: give …"."""
    metavar: str
    """Placeholder in ``--help``."""
    plain: Callable[[T], Plain] = lambda value: cast("Plain", value)
    """The value as JSON."""
    in_force: Callable[[T], T] = lambda value: value
    """The value as an operator uses it: paths are absolute."""
    is_switch: bool = False
    """Whether the bare flag, without a value, means ``true``."""


def _optional(kind: SettingType[T]) -> SettingType[T | None]:
    """Let an empty text mean ``None``."""
    return SettingType(
        lambda text: kind.parse(text) if text else None,
        kind.allowed,
        kind.metavar,
        lambda value: None if value is None else kind.plain(value),
        lambda value: None if value is None else kind.in_force(value),
    )


# --- texts

_METRIC_PREFIX = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)?")
_HOST = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?\.?")


def _matching(fits: Callable[[str], object]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not fits(text):
            raise ValueError
        return text

    return parse


def _address(text: str) -> str:
    bare = text.removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        # Digits and dots that are no IP address would be looked up as a name, and never found.
        if re.fullmatch(r"[0-9.]+", text):
            raise
        return _matching(_HOST.fullmatch)(text)


def _server(text: str) -> str:
    url = urllib.parse.urlsplit(text if "://" in text else f"https://{text}")
    # Reading the port checks it.
    if url.scheme not in ("http", "https") or url.port == 0 or re.search(r"\s", text):
        raise ValueError
    _address(url.hostname or "")
    return urllib.parse.urlunsplit(url).rstrip("/")


def _webhook_url(text: str) -> str:
    url = urllib.parse.urlsplit(_server(text))
    if url.scheme != "https" or url.username is not None or url.query or url.fragment:
        raise ValueError
    return _server(text)


def _label(what: str) -> SettingType[str]:
    allowed = f"the name of {what} (lower-case letters, digits, dashes)"
    return SettingType(_matching(names.is_dns_label), allowed, "NAME")


def _subdomain(what: str) -> SettingType[str]:
    allowed = f"the name of {what} (lower-case letters, digits, dashes, dots)"
    return SettingType(_matching(names.is_subdomain), allowed, "NAME")


NAMESPACE: Final = _label("a namespace")
SERVICE: Final = _label("a Service")
CONFIG_MAP: Final = _subdomain("a ConfigMap")
OPTIONAL_SECRET: Final = _optional(_subdomain("a Secret"))
LEASE: Final = _subdomain("a Lease")
OPTIONAL_SUBDOMAIN: Final = _optional(_subdomain("an object"))
METRIC_PREFIX: Final = SettingType(
    _matching(_METRIC_PREFIX.fullmatch), "letters, digits, underscores and colons, no digit first", "PREFIX"
)
ADDRESS: Final = SettingType(_address, "an IP address or a host name, without a port", "ADDRESS")
OPTIONAL_TEXT: Final = _optional(SettingType(str, "a text", "TEXT"))
OPTIONAL_SERVER: Final = _optional(SettingType(_server, "a URL such as https://10.0.0.1:6443", "URL"))
OPTIONAL_WEBHOOK_URL: Final = _optional(
    SettingType(_webhook_url, "a URL such as https://10.0.0.1:9651, without user, query and fragment", "URL")
)


# --- paths


def _path(text: str) -> pathlib.Path:
    if not text or "\0" in text:
        raise ValueError
    return pathlib.Path(text)


def _paths(text: str) -> tuple[pathlib.Path, ...]:
    found = tuple(_path(part) for part in text.split(":") if part)
    if not found:
        raise ValueError
    return found


PATH: Final = SettingType(_path, "a path", "PATH", str, pathlib.Path.absolute)
PATHS: Final = SettingType(
    _paths,
    "one or more paths separated by colons",
    "PATHS",
    lambda paths: list(map(str, paths)),
    lambda paths: tuple(path.absolute() for path in paths),
)
OPTIONAL_PATH: Final = _optional(PATH)


# --- numbers

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def integer(at_least: int, at_most: int | None = None) -> SettingType[int]:
    """Return a decimal integer within bounds, both included."""

    def parse(text: str) -> int:
        if _INTEGER.fullmatch(text) is None or not at_least <= int(text) <= (at_most or int(text)):
            raise ValueError
        return int(text)

    bounds = f"{at_least} or more" if at_most is None else f"{at_least} to {at_most}"
    return SettingType(parse, f"a whole number, {bounds}", "N")


def _rate(text: str) -> float:
    value = float(text)
    if not math.isfinite(value) or value < 0:
        raise ValueError
    return value


_MEMORY = SettingType(quantities.memory, "a size of 128Mi or more", "SIZE", quantities.mebibytes)
OPTIONAL_MEMORY: Final = _optional(_MEMORY)
PORT: Final = integer(0, 65535)
RATE: Final = SettingType(
    _rate,
    "a number of requests per second, 0 for no limit",
    "N",
    lambda value: int(value) if value.is_integer() else value,
)


# --- durations


def _duration(fits: Callable[[float], bool], allowed: str) -> SettingType[float]:
    def parse(text: str) -> float:
        seconds = clock.parse_duration(text)
        if not fits(seconds):
            raise ValueError
        return seconds

    return SettingType(parse, f"a duration {allowed}", "DURATION", clock.duration_text)


DURATION: Final = _duration(lambda seconds: seconds >= 0, "such as 30s, 20m or 1h30m, 0 or more")
POSITIVE_DURATION: Final = _duration(lambda seconds: seconds > 0, "such as 30s, 20m or 1h30m, more than 0")
WHOLE_SECONDS: Final = _duration(
    lambda seconds: seconds >= 1 and seconds.is_integer(), "of whole seconds such as 15s, 1s or more"
)


# --- choices, lists, labels

_BOOLEANS: Final[Mapping[str, bool]] = MappingProxyType(
    dict.fromkeys(("true", "yes", "on", "1", "t", "y"), True)
    | dict.fromkeys(("false", "no", "off", "0", "f", "n"), False)
)


def _boolean(text: str) -> bool:
    if (value := _BOOLEANS.get(text.strip().lower())) is None:
        raise ValueError
    return value


BOOLEAN: Final = SettingType(
    _boolean, "true or false (or yes, no, on, off, 1, 0)", "[true|false]", is_switch=True
)


def choice(*names: str, aliases: Mapping[str, str] = MappingProxyType({})) -> SettingType[str]:
    """Return one of several words, in any case; an alias stands for one of them."""

    def parse(text: str) -> str:
        word = text.strip().lower()
        word = aliases.get(word, word)
        if word not in names:
            raise ValueError
        return word

    return SettingType(parse, f"one of {', '.join(names)}", f"[{'|'.join(names)}]")


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def choices(*names: str) -> SettingType[tuple[str, ...]]:
    """Return any of several words, in any case, separated by commas; ``none`` alone for none of them."""

    def parse(text: str) -> tuple[str, ...]:
        words = _items(text.lower())
        if words == ("none",):
            return ()
        if not words or not set(words) <= set(names):
            raise ValueError
        return tuple(name for name in names if name in words)

    allowed = f"some of {', '.join(names)}, separated by commas, or none"
    return SettingType(parse, allowed, ",".join(names), lambda words: list(words) or "none")


def _items_that(
    fits: Callable[[str], object], allowed: str, metavar: str = "A,B"
) -> SettingType[tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        found = _items(text)
        if not all(map(fits, found)):
            raise ValueError
        return found

    return SettingType(parse, f"{allowed}separated by commas", metavar, list)


_VARIABLE = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*")
LIST: Final = _items_that(bool, "items ")
RELEASES: Final = _items_that(
    names.is_release_name, "whole names of releases (lower-case letters, digits, dashes, dots), "
)
VARIABLES: Final = _items_that(
    _VARIABLE.fullmatch, "names of variables, with * for any characters, ", "A,B_*"
)
_ALL_VOLUME_TYPES: Final = tuple(sorted(volume_types.SOURCE_NAMES, key=str.lower))


def _volume_types(text: str) -> tuple[str, ...]:
    names = _items(text)
    if names == ("all",):
        return _ALL_VOLUME_TYPES
    if not names or not volume_types.SOURCE_NAMES.issuperset(names):
        raise ValueError
    return tuple(dict.fromkeys(names))


VOLUME_TYPES: Final = SettingType(
    _volume_types,
    f"all, or types of volumes separated by commas, of {', '.join(_ALL_VOLUME_TYPES)}",
    "A,B",
    list,
)


def _pairs(
    fits_key: Callable[[str], bool], fits_value: Callable[[str], bool]
) -> Callable[[str], Mapping[str, str]]:
    def parse(text: str) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for item in _items(text):
            key, equals, value = item.partition("=")
            if not equals or not fits_key(key) or not fits_value(value) or found.get(key, value) != value:
                raise ValueError
            found[key] = value
        return MappingProxyType(found)

    return parse


_NOT_HELMS: Final = "each name once and none of Helm's own"
LABELS: Final = SettingType(
    _pairs(names.is_label_key, names.is_label_value),
    "labels such as heritage=my-app,scope=extra, each name once",
    "KEY=VALUE,…",
    dict,
)
COMMON_LABELS: Final = structs.replace(
    LABELS,
    parse=_pairs(names.is_free_label_key, names.is_label_value),
    allowed=f"labels such as team=platform,scope=extra, {_NOT_HELMS}",
)
COMMON_ANNOTATIONS: Final = structs.replace(
    LABELS,
    parse=_pairs(names.is_free_label_key, str.isprintable),
    allowed=f"annotations such as team=platform,example.com/docs=https://example.com/a, {_NOT_HELMS}",
)


# --- windows


class ExplainedError(errors.ConfigurationError):
    """A text is not allowed; the sentence says by itself what is wrong, and what to write."""


def _windows(text: str) -> "windows.Windows | None":
    if not text:
        return None
    # Crontabs and schemas take time to import, and few have windows.
    from addon_operator.modules import windows

    try:
        return windows.read(text)
    except windows.WindowError as error:
        raise ExplainedError(str(error)) from None


def _health_rules(text: str) -> "tuple[health_config.HealthRule, ...]":
    if not text:
        return ()
    # The runtime of CEL takes time to import, and few have rules.
    from addon_operator.modules.health import health_rules

    try:
        return health_rules.read(text)
    except health_rules.RulesError as error:
        raise ExplainedError(str(error)) from None


HEALTH_RULES: Final = SettingType(
    _health_rules,
    "a list of rules, as YAML or JSON",
    "LIST",
    lambda found: [dict(each.document) for each in found],
)
WINDOWS: Final = SettingType(
    _windows,
    "a list of windows, as YAML or JSON",
    "LIST",
    lambda found: [] if found is None else list(map(dict, found.documents)),
)
