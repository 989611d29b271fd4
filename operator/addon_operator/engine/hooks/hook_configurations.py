"""Asks hooks, and programs that hold many, for their configuration.

A script is started with ``--config``. A compiled program without a file extension is first asked with
``hook list`` whether it holds several hooks, and then with ``hook config`` for what they are bound to.
"""

import asyncio
import pathlib
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec
from msgspec import structs

from addon_operator.engine import state
from addon_operator.engine.hooks import hook_failures, hook_lines
from addon_operator.hook_contract.configuration import batch_config, hook_config
from addon_operator.kernel import names
from addon_operator.loading import hook_files
from addon_operator.process.children import children

CONFIG_TIMEOUT: Final = 60.0
"""Seconds that ``--config`` may take."""
MAX_CONFIG_BYTES: Final = 1024 * 1024
WROTE: Final = "printed a configuration, and wrote to standard error: "
"""Stands before what it wrote: something may have gone wrong on the way."""
FLAG: Final = ("--config",)
LIST: Final = ("hook", "list")
CONFIG: Final = ("hook", "config")
RUN: Final = ("hook", "run")
READY: Final = ("hook", "ready")
CHECK: Final = ("hook", "check")
SETTINGS: Final = "SETTINGS_PATH"
"""Names the file with the settings to be checked."""
READINESS: Final = "readiness"
"""Stands in the place of name and number of a nested hook."""


class Printed(msgspec.Struct, frozen=True):
    """What a hook, or a program, printed of itself."""

    path: pathlib.Path
    text: str
    wrote: str = ""
    """The end of its standard error."""
    is_batch: bool = False
    """Whether it is a program that holds many hooks."""

    def of_hook(self, kind: hook_config.HookKind) -> hook_config.HookConfig:
        """Read the configuration of a hook; raises :class:`.HookConfigError`."""
        return hook_config.parse(self.text, kind, f"hook {self.path}")

    def of_program(self, kind: hook_config.HookKind) -> batch_config.BatchConfig:
        """Read the configuration of a program; raises :class:`.HookConfigError`."""
        return batch_config.parse(self.text, kind, f"hook {self.path}")

    @property
    def warning(self) -> str:
        """What to say of what it wrote; empty if it wrote nothing."""
        asked = " ".join(CONFIG if self.is_batch else FLAG)
        return f"{asked} {WROTE}{self.wrote}" if self.wrote else ""


class FileHooks(msgspec.Struct, frozen=True):
    """What one file holds."""

    hooks: tuple[state.Hook, ...] = ()
    readiness: state.Hook | None = None
    """What is asked if the module is ready."""
    has_settings_check: bool = False
    warnings: tuple[str, ...] = ()


class HookConfigurations:
    """Starts hooks and programs, so that they say what they are bound to."""

    def __init__(
        self,
        programs: children.Children,
        environment: Mapping[str, str],
        timeout: float | None,
        log: hook_lines.HookLog,
    ) -> None:
        """``timeout`` is that of hooks, in seconds; ``log`` gets the lines of their errors."""
        self._programs = programs
        self._environment = dict(environment)
        self._timeout = min(CONFIG_TIMEOUT, timeout or CONFIG_TIMEOUT)
        self._log = log
        # Relative paths are meant from here, and the directory itself may be removed later.
        self._started_in = pathlib.Path.cwd()

    async def ask(self, path: pathlib.Path) -> Printed:
        """Return what a hook or a program prints of itself.

        Raises :class:`.HookConfigError` when it cannot be started or fails.
        """
        if not await asyncio.to_thread(hook_files.may_hold_many, path):
            return await self._printed(path, FLAG)
        listed = await self._start(path, LIST)
        if is_batch(listed):
            return structs.replace(await self._printed(path, CONFIG), is_batch=True)
        try:
            return await self._printed(path, FLAG)
        except hook_config.HookConfigError as error:
            how = hook_failures.ending(listed, self._timeout)
            said = (
                how if hook_failures.has_failed(listed) else "did not begin its answer with 'Found N items:'"
            )
            other = f"as a program with several hooks it cannot be used either: 'hook list' {said}"
            raise hook_config.HookConfigError(error.source, *error.violations, other) from error

    async def _printed(self, path: pathlib.Path, words: tuple[str, ...]) -> Printed:
        result = await self._start(path, words)
        asked, source = " ".join(words), f"hook {path}"
        if hook_failures.has_failed(result):
            how = hook_failures.describe(result, path, self._timeout)
            raise hook_config.HookConfigError(source, f"{asked} {how}")
        if result.stdout_is_cut:
            raise hook_config.HookConfigError(source, f"{asked} printed more than {MAX_CONFIG_BYTES} bytes")
        try:
            text = (result.stdout or b"").decode()
        except UnicodeDecodeError as error:
            raise hook_config.HookConfigError(
                source, f"{asked} printed something that is not UTF-8 text"
            ) from error
        return Printed(path, text, hook_failures.said_of(result, path))

    async def _start(self, path: pathlib.Path, words: tuple[str, ...]) -> children.ChildResult:
        absolute = hook_files.absolute(path, self._started_in)
        try:
            with self._log.run({"hook": str(path)}) as log:
                return await self._programs.run(
                    [*hook_files.command(absolute), *words],
                    env=self._environment,
                    cwd=absolute.parent,
                    timeout=self._timeout,
                    on_stderr_line=log.handler("stderr"),
                    capture_stdout=MAX_CONFIG_BYTES,
                    # It is asked anew at each start and reload: what each of them left would add up.
                    leaves_nothing=True,
                )
        except children.ChildStartError as error:
            raise hook_config.HookConfigError(f"hook {path}", str(error)) from error


