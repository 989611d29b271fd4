"""The checksum of a chart's files, cheap for a chart that did not change.

A file is read again only when its status (times, size, inode) changed: asking once more costs one walk over
the directory.
"""

import dataclasses
import enum
import hashlib
import os
import pathlib
import stat
import sys
import weakref
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

import msgspec
import re2  # type: ignore[import-untyped]  # has no stubs

from addon_operator.aio import absences
from addon_operator.helm import helm_errors
from addon_operator.helm.charts import plain_files, subcharts
from addon_operator.kernel import clock as clocks
from addon_operator.kernel import names
from addon_operator.modules import release

NOT_IN_VIRTUAL_CHART: Final = frozenset(
    {"crds", "docs", "hooks", "images", "lib", "openapi", "tests", "values.yaml"}
)
"""What the chart of a module without ``Chart.yaml`` leaves out: directories, as the Go operator does, the
module's tests, and its values, which Helm would lay below those that it is given."""

_KIB: Final = 1024
_MIB: Final = 1024 * _KIB
NOT_TEMPLATES: Final = frozenset({"crds", "docs", "enabled", "hooks", "images", "openapi", "tests"})
MAX_FILE: Final = 64 * _MIB
"""How many bytes a file may have that is read whole: Helm takes none nearly as large."""
NEVER: Final = frozenset({".git", "__pycache__"})
HOOKS: Final = "hooks"
VENV: Final = "venv"
"""The virtual environment of a module's hooks, which lies among them: many files that no chart reads."""
_VENV: Final = f"{HOOKS}/{VENV}"
_CHECKSUM_LENGTH: Final = 40
_SHOWN: Final = 5
_PARTS: Final = frozenset({"Chart.yaml", "values.yaml", "templates", subcharts.DIRECTORY})
"""What a chart may be written without, and never is for long while somebody writes it anew."""
_RACY_SECONDS: Final = 0.1
"""A file this young may be written again without its times moving on: its digest is not kept."""


class Mention(enum.Flag):
    """What a chart's templates may look at besides their values."""

    NOTHING = 0
    CAPABILITIES = enum.auto()
    """The versions of the cluster and of its API."""
    LOOKUP = enum.auto()
    """Objects in the cluster."""
    FILES = enum.auto()
    """Files of the chart that are not templates."""
    TPL = enum.auto()
    """Templates within the values."""
    VARIATION = enum.auto()
    """What differs from render to render: random values, the time, and whether it is the first install."""
    TIME = enum.auto()
    """The time."""
    ENABLED_MODULES = enum.auto()
    """Which modules are enabled."""
    ALL_APIS = enum.auto()
    """The list of the cluster's APIs, not only whether those are there that the templates name."""


_TIMES: Final = rb"now|ago|(?:html)?[dD]ate(?:InZone|_in_zone)?"
_RANDOM: Final = (
    rb"rand[A-Z]\w+|uuidv4|gen(?:PrivateKey|CA|CAWithKey|SelfSignedCert\w*|SignedCert\w*)|htpasswd|bcrypt|"
    rb"encryptAES"
)
_OTHERS: Final = rb"shuffle|IsInstall|IsUpgrade|Revision"
# RE2 searches in linear time, and lets other threads run meanwhile: charts and values are anybody's.
_WORDS: Final = {
    Mention.CAPABILITIES: (b"Capabilities", re2.compile(rb"\bCapabilities\b")),
    Mention.LOOKUP: (b"lookup", re2.compile(rb"\blookup\b")),
    Mention.FILES: (b"Files", re2.compile(rb"\bFiles\b")),
    Mention.TPL: (b"tpl", re2.compile(rb"\btpl\b")),
    Mention.ENABLED_MODULES: (b"enabledModules", re2.compile(rb"\benabledModules\b")),
    Mention.VARIATION: (
        b"{{",
        re2.compile(
            # Only words that are in no other text are looked for beyond a brace within an action.
            rb"\b(?:" + _RANDOM + rb")\b|\{\{[^}]*?\b(?:" + _TIMES + rb"|" + _OTHERS + rb")\b"
        ),
    ),
    Mention.TIME: (b"{{", re2.compile(rb"\{\{[^}]*?\b(?:" + _TIMES + rb")\b")),
}
"""What is found in no time if it is not there, and what it has to be."""
_SPACE: Final = rb"[ \t\n\r\f\v]*"
_OF_CAPABILITIES: Final = re2.compile(
    rb"[.\"`]Capabilities\b("
    rb"(?:" + _SPACE + rb"\|" + _SPACE + rb"toString\b|\.(?:KubeVersion|HelmVersion|APIVersions\.Has)\b)?)"
)
"""Its group is empty unless what is read is not the list of APIs."""
_WORD_BYTES: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_$")
_PIECE: Final = 64 * _KIB
"""How many bytes are searched without a pause for other threads."""
_LONGEST_NAME: Final = 253
_BETWEEN_WORDS: Final = bytes(byte if byte in _WORD_BYTES else ord(" ") for byte in range(256))
_WITH_APIS: Final = "with APIs"
_ARCHIVE: Final = "archive"
_ANYTHING: Final = ~Mention.NOTHING


