"""``notify.yaml``: who is told what of which modules.

The text is a Secret's: what is wrong with it is said by place, and never with an address or a key.
"""

import bisect
import dataclasses
import enum
import fnmatch
import ipaddress
import json
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from addon_operator.documents import json_pointers, yaml_reading
from addon_operator.hook_contract import violations
from addon_operator.kernel import clock, errors, json_types, names
from addon_operator.modules import findings, news

FILE: Final = "notify.yaml"
MAX_BYTES: Final = 32 * 1024
"""How large the file may be; it is read in a thread."""
MOST_TARGETS: Final = 20
MOST_PATTERNS: Final = 50
_AFTER_SECONDS: Final = 120.0
_MOST_MISTAKES: Final = 10
_NAME_MAX: Final = 63
_CLUSTER_MAX: Final = 100
_PATTERN_MAX: Final = 100
_MISPLACED: Final = "what stands there does not belong there"
_HIDDEN: Final = "…"
_WORD: Final = re.compile(r"\w[\w./+=~@%!$&*-]*")
"""What may be a key, a part of an address, or another secret; it may be cut in a sentence."""
_SHORT_MAX: Final = 3
_PLAIN_MAX: Final = 11
"""Letters of a word that is rather a slip than a secret."""
_NUMBER_MAX: Final = 5
"""Digits of numbers that are places."""
_YAML_ON: Final = "true"
"""How YAML 1.1 reads the key ``on``."""


class NotifyConfigError(errors.ConfigurationError):
    """The file is wrong; the sentence says where, and holds nothing of the Secret."""


class Format(enum.StrEnum):
    """How a receiver wants messages."""

    SLACK = "slack"
    MSTEAMS = "msteams"
    CLOUDEVENTS = "cloudevents"


KINDS: Final[Mapping[str, news.NewsKind]] = {
    kind.key: kind
    for kind in (
        news.FAILED,
        news.RECOVERED,
        news.UPGRADED,
        news.ROLLED_BACK,
        *(each.news for each in findings.TABLE if each.news is not None),
    )
}
"""What can be told, by what the file calls it."""
LASTING: Final = frozenset(kind for kind in KINDS.values() if kind.over)
"""What begins and is over some time."""
_USUAL: Final = frozenset(kind for kind in KINDS.values() if kind.is_usual)


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """Somebody who is told."""

    name: str
    url: str = dataclasses.field(repr=False)
    format: Format
    kinds: frozenset[news.NewsKind] = _USUAL
    modules: tuple[str, ...] = ("*",)
    """Patterns of names, as file names are matched."""
    after: float = _AFTER_SECONDS
    """For how many seconds something has to last before it is told."""
    hmac_key: str = dataclasses.field(default="", repr=False)

    def wants(self, module: str) -> bool:
        """Say whether it is told of this module."""
        return any(fnmatch.fnmatchcase(module, pattern) for pattern in self.modules)

    @property
    def host(self) -> str:
        """Where messages go, for people: the rest of the address is a secret."""
        return urllib.parse.urlsplit(self.url).hostname or ""


class NotifyConfig(msgspec.Struct, frozen=True):
    """All that the file says."""

    targets: tuple[Target, ...] = ()
    cluster: str = ""
    """What the cluster is called in messages."""


NOTHING: Final = NotifyConfig()
"""Nobody is told anything."""


def _text(**more: object) -> Mapping[str, Any]:
    return {"type": "string", "minLength": 1, **more}


