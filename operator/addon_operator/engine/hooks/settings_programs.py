"""Asks programs of modules whether settings are right: ``hook check``, wherever schemas are checked.

That is done in threads, which wait for what the event loop, or one of their own, does for them.
"""

import asyncio
import contextlib
import functools
import hashlib
import pathlib
import signal
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from addon_operator.documents import json_documents
from addon_operator.engine.hooks import hook_configurations, hook_directory, hook_failures
from addon_operator.hook_contract.configuration import batch_config
from addon_operator.kernel import errors, json_types, names
from addon_operator.loading import hook_files
from addon_operator.process.children import children
from addon_operator.values import settings_checks

CHECK_SECONDS: Final = 10.0
"""How long a program may take to check settings; in a webhook, less is left."""
MAX_ANSWER_BYTES: Final = 64 * 1024
_KILL_GRACE: Final = 0.2
_SENT_BY_OTHERS: Final = (signal.SIGKILL, signal.SIGTERM)
_MESSAGE_CHARS: Final = 2000
_MOST_WARNINGS: Final = 20
_WITHOUT_MESSAGE: Final = "these settings are wrong; the program does not say why"

_Answer = TypeVar("_Answer")
RunHere: TypeAlias = Callable[[Coroutine[Any, Any, children.ChildResult]], children.ChildResult]
"""Runs something asynchronous to its end, for a thread that waits."""
_Identity: TypeAlias = tuple[int, ...]


def in_loop() -> Callable[[Coroutine[Any, Any, _Answer]], _Answer]:
    """Return what has the running loop do things, for its other threads."""
    loop = asyncio.get_running_loop()

    def run(work: Coroutine[Any, Any, _Answer]) -> _Answer:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    return run


class _Known(msgspec.Struct):
    """What is known of a program as long as its file does not change."""

    identity: _Identity
    checks: bool | str | None
    """Whether it checks settings, or why that cannot be found out; ``None`` if it cannot be started."""
    right: bytes | None = None
    """Digest of the last settings that it took without a warning."""