class ChartFiles(msgspec.Struct, frozen=True):
    """What the files of a chart are, for deciding whether it has to be rendered again."""

    checksum: release.Checksum
    """Of names and contents of all files that Helm could read."""
    mentions: Mention
    api_groups: frozenset[str] = frozenset()
    """What the templates name that may be an API group with a dot in its name."""


_Status: TypeAlias = tuple[int, int, int, int]


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True)
class _Content:
    """What files of the same content have in common: charts bring the same libraries."""

    digest: bytes
    mentions: Mention
    api_groups: frozenset[str] = frozenset()


_NO_FILE: Final = _Content(b"no regular file", Mention.NOTHING)


class _Digest(msgspec.Struct, frozen=True):
    status: _Status | None
    """``None`` when the digest must not be used again."""
    content: _Content


class ChartFilesReader:
    """Reads the files of charts and remembers their digests; one thread at a time for each directory."""

    def __init__(self, clock: clocks.Clock, absence: float = absences.SECONDS) -> None:
        """``absence``: after so many seconds a part of a chart that is gone counts as removed."""
        self._clock = clock
        self._absence = absence
        self._absences: dict[pathlib.Path, absences.Absences[str]] = {}
        self._digests: dict[pathlib.Path, dict[str, _Digest]] = {}
        self._contents: weakref.WeakValueDictionary[tuple[bytes, str], _Content] = (
            weakref.WeakValueDictionary()
        )

    def read(self, module: names.ModuleName, directory: pathlib.Path) -> ChartFiles:
        """Digest all files of a module's directory that Helm could read.

        Raises :class:`helm_errors.ChartError` when one of them cannot be read, or a part of the chart is gone
        that was there: somebody may write it anew just now, and what it holds would be deleted.
        """
        try:
            digests = self._read_what_matters(directory)
        except OSError as error:
            what = (
                "it is gone; put it back, or remove the module"
                if isinstance(error, FileNotFoundError)
                else f"{error.strerror}; correct it, or its permissions"
            )
            raise helm_errors.ChartError(
                module, f"cannot read the chart: {error.filename}: {what}"
            ) from error
        self._check_parts(module, directory, digests)
        self._digests[directory] = digests
        groups = frozenset().union(*(digest.content.api_groups for digest in digests.values()))
        return ChartFiles(checksum(_lines(digests)), _mentions(digests), groups)

    def _check_parts(
        self, module: names.ModuleName, directory: pathlib.Path, digests: Mapping[str, _Digest]
    ) -> None:
        if not (lost := _parts(self._digests.get(directory, {})) - _parts(digests)):
            self._absences.pop(directory, None)
            return
        looks = self._absences.setdefault(directory, absences.Absences(self._clock, self._absence))
        if missing := lost - looks.look(lost):
            told = names.listed([str(directory / part) for part in sorted(missing)], _SHOWN)
            text = (
                f"{told} is gone: put it back; if it is still gone after {self._absence:g} s, what it makes"
            )
            raise helm_errors.ChartError(module, f"{text} is removed")

    def forget(self, directory: pathlib.Path) -> None:
        """Drop what is remembered of a directory."""
        self._digests.pop(directory, None)
        self._absences.pop(directory, None)

    def _read_what_matters(self, directory: pathlib.Path) -> dict[str, _Digest]:
        known = self._digests.get(directory, {})
        if not is_complete(directory):
            return self._read(directory, NOT_IN_VIRTUAL_CHART | NOT_TEMPLATES, known)
        digests = self._read(directory, NOT_TEMPLATES, known)
        if _mentions(digests) & (Mention.FILES | Mention.TPL):
            return self._read(directory, frozenset(), known | digests)
        return digests

    def _read(
        self, directory: pathlib.Path, without: frozenset[str], digests: Mapping[str, _Digest]
    ) -> dict[str, _Digest]:
        now = self._clock.time()
        return {
            name: self._digest(name, path, status, digests.get(name), now)
            for name, path, status in _walk(directory, without)
        }

    def _digest(
        self, name: str, path: str, status: os.stat_result | None, last: _Digest | None, now: float
    ) -> _Digest:
        if status is None or not stat.S_ISREG(status.st_mode):
            return _Digest(None, _NO_FILE)
        current = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if last is not None and last.status == current:
            return last
        is_settled = now - status.st_ctime > _RACY_SECONDS
        content = self._content(name, plain_files.read_bytes(path, MAX_FILE))
        return _Digest(current if is_settled else None, content)

    def _content(self, name: str, content: bytes) -> _Content:
        key = hashlib.sha256(content).digest(), _looked_at_as(name)
        if (content_read := self._contents.get(key)) is None:
            content_read = self._contents[key] = _Content(key[0], *_looks(key[1], content))
        return content_read


