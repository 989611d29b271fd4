"""What a run is given, and what it gives back: through files, in threads, or at once if that is little.

What the files mean is not the business of this module.
"""

import contextlib
import pathlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from addon_operator.aio import threads, waiting
from addon_operator.engine.hooks import hook_directory, questions
from addon_operator.hook_contract import binding_contexts
from addon_operator.kernel import names
from addon_operator.values import store

BINDING_CONTEXT: Final = "BINDING_CONTEXT_PATH"
CONFIG_VALUES: Final = "CONFIG_VALUES_PATH"
VALUES: Final = "VALUES_PATH"
CONFIG_VALUES_PATCH: Final = "CONFIG_VALUES_JSON_PATCH_PATH"
VALUES_PATCH: Final = "VALUES_JSON_PATCH_PATH"
METRICS: Final = "METRICS_PATH"
KUBERNETES_PATCH: Final = "KUBERNETES_PATCH_PATH"
_OUTPUTS: Final = (CONFIG_VALUES_PATCH, VALUES_PATCH, METRICS, KUBERNETES_PATCH)

SHORT_INPUT: Final = 64 * 1024
"""Bytes of the contexts, and of each file of values, up to which they are written where the loop runs."""
SHORT_OUTPUT: Final = 4 * 1024
"""Bytes of all outputs together up to which they are read there."""
_INPUTS: Final = 3

Values: TypeAlias = Callable[[], Mapping[str, bytes]]
"""Makes the files with values, by variable; called in a thread, or at once if they are at hand."""


class Given(msgspec.Struct, frozen=True):
    """What a run is given."""

    contexts: Iterable[binding_contexts.Context]
    values: Values
    question: questions.Question[Any] | None = None
    is_short: bool = False
    """Whether it is known, without making it, that no file has more than :data:`SHORT_INPUT`."""


class Taken(msgspec.Struct, frozen=True):
    """What a run gave back."""

    written: Mapping[str, str]
    """By the variable of each file that the hook may write to."""
    answer: Any = None
    """What it answered, if it was asked."""


class Exchange:
    """Makes the files of runs, reads and removes them.

    A disk may take long, so threads do that. They wait for their turn in this process with each call of the
    file system, which takes more than little work itself: in memory, what is little is done at once.
    """

    def __init__(
        self, tmp_dir: pathlib.Path, memory: pathlib.Path | None = None, *, keep: bool = False
    ) -> None:
        """Use ``memory``, a directory that never waits for a disk, for what is short, and else ``tmp_dir``.

        ``keep``: what is in ``tmp_dir`` stays.
        """
        self._tmp_dir = tmp_dir
        self._memory = memory
        self._keep = keep

    @contextlib.asynccontextmanager
    async def directory(
        self, name: str, *, is_short: bool = False
    ) -> AsyncIterator[hook_directory.HookDirectory]:
        """Give what will be a directory; whatever becomes of the run, it is removed."""
        place = self._memory if is_short and self._memory else self._tmp_dir
        files = hook_directory.HookDirectory(place, name, keep=self._keep)
        try:
            yield files
        finally:
            if files.exists:
                await waiting.in_thread(threads.FILES, files.remove)

    async def give(self, files: hook_directory.HookDirectory, given: Given) -> None:
        """Make the directory and write the files; raises :class:`.HookFileError`."""
        if self._is_in_memory(files):
            try:
                _give(files, given)
            except hook_directory.HookFileError:
                # It may be full, where the other has room.
                files.remove()
                files.parent = self._tmp_dir
            else:
                return
        await waiting.in_thread(threads.FILES, _give, files, given)

    async def take(self, files: hook_directory.HookDirectory, given: Given, hook: str) -> Taken:
        """Read what ``hook`` wrote, and remove the directory.

        Raises :class:`.HookFileError`, and :class:`.AnswerError` if its answer is wrong.
        """
        if self._is_in_memory(files) and _is_little(files, given):
            try:
                return _taken(files, given, hook)
            finally:
                # What a hook left there may be much.
                files.remove_own()
        return await waiting.in_thread(threads.FILES, _take, files, given, hook)

    async def take_one(self, files: hook_directory.HookDirectory, variable: str) -> str:
        """Return what a failed hook wrote to a file; nothing if that is unreadable: the failure says more."""
        return await waiting.in_thread(threads.FILES, _collect_leniently, files, variable)

    async def give_values(
        self, files: hook_directory.HookDirectory, values: Values, outputs: Sequence[str]
    ) -> None:
        """Make the directory with the files of values, and those for other outputs than those of hooks."""
        await waiting.in_thread(threads.FILES, _write, files, values, outputs)

    async def take_all(
        self, files: hook_directory.HookDirectory, outputs: Sequence[str]
    ) -> Mapping[str, str]:
        """Read these outputs, and remove the directory."""
        return await waiting.in_thread(threads.FILES, _collect, files, outputs)

    def _is_in_memory(self, files: hook_directory.HookDirectory) -> bool:
        return files.parent is self._memory


