"""CustomResourceDefinitions of modules: read from ``crds/``, applied before anything of the module runs."""

import asyncio
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeAlias

from addon_operator.engine import module_files
from addon_operator.kernel import errors, names
from addon_operator.modules import crd_files, model

_Signature: TypeAlias = tuple[tuple[str, int, int, int, int], ...]


class Installer(Protocol):
    """Brings definitions to the cluster; see :mod:`addon_operator.kube.crds`."""

    async def ensure(self, crd: crd_files.Crd) -> bool:
        """Apply the definition if it differs, and wait until it is served; whether it was written."""
        ...


class CrdObserver(Protocol):
    """Who is told of definitions: the log."""

    def crd_applied(self, module: names.ModuleName, crd: str) -> None:
        """A definition was written."""
        ...


class ModuleCrds:
    """Knows of which modules the definitions are as the files say."""

    def __init__(self, installer: Installer, observer: CrdObserver, filter_prefixes: Sequence[str]) -> None:
        self._installer = installer
        self._observer = observer
        self._filter_prefixes = tuple(filter_prefixes)
        self._applied: dict[names.ModuleName, _Signature] = {}

    def due(self, modules: Sequence[model.Module]) -> list[names.ModuleName]:
        """Those of the enabled modules whose definitions are to be applied: newly enabled, or changed files.

        Modules that are not given are disabled: they will be newly enabled next time.
        """
        enabled = {module.name for module in modules}
        self._applied = {name: kept for name, kept in self._applied.items() if name in enabled}
        return [module.name for module in modules if self._is_due(module)]

    async def ensure(self, module: model.Module) -> None:
        """Apply the module's definitions, unless nothing changed since that was done.

        Raises a :class:`~addon_operator.kernel.errors.ModuleError` that names file and document when a file
        holds something else, or the API server does not take a definition.
        """
        if not self._is_due(module):
            return
        # A file that changes while it is read is read again by the next run.
        signature = self._signature(module)
        try:
            await self._install(module)
        except errors.ModuleError:
            raise
        except errors.AddonOperatorError as error:
            raise errors.ModuleError(module.name, str(error)) from error
        if signature:
            self._applied[module.name] = signature
        else:
            self._applied.pop(module.name, None)

    async def _install(self, module: model.Module) -> None:
        for crd in await asyncio.to_thread(self._read, module):
            try:
                changed = await self._installer.ensure(crd)
            except errors.AddonOperatorError as error:
                raise errors.ModuleError(module.name, f"{crd.source}: {error}") from error
            if changed:
                self._observer.crd_applied(module.name, crd.name)

    def _read(self, module: model.Module) -> list[crd_files.Crd]:
        found: list[crd_files.Crd] = []
        for path in self._files(module):
            found += crd_files.parse(module_files.read_text(path), str(path))
        crd_files.check_unique(found)
        return found

    def _is_due(self, module: model.Module) -> bool:
        return self._applied.get(module.name) != (self._signature(module) or None)

    def _signature(self, module: model.Module) -> _Signature:
        return tuple(_state_of(path) for path in self._files(module))

    def _files(self, module: model.Module) -> Iterator[pathlib.Path]:
        for directory, below, files in os.walk(module.path / crd_files.DIRECTORY):
            below[:] = sorted(name for name in below if not name.startswith("."))
            for name in sorted(files):
                if crd_files.is_selected(name, self._filter_prefixes):
                    yield pathlib.Path(directory, name)


def _state_of(path: pathlib.Path) -> tuple[str, int, int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return str(path), 0, 0, 0, 0
    return str(path), status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