def is_complete(directory: pathlib.Path) -> bool:
    """Return whether a module's directory is a chart as it stands, that is, has a ``Chart.yaml``."""
    return (directory / "Chart.yaml").is_file()


def checksum(content: bytes) -> release.Checksum:
    """Return a checksum that fits into a label: 160 bits of SHA-256, hexadecimal."""
    return release.Checksum(hashlib.sha256(content).hexdigest()[:_CHECKSUM_LENGTH])


def _walk(
    directory: pathlib.Path, without: frozenset[str]
) -> Iterator[tuple[str, str, os.stat_result | None]]:
    """Yield all files below a directory by their relative names, symbolic links followed."""
    linked = plain_files.Linked()
    pending = [("", str(directory), frozenset[tuple[int, int]](), directory.is_symlink())]
    while pending:
        prefix, path, above, is_linked = pending.pop()
        inside = above | {_identity(pathlib.Path(path).stat())}
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name in NEVER or (not prefix and entry.name in without):
                    continue
                if prefix + entry.name == _VENV:
                    continue
                if is_linked:
                    linked.take(entry.path)
                status = _status_of(entry)
                if status is None or not stat.S_ISDIR(status.st_mode):
                    yield prefix + entry.name, entry.path, status
                elif _identity(status) not in inside:
                    is_below = is_linked or entry.is_symlink()
                    pending.append((f"{prefix}{entry.name}/", entry.path, inside, is_below))