def values_now(
    values: store.ValuesStore, module: names.ModuleName | None, enabled: Sequence[names.ModuleName] | None
) -> Values:
    """Return what makes the files with the values of this moment.

    ``enabled`` are the modules that they show as enabled, see :meth:`.ValuesStore.values`.
    """
    snapshot = values.snapshot(module)
    return lambda: {
        CONFIG_VALUES: snapshot.config_values_json(module),
        VALUES: snapshot.values_json(module, enabled),
    }


def are_at_hand(values: store.ValuesStore, module: names.ModuleName | None) -> bool:
    """Say whether the files with values can be made without working anything out, and are short."""
    parts = {values.section_of(None), values.section_of(module)}
    return all(part.made.is_within(SHORT_INPUT // 2) for part in parts)


def _give(files: hook_directory.HookDirectory, given: Given) -> None:
    _write(files, given.values, _OUTPUTS)
    question, document = given.question, binding_contexts.document(given.contexts)
    if question is None:
        files.write(BINDING_CONTEXT, document)
        return
    files.write_bounded(BINDING_CONTEXT, document)
    files.write(question.file)
    for other in question.variables[1:]:
        files.call(question.file, other)


def _write(files: hook_directory.HookDirectory, values: Values, outputs: Sequence[str]) -> None:
    texts = values()
    files.make()
    for variable, text in texts.items():
        files.write(variable, (text,))
    for variable in outputs:
        files.write(variable)


def _is_little(files: hook_directory.HookDirectory, given: Given) -> bool:
    """Say whether a run gave back so little that the loop can read it, and let go of all its files."""
    if given.question is None or not given.question.is_plain:
        return False
    sizes = files.sizes()
    written = sum(sizes[variable] for variable in (*_OUTPUTS, given.question.file))
    return written <= SHORT_OUTPUT and sum(sizes.values()) <= SHORT_OUTPUT + _INPUTS * SHORT_INPUT


def _take(files: hook_directory.HookDirectory, given: Given, hook: str) -> Taken:
    try:
        return _taken(files, given, hook)
    finally:
        files.remove()


def _taken(files: hook_directory.HookDirectory, given: Given, hook: str) -> Taken:
    question = given.question
    outputs = _OUTPUTS if question is None else (*_OUTPUTS, question.file)
    written = {variable: files.read_output(variable) for variable in outputs}
    return Taken(written, None if question is None else question.answer(hook, written[question.file]))


def _collect(files: hook_directory.HookDirectory, outputs: Sequence[str]) -> dict[str, str]:
    try:
        return {variable: files.read_output(variable) for variable in outputs}
    finally:
        files.remove()


def _collect_leniently(files: hook_directory.HookDirectory, variable: str) -> str:
    try:
        return _collect(files, (variable,))[variable]
    except hook_directory.HookFileError:
        return ""
