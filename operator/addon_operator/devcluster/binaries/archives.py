"""Fetches binaries that a component's project has released, and checks them against the published checksum.

A host that does not answer at once is not asked again in the same run: building from source takes over.
"""

import hashlib
import http.client
import pathlib
import shutil
import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Final, TypeVar, cast

from addon_operator.devcluster import errors, reporters
from addon_operator.devcluster.binaries import components

CONNECT_TIMEOUT: Final = 4.0
"""Seconds a host has to give out a checksum."""
READ_TIMEOUT: Final = 30.0
"""Seconds of silence after which a download is given up."""

_CHUNK: Final = 256 * 1024
_Result = TypeVar("_Result")


class ReleaseArchives:
    """The release pages of the components' projects."""

    def __init__(self, reporter: reporters.Reporter, connect_timeout: float = CONNECT_TIMEOUT) -> None:
        self._reporter = reporter
        self._connect_timeout = connect_timeout
        self._unreachable: set[str] = set()

    def fetch(
        self,
        component: components.Component,
        pin: components.Pin,
        binary: components.Binary,
        target: pathlib.Path,
    ) -> bool:
        """Put a released binary at ``target``; false when there is none, or none can be reached.

        Raises :class:`.ChecksumError` when what came is not what was
        published.
        """
        if binary.releases is None:
            return False
        version = pin.requirements[binary.module]
        release = binary.releases(version, components.architecture(), binary.name)
        checksum = self._checksum(release)
        if checksum is None:
            return False
        return self._download(f"{component.name}: {binary.name}", release, checksum, target)

    def _checksum(self, release: components.Release) -> str | None:
        host = urllib.parse.urlsplit(release.checksum_url).netloc
        if host in self._unreachable:
            return None
        text = _within(self._connect_timeout, lambda: self._text(release.checksum_url))
        if text is None:
            self._unreachable.add(host)
            self._reporter.say(f"{host} cannot be reached: not using its released binaries")
            return None
        return published_checksum(text, release.url.rpartition("/")[2])

    def _text(self, url: str) -> str | None:
        try:
            with _open(url, self._connect_timeout) as response:
                return response.read().decode("utf-8", errors="replace")
        except urllib.error.HTTPError as error:
            # The host is there; it just has no such file.
            error.close()
            return ""
        except OSError:
            return None

    def _download(
        self, subject: str, release: components.Release, checksum: str, target: pathlib.Path
    ) -> bool:
        partial = target.with_name(target.name + ".download")
        try:
            found = self._transfer(subject, release.url, partial)
        except OSError as error:
            self._reporter.say(f"{release.url} cannot be fetched ({error}): building it instead")
            return False
        if found != checksum:
            raise errors.ChecksumError(
                f"{release.url} has the SHA-256 {found}, but {release.checksum_url} says {checksum}; "
                "the file is damaged or was replaced, so it is not used"
            )
        _unpack(release, partial, target)
        return True

    def _transfer(self, subject: str, url: str, partial: pathlib.Path) -> str:
        digest = hashlib.sha256()
        with _open(url, READ_TIMEOUT) as response, partial.open("wb") as file:
            total = int(response.headers.get("Content-Length") or 0) or None
            with self._reporter.phase(subject, "downloading", "MiB", total) as phase:
                while chunk := response.read(_CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
                    phase.advance(len(chunk))
        return digest.hexdigest()


def published_checksum(text: str, filename: str) -> str | None:
    """Return the SHA-256 that a checksum file has for a file: alone, or in a line ``sum  name``."""
    for line in text.splitlines():
        match line.split():
            case [sha256] if _is_sha256(sha256):
                return sha256.lower()
            case [sha256, name] if name.removeprefix("*") == filename and _is_sha256(sha256):
                return sha256.lower()
            case _:
                pass
    return None


def _is_sha256(text: str) -> bool:
    return len(text) == 64 and not set(text.lower()) - set("0123456789abcdef")


def _unpack(release: components.Release, archive: pathlib.Path, target: pathlib.Path) -> None:
    if release.member is None:
        archive.replace(target)
    else:
        try:
            with tarfile.open(archive) as tar:
                source = tar.extractfile(release.member) if release.member in tar.getnames() else None
                if source is None:
                    raise errors.BuildError(f"{release.url} holds no file {release.member}")
                with source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)
        except tarfile.TarError as error:
            raise errors.BuildError(f"{release.url} is not a readable archive: {error}") from error
        archive.unlink()
    target.chmod(0o755)


def _open(url: str, timeout: float) -> http.client.HTTPResponse:
    response = urllib.request.urlopen(url, timeout=timeout)  # noqa: S310 - the addresses are our own constants
    return cast("http.client.HTTPResponse", response)


def _within(seconds: float, ask: Callable[[], _Result | None]) -> _Result | None:
    """Return the answer, or ``None`` after that time: resolving a name may outlast a socket timeout."""
    answers: list[_Result | None] = []
    thread = threading.Thread(target=lambda: answers.append(ask()), daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None