def _status_of(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat()
    except FileNotFoundError:  # a symbolic link to nothing, or gone since it was listed
        return None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return (status.st_dev, status.st_ino)


def _looked_at_as(name: str) -> str:
    """Return what kind of file it is: for equal contents and kinds the same is found."""
    if name.endswith(subcharts.ARCHIVES):
        return _ARCHIVE
    return _WITH_APIS if _names_apis(name) else ""


def _names_apis(name: str) -> bool:
    """Say whether a file says for which APIs its chart asks."""
    return "/templates/" in f"/{name}" or name.endswith("values.yaml")


def _looks(kind: str, content: bytes) -> tuple[Mention, frozenset[str]]:
    """Return what a file, or all files of a packed chart, look at, and names that may be API groups."""
    if kind != _ARCHIVE:
        return mentioned(content), named_api_groups(content) if kind else frozenset()
    mentions, groups = Mention.NOTHING, frozenset[str]()
    try:
        for inside, text in subcharts.unpacked(content):
            mentions |= mentioned(text)
            groups |= named_api_groups(text) if _names_apis(inside) else frozenset()
    except ValueError:
        return _ANYTHING, frozenset()
    return mentions, groups


def mentioned(content: bytes) -> Mention:
    """Return what a template looks at, as far as its words tell."""
    mentions = Mention.NOTHING
    for mention, (part, word) in _WORDS.items():
        if part in content and word.search(content):
            mentions |= mention
    if Mention.CAPABILITIES in mentions and _reads_all_apis(content):
        mentions |= Mention.ALL_APIS
    return mentions


def _reads_all_apis(content: bytes) -> bool:
    """Return whether an action, from ``{{`` to the next ``}``, reads the whole list of APIs."""
    looked, is_open = 0, False
    for read in _OF_CAPABILITIES.finditer(content):
        closed = content.rfind(b"}", looked, read.start())
        begin = looked if closed < 0 else closed + 1
        is_open = (is_open and closed < 0) or content.find(b"{{", begin, read.start()) >= 0
        looked = read.start()
        if is_open and not read[1]:
            return True
    return False


def named_api_groups(content: bytes) -> frozenset[str]:
    """Return what a text names that may be an API group that is not built in: small letters, with a dot."""
    groups: set[str] = set()
    for at in range(0, len(content), _PIECE):
        piece = content[at : at + _PIECE + _LONGEST_NAME].translate(_BETWEEN_WORDS)
        groups |= {
            sys.intern(word.rstrip(b".").decode())
            for word in set(piece.split())
            if b"." in word and word[:1].isalpha() and word.islower()
        }
    return frozenset(groups)


def _mentions(digests: Mapping[str, _Digest]) -> Mention:
    mentions = Mention.NOTHING
    for digest in digests.values():
        mentions |= digest.content.mentions
    return mentions


def _parts(digests: Mapping[str, _Digest]) -> frozenset[str]:
    """Return which parts of a chart are there."""
    return _PARTS & {name.partition("/")[0] for name in digests}


def _lines(digests: Mapping[str, _Digest]) -> bytes:
    return b"".join(
        os.fsencode(name) + b"\0" + digest.content.digest for name, digest in sorted(digests.items())
    )


def largest(directory: pathlib.Path) -> str:
    """Return a phrase with the largest files of a chart and their sizes; empty if none can be read."""
    sizes = _sizes(directory)
    if not sizes:
        return ""
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:_SHOWN]
    named = ", ".join(f"{name} ({_size(sizes[name])})" for name in largest)
    return f"the largest of its files, {_size(sum(sizes.values()))} in all: {named}"


def _sizes(directory: pathlib.Path) -> dict[str, int]:
    left_out = {"crds"} if is_complete(directory) else NOT_IN_VIRTUAL_CHART
    sizes = {}
    for path, below, files in os.walk(directory, followlinks=False):
        if pathlib.Path(path) == directory:
            below[:] = [name for name in below if name not in left_out]
        elif pathlib.Path(path) == directory / HOOKS:
            below[:] = [name for name in below if name != VENV]
        for name in files:
            file = pathlib.Path(path, name)
            if file.is_file():
                sizes[file.relative_to(directory).as_posix()] = file.stat().st_size
    return sizes


def _size(count: int) -> str:
    return f"{count / _MIB:.1f} MiB" if count >= _MIB / 10 else f"{count / _KIB:.1f} KiB"
