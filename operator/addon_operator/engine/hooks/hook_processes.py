"""One run of one hook or ``enabled`` script: files in, process, files out.

What the files mean is not the business of this module.
"""

import contextlib
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from addon_operator.aio import threads
from addon_operator.engine import events, state
from addon_operator.engine.hooks import (
    hook_configurations,
    hook_directory,
    hook_exchange,
    hook_failures,
    hook_lines,
)
from addon_operator.hook_contract.configuration import hook_config
from addon_operator.kernel import errors, names
from addon_operator.loading import hook_files
from addon_operator.modules import model
from addon_operator.process.children import children

ENABLED_RESULT: Final = "MODULE_ENABLED_RESULT"
ENABLED_REASON: Final = "MODULE_ENABLED_REASON"
QUESTION_GRACE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL for a hook that was to answer: its place is wanted."""
_VERDICT: Final = (ENABLED_RESULT, ENABLED_REASON)
_VERDICTS: Final = {"true": True, "false": False}
_VERDICT_BYTES: Final = 64 * 1024
"""So much of the standard output of an ``enabled`` script is searched for a verdict."""
_SHOWN_CHARS: Final = 60
_REASON_CHARS: Final = 10_000
"""Of what an ``enabled`` script gives as its reason, which may be as long as any output."""

CheckingJq: TypeAlias = Callable[[], contextlib.AbstractContextManager[None]]
"""Has jq expressions checked where they hold nobody, see :meth:`.ValuesWorker.checking_jq`."""


class HookRunResult(msgspec.Struct, frozen=True):
    """How a successful run went, and what the hook wrote."""

    result: children.ChildResult
    written: Mapping[str, str]
    """By the variable of each file that it may write to."""
    answer: Any = None
    """What it answered, if it was asked."""


class LoadedHooks(msgspec.Struct, frozen=True):
    """The hooks of a module, or the global ones."""

    hooks: tuple[state.Hook, ...]
    readiness: state.Hook | None = None
    """What is asked if the module is ready."""


class HookRunError(errors.AddonOperatorError):
    """A hook's process did not end with exit code 0, or what it wrote cannot be read."""

    def __init__(
        self,
        hook: str,
        result: children.ChildResult,
        reason: str,
        kubernetes_patch: str = "",
        *,
        module: names.ModuleName | None = None,
    ) -> None:
        """Say that the hook failed; ``module`` is the one that it belongs to, if it is not a global one."""
        super().__init__(f"hook {hook} {reason}")
        self.hook = hook
        """The hook's name."""
        self.result = result
        """How its process ended."""
        self._module = module
        self.kubernetes_patch = kubernetes_patch
        """What it wrote about objects until then; it may hold something that is to be done all the same."""

    @property
    def without_values(self) -> str:
        """How it ended, without what it wrote."""
        has_failed = hook_failures.has_failed(self.result)
        what = hook_failures.ending(self.result, None) if has_failed else "returned invalid output"
        return f"hook {self.hook} {what}; {hook_failures.where_it_stands(self._module)}"


class EnabledScriptError(errors.ModuleError):
    """A module's ``enabled`` script gave no verdict."""

    def __init__(self, module: names.ModuleName, message: str, without_values: str = "") -> None:
        """``without_values`` is the message without what the script wrote, if that is in it."""
        super().__init__(module, f"its enabled script {message}")
        self._without_values = without_values or message

    @property
    def without_values(self) -> str:
        """The same without what the script wrote."""
        return f"module {self.module}: its enabled script {self._without_values}"