class SettingsPrograms(settings_checks.SettingsChecks):
    """Finds the programs of modules that check settings, and asks them."""

    def __init__(
        self,
        programs: children.Children,
        environment: Mapping[str, str],
        tmp_dir: pathlib.Path,
        run: RunHere = asyncio.run,
    ) -> None:
        """``environment`` is that of hooks; their files are put below ``tmp_dir``."""
        self._programs = programs
        self._environment = dict(environment)
        self._directory = functools.partial(hook_directory.HookDirectory, tmp_dir)
        self._run = run
        self._known: dict[pathlib.Path, _Known] = {}

    def verdicts(
        self, hooks: pathlib.Path, module: names.ModuleName, settings: json_types.JsonObject
    ) -> list[settings_checks.SettingsVerdict]:
        """See :class:`.SettingsChecks`; what is wrong with the hooks shows when they are loaded."""
        with contextlib.suppress(hook_files.HookFilesError):
            files = hook_files.discover(hooks).executables
            found = (self._verdict(file.path, module, settings) for file in files)
            return [verdict for verdict in found if verdict is not None]
        return []

    def _verdict(
        self, path: pathlib.Path, module: names.ModuleName, settings: json_types.JsonObject
    ) -> settings_checks.SettingsVerdict | None:
        if not hook_files.may_hold_many(path):
            return None
        known, text = self._look_at(path), json_documents.encode(settings)
        digest = hashlib.blake2b(text, digest_size=16).digest()
        if not known.checks or known.right == digest:
            return None
        if isinstance(known.checks, str):
            return _no_answer(path, known.checks)
        try:
            verdict = self._ask(path, module, text)
        except errors.AddonOperatorError as error:
            return _no_answer(path, str(error))
        except Exception as error:  # noqa: BLE001 - one program must not end the checks of all modules
            return _no_answer(path, f"cannot be asked: {type(error).__name__}: {error}")
        if not verdict.error and not verdict.warnings:
            known.right = digest
        return verdict

    def _look_at(self, path: pathlib.Path) -> _Known:
        """Find out whether a program checks settings, once for each state of its file."""
        identity = _identity(path)
        known = self._known.get(path)
        if known is None or known.identity != identity or not isinstance(known.checks, bool):
            known = self._known[path] = _Known(identity, self._checks_settings(path))
        return known

    def _checks_settings(self, path: pathlib.Path) -> bool | str | None:
        try:
            listed = self._start(path, hook_configurations.LIST, {})
            if not hook_configurations.is_batch(listed):
                # A hook that knows no 'hook list' ends by itself.
                was_ended = listed.timed_out or -listed.exit_code in _SENT_BY_OTHERS
                return _unknown(listed, hook_configurations.LIST) if was_ended else False
            printed = self._start(path, hook_configurations.CONFIG, {})
        except children.ChildStartError:
            # It is no program at all, or just now: whoever loads the hooks says so.
            return None
        if hook_failures.has_failed(printed):
            return _unknown(printed, hook_configurations.CONFIG)
        return batch_config.has_settings_check(printed.stdout or b"")

    def _ask(
        self, path: pathlib.Path, module: names.ModuleName, settings: bytes
    ) -> settings_checks.SettingsVerdict:
        with self._directory(f"{module}-settings") as files:
            files.write(hook_configurations.SETTINGS, [settings])
            variables = {**files.environment(), **hook_configurations.owner(module)}
            limit = _seconds()
            result = self._start(path, hook_configurations.CHECK, variables)
        shown = _shown(path)
        if not hook_failures.has_failed(result):
            return settings_checks.SettingsVerdict(shown)
        answer = None if result.timed_out else _answer(result.stderr)
        if answer is None:
            return _no_answer(path, hook_failures.describe(result, path, limit))
        said, message = answer.get("warnings"), _line(str(answer.get("message") or ""))
        listed = said[:_MOST_WARNINGS] if isinstance(said, list) else ()
        warnings = tuple(_line(text) for text in listed if isinstance(text, str))
        error = "" if answer.get("valid") is True else message or _WITHOUT_MESSAGE
        return settings_checks.SettingsVerdict(shown, error, warnings=warnings)

    def _start(
        self, path: pathlib.Path, words: tuple[str, ...], variables: Mapping[str, str]
    ) -> children.ChildResult:
        absolute = path.absolute()
        return self._run(
            self._programs.run(
                [absolute, *words],
                env={**self._environment, **variables},
                cwd=absolute.parent,
                timeout=_seconds(),
                capture_stdout=hook_configurations.MAX_CONFIG_BYTES,
                capture_stderr=MAX_ANSWER_BYTES,
                kill_grace=_KILL_GRACE,
            )
        )


def _seconds() -> float:
    return max(0.0, settings_checks.seconds_left(CHECK_SECONDS))


def _unknown(result: children.ChildResult, words: tuple[str, ...]) -> str:
    return f"'{' '.join(words)}' {hook_failures.ending(result, None)}"


def _no_answer(path: pathlib.Path, why: str) -> settings_checks.SettingsVerdict:
    text = f"the program that checks these settings gave no answer: it {why}"
    return settings_checks.SettingsVerdict(_shown(path), text, is_answer=False)


def _shown(path: pathlib.Path) -> str:
    return f"{path} hook check"


def _answer(stderr: bytes) -> dict[str, Any] | None:
    """Return the last line of an error that is an answer; before it there may be messages."""
    for line in reversed(stderr.decode(errors="replace").splitlines()):
        with contextlib.suppress(ValueError, RecursionError):
            document = json_documents.decode_unambiguous(line)
            if isinstance(document, dict) and "valid" in document:
                return document
    return None


def _line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MESSAGE_CHARS else f"{flat[:_MESSAGE_CHARS]}…"


def _identity(path: pathlib.Path) -> _Identity:
    with contextlib.suppress(OSError):
        # The file, and the link that may lead there.
        found = [path.stat(), path.lstat()]
        return tuple(
            number for each in found for number in (each.st_dev, each.st_ino, each.st_mtime_ns, each.st_size)
        )
    return ()
