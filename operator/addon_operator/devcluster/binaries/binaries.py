"""Gets the control plane's binaries: from envtest, the cache, a release, or a build, in this order.

The cache holds one directory per component and pins. A binary appears there complete or not at all, and two
processes that want the same one do not both make it.
"""

import contextlib
import hashlib
import pathlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from addon_operator.devcluster import errors, locations, locks, reporters
from addon_operator.devcluster.binaries import archives, assets, components, gobuild

_KEY_DIGITS: Final = 12


class Wanted(msgspec.Struct, frozen=True):
    """Some binaries of one component."""

    component: components.Component
    names: tuple[str, ...] = ()
    """File names; none means all of them."""

    def binaries(self) -> tuple[components.Binary, ...]:
        """Return those binaries."""
        return tuple(item for item in self.component.binaries if not self.names or item.name in self.names)


def wanted(name: str) -> Wanted:
    """Return what a component is made of, or the one program of that name (of Helm, version 3).

    Raises :class:`.DevClusterError` when there is neither.
    """
    for component in components.ALL:
        if component.name == name:
            return Wanted(component)
    for component in components.ALL:
        if any(binary.name == name for binary in component.binaries):
            return Wanted(component, (name,))
    known = ", ".join(component.name for component in components.ALL)
    programs = ", ".join(binary.name for binary in components.CONTROL_PLANE.binaries)
    raise errors.DevClusterError(
        f"there is no component {name!r}; there are {known}, and the programs {programs}"
    )


class BinaryStore:
    """Where to ask for binaries."""

    def __init__(
        self,
        where: locations.Locations,
        reporter: reporters.Reporter,
        envtest: assets.EnvtestAssets,
        fetcher: archives.ReleaseArchives,
        builder: gobuild.GoBuilder,
    ) -> None:
        self._where = where
        self._reporter = reporter
        self._envtest = envtest
        self._fetcher = fetcher
        self._builder = builder

    def pin(self, component: components.Component) -> components.Pin:
        """Return the pins of a component."""
        return components.read_pins(self._where.pins / component.name, component.module)

    @property
    def cache(self) -> pathlib.Path:
        """The directory for what all clusters of the machine share."""
        return self._where.cache

    def directory(self, component: components.Component) -> pathlib.Path:
        """Return where the cache has the binaries of a component, as pinned now."""
        return directory_of(self._where, component, self.pin(component))

    def cached(self, wanted: Wanted) -> dict[str, pathlib.Path]:
        """Return those that need no work, by name."""
        minor = self.pin(wanted.component).minor
        names = [binary.name for binary in wanted.binaries()]
        directory = self.directory(wanted.component)
        found = {name: directory / name for name in names if (directory / name).exists()}
        return {**found, **self._envtest.find(names, minor)}

    def ensure(self, requests: Sequence[Wanted]) -> dict[str, pathlib.Path]:
        """Return paths of all these binaries by name, after getting what is missing.

        Raises :class:`.BuildError` when one can neither be downloaded nor built.
        """
        found = [self.cached(wanted) for wanted in requests]
        missing = [wanted for wanted, have in zip(requests, found, strict=True) if self._misses(wanted, have)]
        for number, wanted in enumerate(missing, start=1):
            self._obtain(wanted, _position(number, missing))
        again = (
            self.cached(wanted) if wanted in missing else have
            for wanted, have in zip(requests, found, strict=True)
        )
        return {name: path for have in again for name, path in have.items()}

    def _misses(self, wanted: Wanted, have: Mapping[str, pathlib.Path]) -> bool:
        return any(binary.name not in have for binary in wanted.binaries())

    def _obtain(self, wanted: Wanted, position: str) -> None:
        component = wanted.component
        directory = self.directory(component)
        locations.create_private(self._where.cache, locations.CACHE_VARIABLE)
        with locks.exclusive(directory.with_name(f"{directory.name}.lock"), self._waiting_for(component)):
            have = self.cached(wanted)
            todo = [binary for binary in wanted.binaries() if binary.name not in have]
            if todo:
                self._reporter.say(f"{component.name} {self.pin(component).version} is missing{position}")
            with _staging(directory) as staging:
                missing = [binary for binary in todo if not self._fetch(component, binary, staging)]
                if missing:
                    self._builder.build(component, self.pin(component), missing, staging)
                directory.mkdir(exist_ok=True)
                for binary in todo:
                    (staging / binary.name).replace(directory / binary.name)

    def _fetch(
        self, component: components.Component, binary: components.Binary, staging: pathlib.Path
    ) -> bool:
        try:
            return self._fetcher.fetch(component, self.pin(component), binary, staging / binary.name)
        except errors.ChecksumError as error:
            self._reporter.say(f"{error}: building {binary.name} instead")
            return False

    def _waiting_for(self, component: components.Component) -> locks.OnWait:
        def say(pid: int | None) -> None:
            who = "another process" if pid is None else f"process {pid}"
            self._reporter.say(f"Waiting for {who}, which is getting {component.name} already")

        return say


@contextlib.contextmanager
def workshop(
    where: locations.Locations,
    environ: Mapping[str, str],
    reporter: reporters.Reporter,
    *,
    keep_go_caches: bool = False,
) -> Iterator[BinaryStore]:
    """Make a binary store with all its sources, as the command line and the pytest plugin use it."""
    envtest = assets.EnvtestAssets(environ, reporter)
    fetcher = archives.ReleaseArchives(reporter)
    with gobuild.building(where.cache, environ, reporter, keep_caches=keep_go_caches) as builder:
        yield BinaryStore(where, reporter, envtest, fetcher, builder)


def directory_of(
    where: locations.Locations, component: components.Component, pin: components.Pin
) -> pathlib.Path:
    """Return where the cache has the binaries of a component that is pinned so."""
    return where.cache / f"{component.name}-{cache_key(component, pin)}"


def cache_key(component: components.Component, pin: components.Pin) -> str:
    """Return a key that changes whenever other binaries would come out: pins, processor, way to build."""
    recipe = (
        pin.digest,
        components.architecture(),
        *gobuild.BUILD_FLAGS,
        gobuild.linker_flags(component, pin),
    )
    return hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:_KEY_DIGITS]


@contextlib.contextmanager
def _staging(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """Give a directory beside ``directory`` to make files in; remove what a killed process left in one."""
    prefix = f".{directory.name}."
    for left in directory.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=directory.parent) as staging:
        yield pathlib.Path(staging)


def _position(number: int, missing: Sequence[Wanted]) -> str:
    if len(missing) == 1:
        return ""
    rest = ", ".join(wanted.component.name for wanted in missing[number:])
    return f" ({number} of {len(missing)}{'; then ' + rest if rest else ''})"