class HookProcesses:
    """Starts hooks and hands them their files.

    ``environment`` is the operator's own; hooks inherit it. ``default_timeout`` is in seconds.
    """

    def __init__(
        self,
        *,
        tmp_dir: pathlib.Path,
        memory: pathlib.Path | None = None,
        environment: Mapping[str, str],
        default_timeout: float | None,
        log: hook_lines.HookLog,
        keep_tmp_files: bool = False,
        programs: children.Children,
        checking_jq: CheckingJq = contextlib.nullcontext,
    ) -> None:
        """``memory`` is used in place of ``tmp_dir`` for what is short, see :class:`.Exchange`.

        ``checking_jq`` is entered while configurations are read.
        """
        self._exchange = hook_exchange.Exchange(tmp_dir, memory, keep=keep_tmp_files)
        self._environment = dict(environment)
        self._default_timeout = default_timeout
        self._log = log
        self._programs = programs
        # A replica answers the API server whether or not it leads, also while it ends.
        self._answering = programs.unfenced
        self._checking_jq = checking_jq
        self.last: Final = hook_lines.LastOutputs()
        """What hooks wrote in their last runs."""
        self.configurations: Final = hook_configurations.HookConfigurations(
            programs, environment, default_timeout, log
        )
        """Asks hooks what they are bound to."""
        # Relative paths are meant from here, and the directory itself may be removed later.
        self._started_in = pathlib.Path.cwd()

    async def load_global(self, directory: pathlib.Path, tell: events.Listener) -> tuple[state.Hook, ...]:
        """Find the global hooks and ask them for their configuration; raises what :meth:`load` raises."""
        loaded = await self.load(hook_files.discover(hook_files.global_hooks_root(directory)), tell)
        return loaded.hooks

    async def load(
        self, files: hook_files.HookFiles, tell: events.Listener, module: names.ModuleName | None = None
    ) -> LoadedHooks:
        """Ask the hooks of a module, or the global ones, for their configuration.

        Raises :class:`.HookFilesError` if one can never run, and :class:`.HookConfigError` for the first one
        that is invalid.
        """
        if files.problem:
            raise hook_files.HookFilesError(files.problem)
        place = "" if module is None else f"module {module}: "
        for warning in files.warnings:
            tell(events.Warned(place + warning))
        hooks = list[state.Hook]()
        readiness: state.Hook | None = None
        for file in files.executables:
            read = await self.read(file, module)
            for warning in read.warnings:
                tell(events.Warned(place + warning))
            hooks += read.hooks
            if read.readiness is not None and readiness is not None:
                raise hook_config.HookConfigError(
                    f"hook {file.path}",
                    f"{readiness.path} says whether the module is ready, too; only one program may do that",
                )
            readiness = readiness or read.readiness
        return LoadedHooks(tuple(hooks), readiness)

    async def read(
        self, file: hook_files.HookFile, module: names.ModuleName | None
    ) -> hook_configurations.FileHooks:
        """Ask one file what it holds; raises :class:`.HookConfigError` if it cannot say, or is wrong."""
        printed = await self.configurations.ask(file.path)
        with self._checking_jq():
            # Schemas and jqFilters take their time.
            return await threads.run(threads.OUTPUTS, hook_configurations.read, printed, file.name, module)

    async def run(
        self, hook: state.Hook, given: hook_exchange.Given, log_fields: Mapping[str, str]
    ) -> HookRunResult:
        """Run a hook; ``log_fields`` stand in each line that it logs.

        Raises :class:`HookRunError` when it fails or what it wrote cannot be read,
        :class:`.AnswerError` when its answer is wrong,
        :class:`.HookFileError` when there is no room for its files, and
        :class:`.ChildStartError` when it cannot be started.
        """
        question, timeout = given.question, self.timeout(hook)
        if question is not None:
            timeout = question.seconds if timeout is None else min(timeout, question.seconds)
        async with self._exchange.directory(hook.name, is_short=given.is_short) as files:
            await self._exchange.give(files, given)
            result = await self._start(hook, files, log_fields, timeout, is_asked=question is not None)
            if hook_failures.has_failed(result):
                raise HookRunError(
                    hook.name,
                    result,
                    hook_failures.describe(result, hook.path, timeout),
                    await self._exchange.take_one(files, hook_exchange.KUBERNETES_PATCH),
                    module=hook.module,
                )
            try:
                taken = await self._exchange.take(files, given, hook.name)
            except hook_directory.HookFileError as error:
                raise HookRunError(
                    hook.name, result, f"returned invalid output: {error}", module=hook.module
                ) from error
        return HookRunResult(result, taken.written, taken.answer)

    def timeout(self, hook: state.Hook) -> float | None:
        """Return how many seconds a run of the hook may take; ``None``: any number."""
        own = hook.config.settings.execution_timeout
        return self._default_timeout if own is None else own

    async def enabled(
        self,
        script: pathlib.Path,
        module: names.ModuleName,
        values: hook_exchange.Values,
    ) -> model.Verdict:
        """Ask a module's ``enabled`` script whether the module is enabled.

        Raises :class:`EnabledScriptError` when it fails or writes anything but ``true`` or ``false``.
        """
        async with self._exchange.directory(f"{module}-enabled") as files:
            try:
                await self._exchange.give_values(files, values, _VERDICT)
                fields = {"module": module, "hook": "enabled"}
                asked = state.Hook("enabled", script, hook_config.HookConfig(), module)
                result = await self._start(
                    asked, files, fields, self._default_timeout, capture_stdout=_VERDICT_BYTES
                )
                written = await self._exchange.take_all(files, _VERDICT)
            except (children.ChildStartError, hook_directory.HookFileError) as error:
                raise EnabledScriptError(module, f"cannot be asked: {error}") from error
        if hook_failures.has_failed(result):
            how = hook_failures.ending(result, self._default_timeout)
            reported = f"{how}; {hook_failures.where_it_stands(module)}"
            raise EnabledScriptError(
                module, hook_failures.describe(result, script, self._default_timeout), reported
            )
        is_enabled = _verdict(module, written[ENABLED_RESULT], result.stdout or b"")
        reason = " ".join(written[ENABLED_REASON][:_REASON_CHARS].split())
        said = "enabled" if is_enabled else "disabled"
        return model.Verdict(module, is_enabled, reason or f"{said} by its enabled script")

    async def _start(
        self,
        hook: state.Hook,
        files: hook_directory.HookDirectory,
        log_fields: Mapping[str, str],
        timeout: float | None,
        *,
        is_asked: bool = False,
        capture_stdout: int | None = None,
    ) -> children.ChildResult:
        path = hook_files.absolute(hook.path, self._started_in)
        is_nested = bool(hook.arguments)
        owner = hook_configurations.owner(hook.module) if is_nested else {}
        known_as = log_fields.get("module", ""), log_fields.get("hook", path.name)
        keep = self.last.begin(*known_as)
        programs = (self._answering if is_asked else self._programs).known_as(*known_as)
        with self._log.run(log_fields, is_json=is_nested) as log:
            variables = files.environment()
            return await programs.run(
                [*hook_files.command(path), *hook.arguments],
                env={**self._environment, **variables, **owner},
                cwd=path.parent,
                timeout=timeout,
                kill_grace=QUESTION_GRACE if is_asked else children.KILL_GRACE,
                # Nobody counts requests: what each of them left would add up.
                leaves_nothing=is_asked,
                on_stdout_line=hook_lines.both(keep, log.handler("stdout")),
                capture_stdout=capture_stdout,
                on_stderr_line=hook_lines.both(keep, log.handler("stderr")),
            )


def _verdict(module: names.ModuleName, text: str, printed: bytes) -> bool:
    verdict = _VERDICTS.get(text.strip())
    if verdict is None:
        shown = repr(text.strip()[:_SHOWN_CHARS]) if text.strip() else "nothing"
        place = f"to the file of {ENABLED_RESULT}; it has to write true or false"
        if not text.strip() and any(
            line.strip().decode(errors="replace") in _VERDICTS for line in printed.splitlines()
        ):
            place += f', and printed it to its standard output instead; write it with > "${ENABLED_RESULT}"'
        raise EnabledScriptError(module, f"wrote {shown} {place}", f"wrote no verdict {place}")
    return verdict