_LIST: Final = {"type": "array", "x-remedy": "write a list, such as [a, b]"}
_TARGET: Final[Mapping[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "x-elsewhere": {"cluster": "write it beside targets, not below it"},
    "x-remedy": "write name, url and format on lines below each other",
    "required": ["name", "url", "format"],
    "properties": {
        "name": _text(format="dns-label"),
        "url": _text(**{"x-secret": True}),
        "format": {"enum": [str(each) for each in Format]},
        "on": {**_LIST, "items": {"enum": [*KINDS]}},
        "modules": {**_LIST, "items": _text()},
        "after": _text(format="period"),
        "hmacKey": _text(**{"x-secret": True}),
    },
}
SCHEMA: Final[Mapping[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "x-elsewhere": dict.fromkeys(_TARGET["properties"], "write it below an item of targets"),
    "x-remedy": "write the key targets with a list below it",
    "required": ["targets"],
    "properties": {"targets": {**_LIST, "items": _TARGET}, "cluster": _text()},
}
_CHECKER: Final = violations.Checker(SCHEMA)
_KNOWN: Final = frozenset(
    {FILE, *SCHEMA["properties"], *_TARGET["properties"], *map(str, Format), *KINDS, "https"}
)
"""Words that are no secret."""

_Problem = tuple[json_pointers.Path, str]


def parse(text: str) -> NotifyConfig:
    """Read the file; slow enough to be run in a thread.

    Raises :class:`NotifyConfigError` with all that is wrong.
    """
    if len(text) > MAX_BYTES:
        raise NotifyConfigError(f"{FILE} has more than {MAX_BYTES // 1024} KiB; name fewer targets")
    try:
        document = yaml_reading.load_document(text, FILE)
    except yaml_reading.YamlError as error:
        raise NotifyConfigError(_Discretion(text).hidden(_without_address(str(error)))) from None
    written = _with_on(document.value)
    problems = [*_CHECKER.problems(written), *_contradictions(written)]
    if problems:
        problems.sort(key=lambda problem: _line(document, problem[0]))
        raise NotifyConfigError(_refusal(document, problems, _Discretion(text, written)))
    return _config(cast("Mapping[str, Any]", written))


def _with_on(found: json_types.JsonValue) -> json_types.JsonValue:
    """Return the document with the key ``on``, which is a boolean for YAML."""
    targets = found.get("targets") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(targets, list):
        return found
    return {**found, "targets": [_renamed(each) for each in targets]}


def _renamed(target: json_types.JsonValue) -> json_types.JsonValue:
    if not isinstance(target, dict) or _YAML_ON not in target or "on" in target:
        return target
    return {"on" if key == _YAML_ON else key: value for key, value in target.items()}


def _line(document: yaml_reading.Document, path: json_pointers.Path) -> tuple[int, int]:
    position = document.position(_in_file(path))
    return (0, 0) if position is None else (position.line, position.column)


def _in_file(path: json_pointers.Path) -> json_pointers.Path:
    return tuple(_YAML_ON if part == "on" else part for part in path)


def _refusal(document: yaml_reading.Document, problems: Sequence[_Problem], discretion: "_Discretion") -> str:
    shown = [discretion.hidden(_sentence(document, *problem)) for problem in problems[:_MOST_MISTAKES]]
    if more := len(problems) - len(shown):
        shown.append(f"{more} more mistakes")
    return "; ".join(shown)


def _sentence(document: yaml_reading.Document, path: json_pointers.Path, mistake: str) -> str:
    where = document.where(_in_file(path))
    key = f", {json_pointers.format_path(path)}" if path else ""
    return f"{where}{_without_address(key)}: {_without_address(mistake)}"


def _without_address(text: str) -> str:
    """Return the text, unless it quotes what may be an address at the wrong place."""
    return text if "://" not in text else f"{text.partition(':')[0][:60]}: {_MISPLACED}"


class _Discretion:
    """Takes the words of a file out of sentences about it, but for those that each such file has."""

    def __init__(self, text: str, *values: object) -> None:
        written = [text, *(json.dumps(value, ensure_ascii=False, default=str) for value in values)]
        self._words = sorted({_bare(match) for each in written for match in _WORD.finditer(each)})

    def hidden(self, sentence: str) -> str:
        """Return the sentence with ``…`` in place of words of the file that may be secrets."""
        return _WORD.sub(self._shown, sentence)

    def _shown(self, match: re.Match[str]) -> str:
        parts = _bare(match).split(".")
        for index in range(len(parts)):
            word = ".".join(parts[index:])
            if not _is_harmless(word) and self._has(word):
                return ".".join([*parts[:index], _HIDDEN])
        return match[0]

    def _has(self, beginning: str) -> bool:
        index = bisect.bisect_left(self._words, beginning)
        return index < len(self._words) and self._words[index].startswith(beginning)


def _bare(match: re.Match[str]) -> str:
    return match[0].rstrip(".")


def _is_harmless(word: str) -> bool:
    is_place = word.isdecimal() and len(word) <= _NUMBER_MAX
    is_short = len(word) <= _SHORT_MAX or (word.isalpha() and len(word) <= _PLAIN_MAX)
    return is_place or is_short or word in _KNOWN


def _contradictions(found: json_types.JsonValue) -> Iterator[_Problem]:
    """Yield what the schema does not see, of all that is of the right type."""
    if not isinstance(found, dict):
        return
    targets, cluster = found.get("targets"), found.get("cluster")
    if isinstance(cluster, str) and len(cluster) > _CLUSTER_MAX:
        yield ("cluster",), f"the name has more than {_CLUSTER_MAX} characters"
    if not isinstance(targets, list):
        return
    if len(targets) > MOST_TARGETS:
        yield ("targets",), f"there are {len(targets)} targets, and {MOST_TARGETS} may be"
        return
    seen = set[str]()
    for index, target in enumerate(targets):
        if not isinstance(target, dict):
            continue
        for key, mistake in _of_target(target):
            yield ("targets", index, key), mistake
        name = target.get("name")
        if isinstance(name, str) and name in seen:
            yield ("targets", index, "name"), "another target has this name; choose one of its own"
        seen.add(str(name))


def _of_target(target: Mapping[str, json_types.JsonValue]) -> Iterator[tuple[str, str]]:
    url = target.get("url")
    if isinstance(url, str) and url and (mistake := _wrong_address(url)):
        yield "url", mistake
    if "hmacKey" in target and target.get("format") in (Format.SLACK, Format.MSTEAMS):
        yield "hmacKey", f"only the format {Format.CLOUDEVENTS} is signed; remove the key"
    kinds = target.get("on")
    wanted = {KINDS.get(str(each)) for each in kinds} if isinstance(kinds, list) else set()
    if news.RECOVERED in wanted and not wanted & LASTING:
        yield "on", "recovered tells that something else is over: add failed, unhealthy or drifted"
    patterns = target.get("modules")
    if isinstance(patterns, list) and (
        len(patterns) > MOST_PATTERNS or any(len(str(each)) > _PATTERN_MAX for each in patterns)
    ):
        yield "modules", f"at most {MOST_PATTERNS} patterns of {_PATTERN_MAX} characters may be there"


def _wrong_address(url: str) -> str:
    """Say what is wrong with an address, without any of it."""
    wrong = "it is not an address that can be used; write that of the receiver, which begins with https"
    if any(character.isspace() or not character.isprintable() for character in url):
        return wrong
    try:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            return wrong
    except ValueError:
        return wrong
    if parts.scheme == "http" and not _is_near(parts.hostname):
        return (
            "write https: an address is a secret, and http shows it on its way; http is for receivers in the "
            "cluster alone, with names such as receiver.namespace.svc or private addresses"
        )
    return ""


def _is_near(host: str) -> bool:
    """Say whether what is sent there stays in the cluster, or on this machine."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".svc", ".cluster.local", ".localhost"))
    return found.is_private or found.is_loopback


def _config(found: Mapping[str, Any]) -> NotifyConfig:
    return NotifyConfig(tuple(map(_target, found["targets"])), found.get("cluster", ""))


def _target(found: Mapping[str, Any]) -> Target:
    return Target(
        name=found["name"],
        url=found["url"],
        format=Format(found["format"]),
        kinds=frozenset(map(KINDS.__getitem__, found["on"])) if "on" in found else _USUAL,
        modules=tuple(found.get("modules", ("*",))),
        after=clock.parse_duration(found["after"]) if "after" in found else _AFTER_SECONDS,
        hmac_key=found.get("hmacKey", ""),
    )


def unknown(name: str, targets: Sequence[Target]) -> str:
    """Return the sentence for a name that no target has."""
    known = [each.name for each in targets]
    hint = names.did_you_mean(name, known, f"there are {', '.join(known) or 'none'}")
    return f"there is no target {name!r} in {FILE}; {hint}"