def read(printed: Printed, name: str, module: names.ModuleName | None) -> FileHooks:
    """Read what a file said; ``name`` is its path below the hooks. To be called in a thread.

    Raises :class:`.HookConfigError` when a configuration is wrong.
    """
    kind = hook_config.HookKind.GLOBAL if module is None else hook_config.HookKind.MODULE
    try:
        found = (
            _of_program(printed, name, module) if printed.is_batch else _of_file(printed, name, module, kind)
        )
    except hook_config.HookConfigError as error:
        if not printed.wrote:
            raise
        reported = f"it said on standard error: {printed.wrote}"
        raise hook_config.HookConfigError(error.source, *error.violations, reported) from error
    if not printed.warning:
        return found
    return structs.replace(found, warnings=(*found.warnings, f"{printed.path}: {printed.warning}"))


def _of_file(
    printed: Printed, name: str, module: names.ModuleName | None, kind: hook_config.HookKind
) -> FileHooks:
    config = printed.of_hook(kind)
    return FileHooks((state.Hook(name, printed.path, config, module),), warnings=config.warnings)


def _of_program(printed: Printed, name: str, module: names.ModuleName | None) -> FileHooks:
    kind = hook_config.HookKind.GLOBAL if module is None else hook_config.HookKind.MODULE
    config = printed.of_program(kind)
    hooks = tuple(
        state.Hook(nested_name(name, nested), printed.path, nested.config, module, (*RUN, str(nested.number)))
        for nested in config.hooks
    )
    warnings = config.warnings
    if module is None:
        return FileHooks(hooks, warnings=(*warnings, *_only_for_modules(printed.path, config)))
    readiness = None
    if config.has_readiness:
        nothing = hook_config.HookConfig()
        readiness = state.Hook(f"{name}:{READINESS}", printed.path, nothing, module, READY)
    return FileHooks(hooks, readiness, config.has_settings_check, warnings)


def nested_name(program: str, nested: batch_config.NestedHook) -> str:
    """Return how a nested hook is called in logs and metrics."""
    return f"{program}:{nested.name}:{nested.number}"


def owner(module: names.ModuleName | None) -> dict[str, str]:
    """Return the variables that tell a program with many hooks whose they are."""
    return {"MODULE_NAME": module or names.GLOBAL_KEY, "APPLICATION_NAME": "", "APPLICATION_NAMESPACE": ""}


def _only_for_modules(path: pathlib.Path, config: batch_config.BatchConfig) -> Iterator[str]:
    if config.has_readiness:
        yield f"{path}: its readiness has no effect, as only modules are asked if they are ready"
    if config.has_settings_check:
        yield f"{path}: its check of settings has no effect, as only settings of modules are checked"


def is_batch(listed: children.ChildResult) -> bool:
    """Say whether this is how a program with many hooks answers ``hook list``."""
    text = (listed.stdout or b"").decode(errors="replace")
    return not hook_failures.has_failed(listed) and batch_config.is_list(text)
